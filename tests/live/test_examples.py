"""The tour of README on a real cluster: examples/eight-nodes without the step that waits for hours.

  s6 core
  ├─ s4 spine: s0 (node0 node1)  s1 (node2 node3)
  └─ s5 spine: s2 (node4 node5)  s3 (node6 node7)
"""

from __future__ import annotations

import pytest
from support import ROOT, VOLCANO, condition_of, eventually, name_of, node_of
from test_cases import LiveCase

pytestmark = pytest.mark.usefixtures("scheduler", "workloads")

FOLDER = ROOT / "examples" / "eight-nodes"


class Tour:
    def __init__(self, user) -> None:
        self.user = user
        self.live = LiveCase(user)

    def step(self, name: str) -> None:
        self.live.step((FOLDER / name).read_text(encoding="utf-8"))

    def leaves_of(self, job: str) -> set[int]:
        """Of the placed pods; a leaf has two nodes."""
        return {int(node.removeprefix("node")) // 2 for node in self.user.nodes_of(job)}

    def why(self, job: str) -> str:
        groups = self.user.list(VOLCANO, "PodGroup")
        (group,) = [each for each in groups if name_of(each).startswith(f"{job}-")]
        condition = condition_of(group, "Unschedulable")
        return f"{condition['reason']}: {condition['message']}" if condition else ""


def test_the_tour(user):
    tour = Tour(user)
    tour.step("cluster.yaml")
    tour.step("1-jobs.yaml")
    for job, size in (("pair", 2), ("quad", 4), ("flexible", 2)):
        user.await_bound(job, size)
    assert len(tour.leaves_of("pair")) == 1
    assert tour.leaves_of("quad") in ({0, 1}, {2, 3}), "one spine"
    assert len(tour.leaves_of("flexible")) == 1
    assert "NeverFits: needs 3 pods in one leaf (tier 1)" in tour.why("triple")

    tour.step("3-crowded.yaml")
    eventually(lambda: "NotEnoughResources: needs 2 pods in one leaf" in tour.why("late"))
    assert not user.nodes_of("late")

    tour.step("4-leave.yaml")
    user.await_bound("late", 2)
    assert len(tour.leaves_of("late")) == 1
    assert not [pod for pod in user.pods("triple") if node_of(pod)]
