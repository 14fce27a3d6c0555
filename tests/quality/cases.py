"""Random small clusters with one gang each.

A case is a plain dictionary, as it goes to quality_driver:

    {"id": 7,
     "nodes":      [{"name": "n00", "has": {"cpu": 16, "gpu": 8, "pods": 110}}],
     "hypernodes": [{"name": "leaf-0", "tier": 1, "members": ["n00", "/other-hypernode"]}],
     "fillers":    [{"name": "f0", "node": "n00", "asks": {"gpu": 3}}],
     "kind":       "groups",
     "gang":       {"min": 4, "mode": "hard", "tier": 2, "policies": [
                       {"name": "a", "size": 2, "groups": 2, "mode": "hard", "tier": 1}]},
     "pods":       [{"name": "p-0", "asks": {"gpu": 1}, "role": "a", "part": "0", "node": "n00"}]}

The kind says what was drawn, for the statistics. A pod with a node runs there
already (an anchor); role and part name its policy and sub-group.
"""

from __future__ import annotations

import random
from typing import Any

Case = dict[str, Any]
MOST_NODES = 40
CLASSES = (
    {"gpu": 1, "cpu": 1},
    {"gpu": 2, "cpu": 1},
    {"gpu": 1, "cpu": 3},
    {"cpu": 4},
    {"gpu": 4, "cpu": 2},
)
KINDS = ("one", "one", "two", "groups", "groups", "groups+loose", "policies", "mixed")


