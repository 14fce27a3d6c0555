"""Preemption and reclaim on a real API server: who goes, how, and who runs in their place."""

import pytest

from support import (
    VOLCANO,
    condition_of,
    eventually,
    hard,
    name_of,
    priority_class,
    queue,
)

CONF = """
actions: "allocate, backfill, reclaim, preempt"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}, {name: capacity}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: binpack}, {name: network-topology-aware}]
"""


VALUES = (5, 10, 500)


@pytest.fixture
def classes(user):
    for value in VALUES:
        user.create(priority_class(f"{user.namespace}-{value}", value))
    yield lambda value: f"{user.namespace}-{value}"
    for value in VALUES:
        user.delete("scheduling.k8s.io/v1", "PriorityClass", f"{user.namespace}-{value}")


@pytest.fixture
def evicting(start, tmp_path):
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(CONF, encoding="utf-8")
    return start(f"--scheduler-conf={path}")


def run(user, classes, name, size, value, minimum=None, topology=None):
    user.gang(name, size, minimum, topology=topology, priorityClassName=classes(value),
              pod_spec={"priorityClassName": classes(value)})  # fmt: skip


def test_a_gang_takes_the_leaf_that_costs_least(user, classes, evicting):
    """node0 node1 | node2 node3: one leaf holds a firm pod, the other two that may go."""
    user.floor(4)
    run(user, classes, "firm", 1, 500)
    home = user.await_bound("firm", 1)
    run(user, classes, "low", 3, 10, minimum=1)
    user.await_bound("low", 3)
    run(user, classes, "high", 2, 500, topology=hard(1))
    nodes = user.await_bound("high", 2)
    assert len(set(nodes)) == 2 and not set(nodes) & set(home)
    assert len(user.pods("low")) == 1, "one was not in the way"
    told = user.await_event("Evict", about=user.group("low"))
    assert told["message"].startswith(f"2 pods: preempt: {user.namespace}/high")
    gone = [e for e in user.events("Evict") if e["involvedObject"]["kind"] == "Pod"]
    assert len(gone) == 2 and all("priority 500" in e["message"] for e in gone)


def test_while_they_go_the_place_is_held_and_told(user, classes, evicting):
    """A finalizer keeps the victim for a while, as a long grace period would."""
    user.floor(1)
    run(user, classes, "low", 1, 10)
    user.await_bound("low", 1)
    user.patch("v1", "Pod", "low-0", {"metadata": {"finalizers": ["example.com/slow"]}})
    run(user, classes, "high", 1, 500)

    def nominated():
        high = user.pod("high-0")
        assert high["status"].get("nominatedNodeName") == "node0"
        return "waits for 1 pod" in condition_of(high, "PodScheduled")["message"]

    eventually(nominated, what="high-0 is nominated")
    low = user.pod("low-0")
    assert low["metadata"].get("deletionTimestamp")
    assert condition_of(low, "DisruptionTarget")["status"] == "True"
    user.stays_whole_unbound("high")
    user.patch("v1", "Pod", "low-0", {"metadata": {"finalizers": None}})
    user.await_bound("high", 1)


def test_a_disruption_budget_is_kept_and_another_goes(user, classes, evicting):
    """The lesser one would go first; only the API server knows that it may not."""
    user.floor(2)
    run(user, classes, "other", 1, 10)
    user.await_bound("other", 1)
    run(user, classes, "guarded", 1, 5)
    user.await_bound("guarded", 1)
    user.patch("v1", "Pod", "guarded-0", {"metadata": {"labels": {"guard": "yes"}}})
    user.create({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                 "metadata": {"name": "none"},
                 "spec": {"minAvailable": 1,
                          "selector": {"matchLabels": {"guard": "yes"}}}})  # fmt: skip

    def counted():
        status = user.get("policy/v1", "PodDisruptionBudget", "none").get("status") or {}
        return status.get("expectedPods") == 1

    eventually(counted, what="the budget counts its pod")
    run(user, classes, "high", 1, 500)
    user.await_bound("high", 1)
    assert [name_of(p) for p in user.pods("guarded")] == ["guarded-0"]
    assert user.pods("other") == []
    assert 'result="forbidden"' in evicting.fetch("/metrics")[1]


def test_a_queue_takes_back_what_it_deserves(user, evicting):
    user.floor(4)
    lender, owner = f"lender-{user.namespace}", f"owner-{user.namespace}"
    for name in (lender, owner):
        user.create(queue(name, deserved={"nvidia.com/gpu": "16"}, reclaimable=True))
    user.gang("loan", 4, 1, queue=lender)
    user.await_bound("loan", 4)
    user.gang("due", 3, 2, queue=owner)
    user.await_bound("due", 2)
    assert len(user.pods("loan")) == 2
    eventually(lambda: user.group("due")["status"].get("phase") == "Running", what="due runs")
    assert user.get(VOLCANO, "Queue", owner)["spec"]["deserved"]["nvidia.com/gpu"] == "16"


def test_a_scheduler_that_is_killed_meanwhile_evicts_nobody_twice(user, classes, evicting):
    """The next one finds them on their way out, and holds their room anew."""
    user.floor(2)
    run(user, classes, "low", 2, 10, minimum=1)
    user.await_bound("low", 2)
    for number in range(2):
        user.patch("v1", "Pod", f"low-{number}", {"metadata": {"finalizers": ["example.com/slow"]}})
    run(user, classes, "high", 1, 500)
    going = eventually(lambda: [name_of(p) for p in user.pods("low")
                                if p["metadata"].get("deletionTimestamp")])  # fmt: skip
    evicting.kill()
    evicting.start()
    evicting.wait_ready()
    eventually(lambda: user.pod("high-0")["status"].get("nominatedNodeName"), what="nominated")
    user.stays_whole_unbound("high")
    leaving = [name_of(p) for p in user.pods("low") if p["metadata"].get("deletionTimestamp")]
    assert leaving == going and len(going) == 1
    for number in range(2):
        user.patch("v1", "Pod", f"low-{number}", {"metadata": {"finalizers": None}})
    user.await_bound("high", 1)
    assert len(user.pods("low")) == 1
