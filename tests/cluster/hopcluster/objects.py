"""Nodes, fabrics and pods, as Kubernetes objects."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Sequence

from hopcluster.api import Object

GPU = "nvidia.com/gpu"
RDMA = "rdma/hca"


def node(
    name: str,
    labels: Mapping[str, str] | None = None,
    *,
    cpu: str = "96",
    memory: str = "1Ti",
    pods: int = 110,
    gpus: int = 8,
    rdma: int = 8,
    other: Mapping[str, str] | None = None,
    ready: bool = False,
) -> Object:
    """A machine for KWOK to play. `ready` needs no KWOK: the node says so itself."""
    room: dict[str, str] = {"cpu": cpu, "memory": memory, "pods": str(pods)}
    if gpus:
        room[GPU] = str(gpus)
    if rdma:
        room[RDMA] = str(rdma)
    room.update(other or {})
    status: Object = {"capacity": room, "allocatable": room}
    if ready:
        status["conditions"] = [{"type": "Ready", "status": "True", "reason": "KubeletReady"}]
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
        },
        "status": status,
    }


def hypernode(
    name: str,
    tier: int,
    tier_name: str = "",
    *,
    nodes: Sequence[str] = (),
    children: Sequence[str] = (),
) -> Object:
    members = [("Node", member) for member in nodes]
    members += [("HyperNode", member) for member in children]
    spec: Object = {
        "tier": tier,
        "members": [
            {"type": kind, "selector": {"exactMatch": {"name": member}}}
            for kind, member in members
        ],
    }
    if tier_name:
        spec["tierName"] = tier_name
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": spec,
    }


def pod(
    name: str,
    namespace: str = "default",
    *,
    scheduler: str = "hopwise",
    gpus: int = 0,
    cpu: str = "1",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> Object:
    amounts = {"cpu": cpu} | ({GPU: str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "schedulerName": scheduler,
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": "example.com/none",
                    "resources": {"requests": amounts, "limits": amounts},
                }
            ],
            **spec,
        },
    }


@dataclasses.dataclass(frozen=True)
class Fabric:
    """Nodes under leaf switches (tier 1), those under spines (2), those under one core (3).

    Named as in examples/eight-nodes: node0, node1, … and s0, s1, … from the leaves up.
    """

    nodes: int = 8
    per_leaf: int = 2
    leaves_per_spine: int = 2

    def node_names(self) -> list[str]:
        return [f"node{number}" for number in range(self.nodes)]

    def hypernodes(self) -> list[Object]:
        made: list[Object] = []

        def level(tier: int, tier_name: str, below: list[str], each: int) -> list[str]:
            names = []
            for start in range(0, len(below), each):
                names.append(f"s{len(made)}")
                members = below[start : start + each]
                kind = "nodes" if tier == 1 else "children"
                made.append(hypernode(names[-1], tier, tier_name, **{kind: members}))
            return names

        leaves = level(1, "leaf", self.node_names(), self.per_leaf)
        spines = level(2, "spine", leaves, self.leaves_per_spine)
        level(3, "core", spines, max(1, len(spines)))
        return made