class Generator:
    """One case from one seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.case: Case = {"id": seed, "nodes": [], "hypernodes": [], "fillers": [], "pods": []}

    def run(self) -> Case:
        self._fabric()
        self._fillers()
        self._gang()
        return self.case

    def _nodes(self, count: int) -> list[str]:
        names = []
        for _ in range(count):
            name = f"n{len(self.case['nodes']):02d}"
            gpus = self.rng.choice(self.sizes)
            has = {"cpu": 2 * gpus, "gpu": gpus, "pods": self.rng.choice([110, 110, 110, 3])}
            self.case["nodes"].append({"name": name, "has": has})
            names.append(name)
        return names

    def _hypernode(self, tier: int, members: list[str]) -> str:
        name = f"h{self.rng.randrange(100)}-{len(self.case['hypernodes'])}"
        self.case["hypernodes"].append({"name": name, "tier": tier, "members": members})
        return "/" + name

    def _fabric(self) -> None:
        rng = self.rng
        self.sizes = rng.choice([[1], [2], [4], [8], [2, 4], [1, 8], [4, 8]])
        depth = rng.choice([1, 2, 2, 3, 3, 4])
        self.tiers = list(range(1, depth + 1))
        if rng.random() < 0.2:
            self.tiers = sorted(rng.sample(range(1, 8), depth))
        mixed = rng.random() < 0.3
        largest = rng.choice([2, 3, 4, 8])
        left = rng.randint(2, MOST_NODES)
        level: list[str] = []
        while left > 0:
            count = min(left, rng.randint(1, largest))
            left -= count
            level.append(self._hypernode(self.tiers[0], self._nodes(count)))
        late: list[str] = []
        for tier in self.tiers[1:]:
            level, late = level + late, []
            rng.shuffle(level)
            above: list[str] = []
            while level:
                if mixed and rng.random() < 0.2:
                    late.append(level.pop())
                    continue
                take = rng.randint(1, 4)
                members, level = level[:take], level[take:]
                if mixed and rng.random() < 0.2:
                    members = members + self._nodes(rng.randint(1, 2))
                above.append(self._hypernode(tier, members))
            level = above
        if mixed and rng.random() < 0.3:
            self._nodes(rng.randint(1, 2))

    def _fillers(self) -> None:
        share = self.rng.choice([0.0, 0.3, 0.6, 0.9])
        for node in self.case["nodes"]:
            if self.rng.random() < share:
                gpus = self.rng.randint(0, node["has"]["gpu"])
                cpus = self.rng.randint(gpus, node["has"]["cpu"])
                name = f"f{len(self.case['fillers'])}"
                asks = {key: value for key, value in (("gpu", gpus), ("cpu", cpus)) if value}
                self.case["fillers"].append({"name": name, "node": node["name"], "asks": asks})

    def _rule(self, hard: float, soft: float) -> dict[str, Any]:
        roll = self.rng.random()
        if roll < hard:
            tier = None if self.rng.random() < 0.1 else self.rng.choice(self.tiers)
            return {"mode": "hard", "tier": tier}
        return {"mode": "soft"} if roll < hard + soft else {"mode": "none"}

    def _class(self) -> dict[str, int]:
        most = max(self.sizes)
        fitting = [c for c in CLASSES if c.get("gpu", 0) <= most and c["cpu"] <= 2 * most]
        return self.rng.choice(fitting)

    def _add(self, count: int, asks: dict[str, int], **labels: str) -> None:
        for _ in range(count):
            name = f"p-{len(self.case['pods'])}"
            self.case["pods"].append({"name": name, "asks": asks} | labels)

    def _policy(self, name: str, most_pods: int, mixed: bool) -> None:
        size = self.rng.randint(1, max(1, most_pods // 2))
        groups = self.rng.randint(1, max(1, most_pods // size))
        policy = {"name": name, "size": size, "groups": groups} | self._rule(0.6, 0.3)
        self.case["gang"]["policies"].append(policy)
        asks = self._class()
        other = self._class() if mixed else asks
        first = self.rng.randint(1, size)
        for part in range(groups):
            self._add(first, asks, role=name, part=str(part))
            self._add(size - first, other, role=name, part=str(part))

    def _gang(self) -> None:
        rng = self.rng
        gang = {"policies": []} | self._rule(0.55, 0.45)
        self.case["gang"] = gang
        kind = rng.choice(KINDS)
        if kind == "one":
            self._add(rng.randint(1, rng.choice([4, 16])), self._class())
        elif kind == "two":
            self._add(rng.randint(1, 6), self._class())
            self._add(rng.randint(1, 5), self._class())
        elif kind == "policies":
            self._policy("a", 6, False)
            self._policy("b", 4, False)
        elif kind == "mixed":
            self._policy("a", 6, True)
        else:
            self._policy("a", 12, False)
            if kind == "groups+loose":
                asks = rng.choice([self.case["pods"][0]["asks"], self._class()])
                self._add(rng.randint(1, 4), asks)
        if all(policy["mode"] == "none" for policy in gang["policies"]) and gang["mode"] == "none":
            gang["mode"] = "soft"
        gang["min"] = len(self.case["pods"])
        if rng.random() < 0.25:
            self._anchors()
            kind += ", anchored"
        self.case["kind"] = kind

    def _anchors(self) -> None:
        """Lets some members run already, mostly near each other."""
        free = {n["name"]: dict(n["has"]) for n in self.case["nodes"]}
        for filler in self.case["fillers"]:
            take(free[filler["node"]], filler["asks"])
        names = [n["name"] for n in self.case["nodes"]]
        start = self.rng.randrange(len(names))
        near = names[start : start + self.rng.choice([1, 2, 3])]
        if self.rng.random() < 0.2:
            near = names
        running = self.rng.randint(1, max(1, len(self.case["pods"]) - 1))
        order = list(self.case["pods"])
        if self.rng.random() < 0.5:
            self.rng.shuffle(order)
        for pod in order[:running]:
            node = self.rng.choice(near)
            if take(free[node], pod["asks"]):
                pod["node"] = node


def take(free: dict[str, int], asks: dict[str, int]) -> bool:
    """Takes a pod's room, its slot included, or nothing."""
    wanted = asks | {"pods": 1}
    if any(free.get(key, 0) < amount for key, amount in wanted.items()):
        return False
    for key, amount in wanted.items():
        free[key] -= amount
    return True


def make(seed: int) -> Case:
    return Generator(seed).run()
