"""Whatever breaks between scheduler and API server, or in the scheduler, all gangs run in the end,
and on the way nothing is over-committed, bound twice, left half bound, or kept from the user.

HOPWISE_LONG=1 asks more of each.
"""

from __future__ import annotations

import random
import threading
import time

import pytest
from fault_proxy import Answer, Cut, Delay, Hang, Match, Swallow, Trickle, WatchError
from hopcluster import Cluster, Options
from support import (
    GPUS,
    HOPWISE,
    LONG,
    SHORT_LEASE,
    USUAL_FLAGS,
    User,
    await_record,
    client_of,
    eventually,
    for_a_while,
    free_lease,
    hard,
    holder,
    records,
)
from witness import Witness

NODES = 8
GANGS = 4
GANG_SIZE = NODES * GPUS // GANGS  # they fill the floor to the last GPU
# What a gang may stay half bound while requests fail: bind time-outs and back-offs, not for ever.
HALF_BOUND_S = 45
RECOVERS_S = 60

BINDING = Match("POST", r"/binding$")
WATCH = Match("GET", watch=True)
# What a watch of pods, and one of everything, looks like to a rule.
RESOURCES = ("pods", "nodes", "podgroups", "hypernodes", "queues", "priorityclasses")


class Load:
    """Gangs that exactly fill the floor, and the judgement of what became of them."""

    def __init__(self, user: User, witness: Witness) -> None:
        self.user = user
        self.witness = witness

    def floor(self) -> None:
        self.user.floor(NODES, per_leaf=2, leaves_per_spine=2)

    def send(self, *numbers: int) -> None:
        for number in numbers or range(GANGS):
            name = f"band{number}"
            self.witness.expect(f"{self.user.namespace}/{name}", GANG_SIZE)
            self.user.gang(name, GANG_SIZE, gpus=1, topology=hard(3))

    def settle(self, *numbers: int, within: float = RECOVERS_S) -> None:
        for number in numbers or range(GANGS):
            self.user.await_bound(f"band{number}", GANG_SIZE, within)

    def bound(self) -> int:
        return len(self.user.nodes_of("band0")) + len(self.user.nodes_of("band1"))

    def judge(self, half_bound_limit: float = HALF_BOUND_S) -> None:
        self.witness.audit(half_bound_limit=half_bound_limit, events_within=30)


@pytest.fixture
def load(user, witness):
    made = Load(user, witness)
    made.floor()
    return made


def binds_of(proxy):
    return proxy.exchanges(BINDING)


# --- watches --------------------------------------------------------------------------------------

OFFSETS = [1, 5000]
if LONG:
    OFFSETS += [0, 300] + [random.Random(seed).randrange(200_000) for seed in range(30)]


@pytest.mark.parametrize("offset", OFFSETS)
def test_watches_are_cut_at_any_byte(load, start, proxy, offset):
    """The first of each kind after so many bytes, the next after a few more."""
    for resource in RESOURCES:
        for after in (offset, 2 * offset + 7):
            match = Match("GET", rf"/{resource}$", watch=True)
            proxy.add(match, Cut(after, of_body=True, clean=after % 2 == 0), times=1)
    one = start(via=proxy, ready=False)
    load.send()
    load.settle()
    assert one.running
    load.judge()


def test_watches_are_cut_while_gangs_come(load, start, proxy):
    """Not often: a watch that keeps breaking is opened anew after ever longer waits."""
    start(via=proxy)
    proxy.add(Match("GET", r"/(pods|podgroups)$", watch=True), Cut(2000, of_body=True), times=2)
    for number in range(GANGS):
        load.send(number)
        if number == 0:
            proxy.drop_all()
    load.settle()
    load.judge()


ENDS = {
    "expired in the stream": WatchError(410),
    "expired as an answer": Answer(410, "Expired"),
}
if LONG:
    ENDS |= {"gone": WatchError(410, "Gone", "gone"), "internal": WatchError(500, "InternalError")}


