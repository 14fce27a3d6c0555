"""A gang that waits starts when, and only when, the change comes that it waits for."""

from __future__ import annotations

import time

import pytest
from hopcluster.objects import hypernode, pod
from support import (
    GPUS,
    TOPOLOGY,
    VOLCANO,
    condition_of,
    eventually,
    for_a_while,
    hard,
    index_of,
    name_of,
    node_of,
    uid_of,
)

pytestmark = pytest.mark.usefixtures("scheduler")


def waits(user, name="band", *, words=()):
    """All of the gang waits, says so with these words, and stays whole."""
    for each in user.await_told(name):
        message = condition_of(each, "PodScheduled")["message"]
        assert all(word in message for word in words), message
    user.stays_whole_unbound(name, 0.5)


# --- nodes ----------------------------------------------------------------------------------------


def test_a_node_is_added(user):
    user.floor(2)
    user.gang("band", 3)
    waits(user)
    user.add_node("node2")
    assert user.await_bound("band", 3) == ["node0", "node1", "node2"]


def test_a_decision_follows_the_event_and_not_a_period(user):
    """From the answer that made the node ready to the last bind: far below a second, each time."""
    user.floor(2)
    took = []
    for number in range(3):
        user.gang(f"band{number}", 3)
        waits(user, f"band{number}")
        user.add_node("extra")
        start = time.monotonic()
        user.await_bound(f"band{number}", 3)
        took.append(time.monotonic() - start)
        user.remove_pods()
        user.delete("v1", "Node", "extra")
        eventually(lambda: "extra" not in [name_of(n) for n in user.list("v1", "Node")])
    assert min(took) < 0.5, took


def test_a_node_is_removed_while_a_gang_waits(user):
    user.floor(4)
    user.create(pod("guest", gpus=GPUS, nodeSelector={"kubernetes.io/hostname": "node3"}))
    eventually(lambda: node_of(user.pod("guest")))
    user.gang("band", 4)
    waits(user)
    user.delete("v1", "Node", "node0")
    user.delete("v1", "Pod", "guest")
    waits(user)
    user.add_node("node0")
    user.await_bound("band", 4)


def test_a_node_with_members_is_removed(user):
    """Its pods are gone with it; the gang ran, so the others stay and the missing ones come back
    when somebody makes them."""
    user.floor(4)
    user.gang("band", 3)
    nodes = user.await_bound("band", 3)
    eventually(lambda: user.group("band").get("status", {}).get("phase") == "Running")
    lost = next(p for p in user.pods("band") if node_of(p) == nodes[0])
    kept = {uid_of(p) for p in user.pods("band")} - {uid_of(lost)}
    user.delete("v1", "Node", nodes[0])
    user.delete("v1", "Pod", name_of(lost))
    user.members("band", [int(name_of(lost).rpartition("-")[2])])
    user.await_bound("band", 3)
    assert kept <= {uid_of(p) for p in user.pods("band")}


def test_a_cordoned_node_counts_again_when_it_is_uncordoned(user, plane):
    user.floor(2)
    plane.kubectl("cordon", "node1")
    user.gang("band", 2)
    waits(user)
    plane.kubectl("uncordon", "node1")
    user.await_bound("band", 2)


def test_a_taint_goes(user, plane):
    user.floor(2)
    plane.kubectl("taint", "node", "node1", "repair=yes:NoSchedule")
    user.gang("band", 2)
    waits(user)
    plane.kubectl("taint", "node", "node1", "repair-")
    user.await_bound("band", 2)


def test_a_label_comes(user, plane):
    user.floor(3)
    plane.kubectl("label", "node", "node1", "model=h200")
    user.gang("band", 2, pod_spec={"nodeSelector": {"model": "h200"}})
    waits(user)
    plane.kubectl("label", "node", "node2", "model=h200")
    assert user.await_bound("band", 2) == ["node1", "node2"]


def test_a_kubelet_goes_silent_and_comes_back(user, plane):
    user.floor(2)
    plane.set_node_ready("node1", False)
    eventually(
        lambda: condition_of(user.get("v1", "Node", "node1"), "Ready")["status"] == "Unknown"
    )
    user.gang("band", 2)
    waits(user)
    plane.set_node_ready("node1", True)
    user.await_bound("band", 2)


def test_a_node_grows(user):
    user.floor(2, gpus=4)
    user.gang("band", 2)
    waits(user)
    for name in ("node0", "node1"):
        room = {"nvidia.com/gpu": str(GPUS)}
        user.patch("v1", "Node", name, {"status": {"capacity": room, "allocatable": room}},
                   "status")  # fmt: skip
    user.await_bound("band", 2)


# --- pods -----------------------------------------------------------------------------------------


