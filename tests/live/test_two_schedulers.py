"""Hopwise beside another scheduler, and beside itself."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import pytest
from hopcluster.api import ApiError
from hopcluster.objects import pod
from support import (
    GPUS,
    SHORT_LEASE,
    await_record,
    condition_of,
    eventually,
    holder,
    name_of,
    node_of,
    records,
)

ANNOUNCED = "another scheduler serves the same scheduler name"


# --- kube-scheduler on the same nodes -------------------------------------------------------------


def test_each_sees_what_the_other_has_placed(user, start, witness):
    start()
    user.floor(4)
    theirs = [pod(f"theirs-{i}", scheduler="default-scheduler", gpus=GPUS) for i in range(2)]
    user.create_all(theirs)
    taken = user.await_bound("theirs", 2)
    user.gang("whole", 4)
    user.await_told("whole")
    user.gang("half", 2)
    ours = user.await_bound("half", 2)
    assert not set(ours) & set(taken)
    user.create(pod("late", scheduler="default-scheduler", gpus=GPUS))
    eventually(lambda: condition_of(user.pod("late"), "PodScheduled"), what="kube-scheduler looked")
    user.remove_pods("half")
    eventually(lambda: node_of(user.pod("late")), what="kube-scheduler uses the freed room")
    user.stays_whole_unbound("whole")
    user.remove_pods("theirs")
    user.delete("v1", "Pod", "late")
    user.await_bound("whole", 4)
    witness.audit(half_bound_limit=5)


def test_both_work_through_their_pods_at_the_same_time(user, start, witness):
    """On nodes of their own each, so that a race for room does not decide."""
    start()
    user.floor(8)
    here = {"nodeSelector": {"kubernetes.io/hostname": "node7"}}
    user.create_all(
        pod(f"theirs-{i}", scheduler="default-scheduler", cpu="100m", **here) for i in range(40)
    )
    for number in range(4):
        user.gang(f"ours{number}", 8, gpus=1)
    for number in range(4):
        user.await_bound(f"ours{number}", 8)
    user.await_bound("theirs", 40)
    witness.audit(half_bound_limit=5)
    for each in user.pods("theirs"):
        messages = [e["message"] for e in user.events("Scheduled", about=each)]
        assert len(messages) <= 1, "only kube-scheduler speaks of its pods"


# --- one leads, one stands by ---------------------------------------------------------------------


def pair(start, *flags):
    leader = start(*flags)
    standby = start(*flags)
    return leader, standby


def test_one_leads_and_the_other_stands_by(user, start):
    leader, standby = pair(start)
    identity = await_record(leader, "leading")["identity"]
    assert holder(user) == identity
    eventually(lambda: standby.fetch("/readyz")[0] == 200, what="the one that stands by is ready")
    assert f"{identity} leads" in standby.fetch("/readyz")[1]
    assert leader.metric("hopwise_leader") == 1
    assert standby.metric("hopwise_leader") in (0, None)
    user.floor(2)
    user.gang("band", 2)
    user.await_bound("band", 2)
    assert not records(standby, "gang_placed")


def test_an_orderly_end_hands_over_at_once(user, start, witness):
    """The Lease is given back: nobody waits for its 15 s."""
    leader, standby = pair(start)
    user.floor(4)
    user.gang("first", 2)
    user.await_bound("first", 2)
    started = time.monotonic()
    assert leader.stop() == 0
    await_record(standby, "leading", within=10)
    assert time.monotonic() - started < 8
    user.gang("next", 2)
    user.await_bound("next", 2)
    witness.audit(half_bound_limit=5)


def test_a_killed_leader_is_followed_by_the_other(user, start, witness):
    leader, standby = pair(start, *SHORT_LEASE)
    user.floor(8)
    for number in range(4):
        witness.expect(f"{user.namespace}/band{number}", 16)
        user.gang(f"band{number}", 16, gpus=1)
    leader.kill()
    killed = time.monotonic()
    await_record(standby, "leading")
    # The Lease's 2 s, a look every 0.2 s, and what a busy machine adds.
    assert time.monotonic() - killed < 6
    for number in range(4):
        user.await_bound(f"band{number}", 16)
    witness.audit(half_bound_limit=10)


def test_a_signal_ends_it_within_seconds(start):
    one = start()
    started = time.monotonic()
    assert one.stop() == 0
    assert time.monotonic() - started < 8
    assert await_record(one, "stopping")


# --- another scheduler of the same name -----------------------------------------------------------


@pytest.fixture
def volcano_lease(plane):
    """Renews a Lease as Volcano's scheduler does; stops when told."""
    with contextlib.suppress(ApiError):
        plane.api.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "volcano-system"}}
        )
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "vc-scheduler", "namespace": "volcano-system"},
        "spec": {
            "holderIdentity": "vc-scheduler-7c9",
            "leaseDurationSeconds": 3,  # Volcano takes 15; it is watched for that long
            "leaseTransitions": 1,
        },
    }
    plane.api.create(lease)
    stop = threading.Event()

    def renew() -> None:
        while not stop.wait(0.5):
            now = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
            plane.api.patch(lease, {"spec": {"renewTime": f"{now}.{time.time_ns() % 1000000:06}Z"}})

    thread = threading.Thread(target=renew)
    thread.start()

    def end() -> None:
        stop.set()
        thread.join(10)

    yield end
    end()
    plane.api.delete(lease)


def test_it_refuses_to_take_over_from_a_living_scheduler(start, volcano_lease):
    one = start(ready=False)
    assert one.wait(40) == 1
    (record,) = records(one, "cannot_start")
    for word in ("vc-scheduler-7c9", "volcano-system/vc-scheduler", "--takeover", ANNOUNCED):
        assert word in record["error"]


@pytest.mark.parametrize(
    "flags", [("--takeover",), ("--scheduler-name=hopwise",)], ids=["told to", "by another name"]
)
def test_it_starts_beside_a_living_scheduler(start, volcano_lease, flags):
    start(*flags)


def test_another_hopwise_of_the_same_name_is_seen_by_its_lease(start):
    start("--leader-elect-resource-name=first")
    one = start("--leader-elect-resource-name=second", "--scheduler-name=hopwise", ready=False)
    assert one.wait(40) == 1
    (record,) = records(one, "cannot_start")
    assert "hopwise-system/first" in record["error"]
    start("--leader-elect-resource-name=third", "--scheduler-name=fleet")


def test_a_signal_ends_it_while_it_looks_for_others(start, volcano_lease):
    one = start(ready=False)
    await_record(one, "connecting")
    time.sleep(0.5)
    started = time.monotonic()
    assert one.stop() == 0
    assert time.monotonic() - started < 2


def test_it_starts_when_the_lease_is_no_longer_renewed(start, volcano_lease):
    volcano_lease()
    one = start(ready=False)
    one.wait_ready(40)


def test_names_that_were_not_given_are_left_alone(user, start):
    start("--scheduler-name=fleet")
    user.floor(2)
    user.create(pod("mine", scheduler="fleet"))
    user.create(pod("theirs", scheduler="hopwise"))
    eventually(lambda: node_of(user.pod("mine")))
    assert [name_of(p) for p in user.pods() if node_of(p)] == ["mine"]


def test_an_interrupt_ends_it_too(start):
    one = start()
    os.kill(one.pid, signal.SIGINT)
    assert one.wait(15) == 0