@pytest.mark.parametrize("fault", ENDS.values(), ids=ENDS.keys())
def test_watches_must_begin_anew(load, start, proxy, fault):
    one = start(via=proxy)
    rules = [proxy.add(Match("GET", rf"/{each}$", watch=True), fault, times=1)
             for each in RESOURCES]  # fmt: skip
    proxy.drop_all()
    load.send()
    load.settle()
    for rule in rules:
        rule.wait(hits=1, timeout=RECOVERS_S)
    assert one.running
    load.judge()


def test_what_was_deleted_meanwhile_is_known_after_a_new_list(load, start, proxy, user):
    one = start(via=proxy)
    load.send()
    load.settle()
    proxy.refuse()
    proxy.drop_all()
    eventually(lambda: one.fetch("/readyz")[0] == 503)
    user.remove_pods("band0")
    user.delete("v1", "Node", "node0")
    user.add_node("node9")
    for each in range(GANGS):
        proxy.add(Match("GET", watch=True), WatchError(410), times=1)
    proxy.restore()
    user.gang("next", 4, gpus=1)
    user.await_bound("next", 4, RECOVERS_S)
    assert "node0" not in user.nodes_of("next")
    assert one.running


# --- answers --------------------------------------------------------------------------------------


def test_binds_that_conflict_are_looked_into(load, start, proxy):
    rule = proxy.add(BINDING, Answer(409, "Conflict"), times=20)
    start(via=proxy)
    load.send()
    load.settle()
    assert rule.hits == 20
    load.judge()


def test_a_throttled_client_waits_as_long_as_it_is_told(load, start, proxy):
    start(via=proxy)
    rule = proxy.add(BINDING, Answer(429, "TooManyRequests", retry_after=2), times=16)
    load.send(0)
    load.settle(0)
    load.judge()
    assert rule.hits > 0
    refused = [e for e in binds_of(proxy) if e.status == 429]
    for each in refused:
        later = [e.started for e in binds_of(proxy)
                 if e.path == each.path and e.started > each.started]  # fmt: skip
        # A little less: the clock starts before the answer is on its way.
        assert min(later) - each.ended >= 1.9, each.path


@pytest.mark.parametrize("status", [500, 503, 504] if LONG else [500])
def test_a_server_that_often_fails(load, start, proxy, status):
    one = start(via=proxy)
    proxy.add(Match(), Answer(status), probability=0.3, seed=status)
    load.send()
    load.settle()
    proxy.restore()
    assert one.running
    load.judge()


def test_a_server_that_always_fails_for_a_while(load, start, proxy):
    one = start(via=proxy)
    with proxy.add(Match(), Answer(500)):
        load.send()
        for_a_while(lambda: None, 3)
        assert load.bound() == 0
        assert len(proxy.exchanges()) < 1000, "it does not hammer"
    load.settle()
    assert one.running
    load.judge()


def test_slow_answers_are_no_failures(load, start, proxy):
    start(via=proxy)
    proxy.add(BINDING, Delay(1.0), probability=0.5)
    proxy.add(WATCH, Trickle(1000, 0.02))
    load.send()
    load.settle()
    proxy.wait_until(lambda: all(e.ended for e in binds_of(proxy)), RECOVERS_S, "all answered")
    assert {e.status for e in binds_of(proxy)} == {201}
    assert len(binds_of(proxy)) == GANGS * GANG_SIZE, "each once"
    load.judge()


def test_requests_that_arrive_late(load, start, proxy):
    start(via=proxy)
    proxy.add(BINDING, Delay(1.5, before=True), probability=0.5)
    load.send()
    load.settle()
    load.judge()


def test_a_bind_whose_answer_is_lost_has_happened(load, start, proxy):
    rule = proxy.add(BINDING, Swallow(), times=20)
    start(via=proxy)
    load.send()
    load.settle()
    assert rule.hits == 20
    load.judge()
    done = [e.path for e in binds_of(proxy) if e.upstream_status == 201]
    assert len(done) == len(set(done)) == GANGS * GANG_SIZE


@pytest.mark.parametrize("fault", [Hang(), Swallow(hang=True)], ids=["before", "after"])
def test_binds_that_are_never_answered(load, start, proxy, fault):
    rule = proxy.add(BINDING, fault, times=4)
    start(via=proxy)
    load.send()
    load.settle()
    assert rule.hits == 4
    load.judge()