def test_room_is_freed_by_a_deletion(user):
    user.floor(2)
    user.gang("first", 2)
    user.await_bound("first", 2)
    user.gang("band", 2)
    waits(user, words=["first"])
    user.remove_pods("first")
    user.await_bound("band", 2)


def test_room_is_freed_by_an_end(user):
    user.floor(2)
    user.gang("first", 2, annotations={"hopwise.dev/run-time": "2s"})
    user.await_bound("first", 2)
    user.gang("band", 2)
    user.await_bound("band", 2)
    assert {p["status"]["phase"] for p in user.pods("first")} == {"Succeeded"}


def test_the_last_member_comes(user):
    user.floor(3)
    user.gang("band", 3, pods=False)
    user.members("band", range(2))
    user.stays_whole_unbound("band")
    user.members("band", [2])
    user.await_bound("band", 3)


def test_a_gate_is_taken_away(user):
    user.floor(2)
    user.gang("band", 2, pod_spec={"schedulingGates": [{"name": "example.com/data"}]})
    user.stays_whole_unbound("band")
    for number in range(2):
        user.patch("v1", "Pod", f"band-{number}", {"spec": {"schedulingGates": None}})
    user.await_bound("band", 2)


def test_the_minimum_is_lowered(user):
    user.floor(2)
    user.gang("band", 3)
    waits(user)
    user.patch(VOLCANO, "PodGroup", "band", {"spec": {"minMember": 2}})
    user.await_bound("band", 2)


def test_a_gang_that_waits_is_deleted(user):
    user.floor(2)
    user.gang("band", 3)
    waits(user)
    user.remove_pods("band")
    user.delete(VOLCANO, "PodGroup", "band")
    user.gang("next", 2)
    user.await_bound("next", 2)


def test_a_kubelet_refuses_a_pod(user):
    """The pod failed; one made anew is placed elsewhere, as the node is avoided for a while."""
    user.floor(2)
    refusal = {"test.hopwise.dev/refuse": "OutOfcpu"}
    user.create(pod("picky", gpus=GPUS, annotations=refusal))
    first = eventually(lambda: (p := user.pod("picky"))["status"]["phase"] == "Failed" and p)
    user.delete("v1", "Pod", "picky")
    # By another name: KWOK, late with the first one, would delete this one too.
    user.create(pod("picky-too", gpus=GPUS))
    second = eventually(lambda: node_of(user.pod("picky-too")))
    assert second != node_of(first)


# --- the fabric -----------------------------------------------------------------------------------


def leaf_of(user, *nodes):
    """A change of leaf s0: its nodes are these now."""
    members = hypernode("s0", 1, "leaf", nodes=nodes)["spec"]["members"]
    user.patch(TOPOLOGY, "HyperNode", "s0", {"spec": {"members": members}})


def test_a_leaf_grows_while_a_gang_waits_for_one(user):
    user.floor(4)
    user.add_node("node9")
    user.gang("band", 3, topology=hard(1))
    waits(user)
    leaf_of(user, "node0", "node1", "node9")
    assert user.await_bound("band", 3) == ["node0", "node1", "node9"]


def test_a_leaf_shrinks_before_a_gang_comes(user):
    user.floor(4)
    leaf_of(user, "node0")
    user.gang("band", 2, topology=hard(1))
    assert user.await_bound("band", 2) == ["node2", "node3"]


def test_a_leaf_is_removed_and_comes_back(user):
    user.floor(4)
    user.gang("guest", 2, topology=hard(1))
    taken = index_of(user.await_bound("guest", 2)[0]) // 2
    free = 1 - taken
    user.delete(TOPOLOGY, "HyperNode", f"s{free}")
    user.gang("band", 2, topology=hard(1))
    waits(user)
    nodes = [f"node{2 * free}", f"node{2 * free + 1}"]
    user.create(hypernode(f"s{free}", 1, "leaf", nodes=nodes))
    assert user.await_bound("band", 2) == nodes


def test_the_fabric_is_described_after_the_gang_came(user):
    """Of a gang that must lie in one leaf nobody starts before a leaf is known that holds it."""
    user.floor(4, hypernodes=False)
    user.create(hypernode("lone", 1, "leaf", nodes=["node0"]))
    user.gang("band", 2, topology=hard(1))
    waits(user)
    user.create(hypernode("pair", 1, "leaf", nodes=["node2", "node3"]))
    assert user.await_bound("band", 2) == ["node2", "node3"]


def test_a_running_gang_stays_when_its_leaf_is_taken_apart(user):
    user.floor(4)
    user.gang("band", 2, topology=hard(1))
    nodes = user.await_bound("band", 2)
    uids = {uid_of(p) for p in user.pods("band")}
    user.delete(TOPOLOGY, "HyperNode", f"s{index_of(nodes[0]) // 2}")

    def untouched():
        assert {uid_of(p) for p in user.pods("band")} == uids
        assert user.nodes_of("band") == nodes

    for_a_while(untouched)
