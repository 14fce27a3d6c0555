"""examples/two-leaf-pairs with kubectl, on 128 nodes that carry labels and nothing else: the fabric
is what `hopwise controller` makes of the labels, the jobs' pods are those that it makes, too.

    spinepair1
    ├── leafpair12: gpu-worker-1 … gpu-worker-64
    └── leafpair34: gpu-worker-65 … gpu-worker-128

A LeaderWorkerSet is played by hand: its PodGroup is the user's, its pods name it.
"""

from __future__ import annotations

import pytest
import yaml
from hopcluster.objects import pod
from support import ROOT, VOLCANO, User, condition_of, eventually, node_of

FOLDER = ROOT / "examples" / "two-leaf-pairs"
SPINES, LEAVES = "topology.aicloud/spine-pair", "topology.aicloud/leaf-pair"
CONF = f"""
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      rdma:
      - nodeLabel: {SPINES}
      - nodeLabel: {LEAVES}
      - nodeLabel: kubernetes.io/hostname
"""
BATCH = "batch.volcano.sh/v1alpha1"


def documents(name: str) -> list[dict]:
    """Of an example, with the tier called as the discovery calls it."""
    text = (FOLDER / name).read_text(encoding="utf-8").replace(
        "highestTierName: leaf-pair", f"highestTierName: {LEAVES}")  # fmt: skip
    found = []
    for each in yaml.safe_load_all(text):
        found += each["items"] if each["kind"] == "List" else [each]
    return found


class Floor:
    def __init__(self, user: User) -> None:
        self.user = user
        for name in ("blue", "green"):
            user.plane.kubectl("create", "namespace", name)
        for name in ("blue", "green"):
            eventually(lambda n=name: user.plane.api.list("v1", "ServiceAccount", n))
        objects = documents("cluster.yaml")
        nodes = [each for each in objects if each["kind"] == "Node"]
        for each in nodes:
            name = each["metadata"]["name"]
            pair = "12" if int(name.rpartition("-")[2]) <= 64 else "34"
            each["metadata"]["labels"] = {SPINES: "1", LEAVES: pair, "kubernetes.io/hostname": name}
            each["status"]["capacity"] = each["status"]["allocatable"]
        user.create_all(nodes)
        user.await_ready(each["metadata"]["name"] for each in nodes)
        self.apply(*(each for each in objects if each["kind"] == "Queue"))

    def apply(self, *objects: dict) -> None:
        self.user.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects))

    def example(self, name: str) -> None:
        objects = documents(name)
        sets = [each for each in objects if each["kind"] == "LeaderWorkerSet"]
        self.apply(*(each for each in objects if each not in sets))
        for each in sets:
            self.play(each)

    def play(self, workers: dict) -> None:
        """What its own controller makes of one group."""
        template = workers["spec"]["leaderWorkerTemplate"]["workerTemplate"]
        meta = workers["metadata"]
        for i in range(workers["spec"]["leaderWorkerTemplate"]["size"]):
            name = f"{meta['name']}-0" if i == 0 else f"{meta['name']}-0-{i}"
            made = pod(name, meta["namespace"], annotations=template["metadata"]["annotations"])
            made["spec"] = {"terminationGracePeriodSeconds": 0, **template["spec"]}
            self.apply(made)

    def pods(self, namespace: str, prefix: str) -> list[dict]:
        return [p for p in self.user.plane.api.list("v1", "Pod", namespace)
                if p["metadata"]["name"].startswith(prefix + "-")]  # fmt: skip

    def pairs_of(self, namespace: str, prefix: str, count: int) -> list[int]:
        """How many of the pods lie under the first leaf pair, and how many under the other; once
        all are placed."""

        def placed() -> list[dict]:
            found = [p for p in self.pods(namespace, prefix) if node_of(p)]
            assert len(found) == count, f"{len(found)} of {count}"
            return found

        numbers = [int(node_of(p).rpartition("-")[2]) for p in eventually(placed, within=30.0)]
        first = sum(n <= 64 for n in numbers)
        return [first, count - first]

    def clean(self) -> None:
        for kind in ("jobs.batch.volcano.sh", "deployments", "podgroups.scheduling.volcano.sh"):
            for name in ("blue", "green"):
                self.user.plane.kubectl("delete", "-n", name, kind, "--all", "--wait=false")
        for name in ("blue", "green"):
            self.user.plane.kubectl("delete", "-n", name, "pods", "--all", "--force",
                                    "--grace-period=0", check=False)  # fmt: skip
            self.user.plane.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture
def floor(user, control, start):
    made = Floor(user)
    control(CONF)
    eventually(lambda: len(user.plane.api.list("topology.volcano.sh/v1alpha1", "HyperNode")) == 3)
    start(f"--scheduler-conf={FOLDER / 'volcano-scheduler.conf'}")
    yield made
    made.clean()


def test_labels_alone_give_every_job_its_place(user, floor):
    floor.example("1-workloads.yaml")
    pairs = [floor.pairs_of(*job) for job in (("blue", "pretrain-worker", 4),
                                              ("green", "answer-0", 1))]  # fmt: skip
    assert all(0 in pair for pair in pairs), "each in one leaf pair"
    answer = [node_of(p) for p in eventually(lambda: floor.pods("green", "answer"))]
    assert len(set(answer)) == 2
    floor.pairs_of("green", "embed", 12)
    floor.pairs_of("blue", "rerank", 7)
    used = {int(node_of(p).rpartition("-")[2]) <= 64
            for ns in ("blue", "green") for p in user.plane.api.list("v1", "Pod", ns)}  # fmt: skip
    assert len(used) == 1, "the other leaf pair is whole"

    floor.example("2-whole-pair.yaml")
    whole = floor.pairs_of("blue", "flagship-worker", 64)
    assert sorted(whole) == [0, 64]

    def refused() -> dict:
        (group,) = [g for g in user.plane.api.list(VOLCANO, "PodGroup", "green")
                    if g["metadata"]["name"].startswith("greedy-")]  # fmt: skip
        return condition_of(group, "Unschedulable")

    assert "tenant-green" in eventually(refused)["message"]
    assert not [p for p in floor.pods("green", "greedy") if node_of(p)]