def test_writes_of_status_and_events_that_fail_are_repeated(load, start, proxy, user):
    start(via=proxy)
    for path in (r"/events$", r"/podgroups/", r"/status$"):
        for fault in (Answer(500), Swallow()):
            proxy.add(Match(path=path, where=lambda e: e.method != "GET"), fault, times=10)
    load.send()
    load.settle()
    load.judge()
    for number in range(GANGS):
        eventually(
            lambda number=number: user.group(f"band{number}").get("status", {}).get("running")
            == GANG_SIZE,
            RECOVERS_S,
        )


def test_pod_groups_that_others_write_too(load, start, proxy, user):
    """A conflict is settled by what stands there, and what the other wrote stays."""
    start(via=proxy)
    proxy.add(Match("PATCH", r"/podgroups/"), Answer(409, "Conflict"), times=6)
    load.send(0)
    note = {"metadata": {"annotations": {"example.com/note": "mine"}}}
    user.patch("scheduling.volcano.sh/v1beta1", "PodGroup", "band0", note)
    load.settle(0)
    eventually(
        lambda: user.group("band0").get("status", {}).get("phase") == "Running", RECOVERS_S
    )
    assert user.group("band0")["metadata"]["annotations"]["example.com/note"] == "mine"


# --- connections ----------------------------------------------------------------------------------


def test_connections_are_lost_while_binds_are_under_way(load, start, proxy):
    one = start(via=proxy)
    load.send()
    for number in range(8):
        proxy.wait_until(lambda n=number: len(binds_of(proxy)) > 6 * n, RECOVERS_S)
        proxy.drop_all()
    load.settle()
    assert one.running
    load.judge()


def test_half_open_connections(load, start, proxy):
    """They answer nothing and are not closed. Requests give up by their own time; a watch is
    closed by the network at last, here after some seconds."""
    one = start(via=proxy)
    load.send(0, 1)
    proxy.wait_until(lambda: len(binds_of(proxy)) > 4, RECOVERS_S)
    proxy.half_open()
    load.send(2, 3)
    for_a_while(lambda: None, 4)
    proxy.restore()
    load.settle()
    assert one.running
    load.judge()


@pytest.mark.skipif(not LONG, reason="waits for the watchdog: more than three minutes")
def test_a_watch_that_is_silent_for_ever_is_given_up(load, start, proxy):
    one = start(via=proxy)
    proxy.half_open()
    load.send()
    load.settle(within=300)
    assert one.running
    load.judge()


def test_a_network_that_comes_and_goes(load, start, proxy):
    one = start(via=proxy)
    load.send()
    for _ in range(3):
        proxy.refuse()
        proxy.drop_all()
        for_a_while(lambda: None, 0.7)
        proxy.restore()
        for_a_while(lambda: None, 0.7)
    load.settle()
    assert one.running
    load.judge()


# --- the API server itself ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_plane():
    """A control plane that may be restarted and lose its data."""
    with Cluster(Options(kube_scheduler=False, controllers=False)) as made:
        yield made


def make_namespace(user):
    meta = {"name": user.namespace}
    user.plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


@pytest.fixture
def own(own_plane, tmp_path):
    """(user, witness, scheduler) there; nobody takes namespaces away, so each has its own."""
    user = User(own_plane, client_of(own_plane), f"t{time.monotonic_ns()}")
    make_namespace(user)
    one = own_plane.hopwise(HOPWISE, *USUAL_FLAGS, name=f"hopwise-{tmp_path.name}")
    one.start()
    one.wait_ready()
    with Witness(own_plane) as witness:
        yield user, witness, one
    one.stop()
    user.clean()


@pytest.mark.parametrize("wipe", [False, True], ids=["with its data", "without its data"])
def test_the_api_server_is_restarted(own_plane, own, wipe):
    user, witness, one = own
    load = Load(user, witness)
    load.floor()
    load.send(0, 1)
    load.settle(0, 1)
    own_plane.stop_api_server(wipe)
    eventually(lambda: one.fetch("/readyz")[0] == 503)
    own_plane.start_api_server()
    if wipe:
        own_plane.apply_manifests()
        make_namespace(user)
        load.floor()
        load.send(0, 1)
    load.send(2, 3)
    load.settle()
    one.wait_ready(RECOVERS_S)
    assert one.running
    load.judge()


# --- the scheduler itself -------------------------------------------------------------------------


def test_a_leader_that_sleeps_beyond_its_lease_stops(load, start, make_proxy):
    """What it had decided before it slept is not sent after it woke."""
    own, other = make_proxy(), make_proxy()
    sleeper = start(*SHORT_LEASE, via=own)
    follower = start(*SHORT_LEASE, via=other)
    own.add(BINDING, Delay(0.2, before=True))
    load.send()
    own.wait_until(lambda: len(binds_of(own)) > 8, RECOVERS_S)
    sleeper.pause()
    try:
        await_record(follower, "leading", RECOVERS_S)
        load.settle()
    finally:
        woke = time.monotonic()
        sleeper.resume()
    await_record(sleeper, "lease_lost")
    late = [e for e in binds_of(own) if e.started > woke + 0.5]
    assert not late, "it binds nothing more"
    assert sleeper.running, "it stands by"
    load.judge()


def test_a_leader_that_cannot_renew_stops_before_another_leads(load, start, make_proxy, user):
    own = make_proxy()
    cut_off = start(*SHORT_LEASE, via=own)
    follower = start(*SHORT_LEASE)
    own.refuse()
    own.drop_all()
    lost = await_record(cut_off, "lease_lost", RECOVERS_S)
    led = await_record(follower, "leading", RECOVERS_S)
    # Both on this machine, so by one clock.
    assert lost["time"] < led["time"]
    load.send()
    load.settle()
    load.judge()
    assert cut_off.running
    assert cut_off.fetch("/readyz")[0] == 503


def test_who_gets_no_answer_is_not_ready(start, proxy):
    """The connections stand, and nothing comes: it knows neither the cluster nor who leads."""
    one = start(*SHORT_LEASE, via=proxy)
    await_record(one, "leading", RECOVERS_S)
    silence = proxy.add(Match(), Hang())
    proxy.drop_all()
    await_record(one, "lease_lost", RECOVERS_S)
    status, text = eventually(
        lambda: (answer := one.fetch("/readyz"))[0] == 503 and answer, RECOVERS_S, "not ready"
    )
    assert "leases.coordination.k8s.io" in text
    assert one.fetch("/healthz")[0] == 200, "it is well itself"
    silence.remove()
    proxy.drop_all()
    eventually(lambda: one.fetch("/readyz")[0] == 200, RECOVERS_S, "ready again")


def test_a_leader_that_was_cut_off_leads_again(load, start, proxy):
    """Nobody else stands: the same process goes on where the cluster is."""
    one = start(*SHORT_LEASE, via=proxy)
    proxy.add(BINDING, Delay(0.1, before=True))
    load.send(0, 1)
    proxy.wait_until(lambda: len(binds_of(proxy)) > 4, RECOVERS_S)
    proxy.refuse()
    proxy.drop_all()
    await_record(one, "lease_lost", RECOVERS_S)
    load.send(2, 3)
    eventually(lambda: one.fetch("/readyz")[0] == 503)
    proxy.restore()
    load.settle()
    assert one.running
    one.wait_ready(RECOVERS_S)
    load.judge()


def test_two_leaders_at_once(load, start, user):
    """Nobody elects: both decide and bind. The server refuses the second bind of a pod, and the
    same events lead both to the same plan."""
    pair = [start("--leader-elect=false"), start("--leader-elect=false")]
    load.send()
    load.settle()
    load.judge()
    for one in pair:
        assert one.running
        assert one.stop() == 0
    assert holder(user) == ""


def test_a_gang_that_cannot_be_completed_gives_its_room_back(user, start, proxy, plane):
    """Half of it bound, the other half has no room any more: nobody holds room for ever."""
    user.floor(2)
    labels = {"app": "band"}
    start("--gang-deadline=3s", via=proxy)
    template = {
        "metadata": {"labels": labels, "annotations": {"scheduling.k8s.io/group-name": "band"}},
        "spec": {
            "schedulerName": "hopwise",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "x",
                            "resources": {"limits": {"nvidia.com/gpu": str(GPUS)}}}],
        },
    }  # fmt: skip
    # One bind gets through, the other is refused until its node is gone.
    failing = {"hits": 0}

    def second(exchange):
        failing["hits"] += 1
        return failing["hits"] > 1

    rule = proxy.add(Match("POST", r"/binding$", where=second), Answer(500))
    user.gang("band", 2, pods=False)
    user.create({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "band"},
        "spec": {"replicas": 2, "selector": {"matchLabels": labels}, "template": template},
    })  # fmt: skip
    rule.wait(hits=1, timeout=RECOVERS_S)
    (held,) = eventually(lambda: (n := user.nodes_of("band")) and len(n) == 1 and n)
    other = "node1" if held == "node0" else "node0"
    user.delete("v1", "Node", other)
    eventually(lambda: user.nodes_of("band") == [], RECOVERS_S, "the room is given back")
    event = user.await_event("Evict")
    assert "not completed" in event["message"]
    rule.remove()
    user.add_node(other)
    user.await_bound("band", 2, RECOVERS_S)


@pytest.mark.parametrize("late", [r"/pods$", r"/leases/"], ids=["the pods", "the Lease"])
def test_events_that_a_dead_leader_owed_are_told_by_the_next(load, start, make_proxy, plane, late):
    """Whichever it learns last: which pods are bound, or that it leads."""
    first, second = make_proxy(), make_proxy()
    dying = start(via=first)
    first.add(Match("POST", r"/events$"), Hang())
    load.send(0, 1)
    load.settle(0, 1)
    dying.kill()
    free_lease(plane)
    second.add(Match(path=late), Delay(1.0, before=True), times=1)
    start(via=second)
    load.judge()


ROUNDS = 200 if LONG else 20


def test_the_leader_is_killed_again_and_again(user, start, witness):
    """At a random moment while gangs bind; one stands by, and a new one is started each time."""
    moments = random.Random(17)
    user.floor(NODES)
    leader, standby = start(*SHORT_LEASE), start(*SHORT_LEASE)
    for number in range(ROUNDS):
        one_round(user, witness, (leader, standby), number, moments)
        leader, standby = standby, leader


def kill_while_it_binds(user, witness, leader, binds):
    """Returns a thread that ends the leader once so many pods of the user are bound."""

    def wait_and_kill() -> None:
        witness.wait_bound(user.namespace, binds, RECOVERS_S)
        leader.kill()

    thread = threading.Thread(target=wait_and_kill)
    thread.start()
    return thread


def one_round(user, witness, pair, number, moments):
    # Together they fill the floor. Each within one spine: small ones without a rule, decided while
    # the large one is still being made, could leave it half a spine here and half a spine there.
    gangs = {f"r{number}a": 32, f"r{number}b": 16, f"r{number}c": 16}
    thread = kill_while_it_binds(user, witness, pair[0], moments.randrange(1, 64))
    for name, size in gangs.items():
        witness.expect(f"{user.namespace}/{name}", size)
        user.gang(name, size, gpus=1, topology=hard(2))
    thread.join()
    for name, size in gangs.items():
        user.await_bound(name, size, RECOVERS_S)
    witness.audit(half_bound_limit=15, events_within=20)
    user.remove_pods()
    user.forget_events()
    pair[0].start()


def test_the_only_one_is_killed_and_started_again(user, start, witness):
    """Nobody was there to see what the dead one had done."""
    moments = random.Random(5)
    user.floor(NODES)
    one = start(*SHORT_LEASE)
    for number in range(30 if LONG else 3):
        witness.expect(f"{user.namespace}/r{number}", 64)
        thread = kill_while_it_binds(user, witness, one, moments.randrange(1, 64))
        user.gang(f"r{number}", 64, gpus=1)
        thread.join()
        one.start()
        user.await_bound(f"r{number}", 64, RECOVERS_S)
        witness.audit(half_bound_limit=20, events_within=20)
        user.remove_pods()
        user.forget_events()
