"""The best placement of a small case, and what a given placement is worth.

The objective is the one of the design, compared from the left, less is better:

  1. ranks of the smallest domains that hold the ruled sub-groups, worst first
  2. rank of the smallest domain that holds the gang
  3. cells opened per rank, from the top down to single nodes (see src/sched/cells.h)

`best` finds the least vector that any placement has, `judge` the vector of one, and what it breaks.
The search is a dynamic programme over the fabric. A state says how many pods of each class wait
inside a domain to be counted further up, and how many groups of each kind are complete; its cost
adds up over the tree. State and cost are integers whose digits never carry, so both are added as
they are.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

Case = dict[str, Any]
Vector = tuple[tuple[int, ...], int, tuple[int, ...]]
RESOURCES = ("cpu", "gpu", "pods")
STATE_BITS = 8
COST_BITS = 8


@dataclasses.dataclass
class Domain:
    rank: int
    parent: int | None
    children: list[int] = dataclasses.field(default_factory=list)
    nodes: list[str] = dataclasses.field(default_factory=list)


class Fabric:
    """The tree of a case. Domain 0 is the virtual root, parents come before their children."""

    def __init__(self, case: Case) -> None:
        tiers = sorted({h["tier"] for h in case["hypernodes"]})
        self.tiers = tiers
        self.root_rank = len(tiers) + 1
        by_name = {h["name"]: h for h in case["hypernodes"]}
        parent = {m[1:]: h["name"] for h in case["hypernodes"] for m in h["members"] if m[0] == "/"}
        self.domains = [Domain(self.root_rank, None)]
        index: dict[str, int] = {}
        for h in sorted(case["hypernodes"], key=lambda h: -h["tier"]):
            above = index[parent[h["name"]]] if h["name"] in parent else 0
            index[h["name"]] = len(self.domains)
            self.domains[above].children.append(len(self.domains))
            self.domains.append(Domain(tiers.index(h["tier"]) + 1, above))
        self.leaf_of = {n["name"]: 0 for n in case["nodes"]}
        for name, h in by_name.items():
            for member in h["members"]:
                if member[0] != "/":
                    self.leaf_of[member] = index[name]
        for node, d in self.leaf_of.items():
            self.domains[d].nodes.append(node)

    def path(self, d: int | None) -> list[int]:
        out = []
        while d is not None:
            out.append(d)
            d = self.domains[d].parent
        return out

    def common(self, nodes: list[str]) -> int | None:
        """Smallest domain that holds all the nodes; None without any."""
        if not nodes:
            return None
        paths = [self.path(self.leaf_of[node]) for node in nodes]
        return next(d for d in paths[0] if all(d in path for path in paths))

    def contains(self, outer: int, inner: int | None) -> bool:
        return inner is None or outer in self.path(inner)

    def limit(self, rule: dict[str, Any]) -> int:
        """Highest rank that a rule allows; 0: none."""
        if rule["mode"] != "hard":
            return self.root_rank
        if rule.get("tier") is None:
            return self.root_rank - 1
        return sum(1 for tier in self.tiers if tier <= rule["tier"])


@dataclasses.dataclass
class Group:
    """A sub-group of which members wait."""

    pods: list[int]  # indexes of waiting pods
    home: int | None  # smallest domain of those that run
    limit: int
    ruled: bool


class Problem:
    """A case read: what is free, who waits, which groups they form."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.fabric = Fabric(case)
        pods = case["pods"]
        self.free = {n["name"]: dict.fromkeys(RESOURCES, 0) | n["has"] for n in case["nodes"]}
        for pod in case["fillers"] + [p for p in pods if p.get("node")]:
            for key, amount in (pod["asks"] | {"pods": 1}).items():
                self.free[pod["node"]][key] -= amount
        self.waiting = [i for i, p in enumerate(pods) if not p.get("node")]
        anchors = [p["node"] for p in pods if p.get("node")]
        self.anchor_nodes = set(anchors)
        self.anchor_domains = {d for n in anchors for d in self.fabric.path(self.fabric.leaf_of[n])}
        self.home = self.fabric.common(anchors)
        self.limit = self.fabric.limit(case["gang"])
        if self.home is not None:
            self.limit = max(self.limit, self.fabric.domains[self.home].rank)
        self.groups = self._groups()
        grouped = {i for group in self.groups for i in group.pods}
        self.loose = [i for i in self.waiting if i not in grouped]

    def _groups(self) -> list[Group]:
        pods = self.case["pods"]
        groups = []
        for policy in self.case["gang"]["policies"]:
            parts: dict[str, list[int]] = {}
            for i, pod in enumerate(pods):
                if pod.get("role") == policy["name"]:
                    parts.setdefault(pod["part"], []).append(i)
            for members in parts.values():
                home = self.fabric.common([pods[i]["node"] for i in members if pods[i].get("node")])
                limit = self.fabric.limit(policy)
                if home is not None:
                    limit = max(limit, self.fabric.domains[home].rank)
                waiting = [i for i in members if not pods[i].get("node")]
                if waiting:
                    groups.append(Group(waiting, home, limit, policy["mode"] != "none"))
        return groups

    def asks(self, i: int) -> tuple[int, ...]:
        wanted = self.case["pods"][i]["asks"] | {"pods": 1}
        return tuple(wanted.get(key, 0) for key in RESOURCES)


def judge(problem: Problem, binds: dict[str, str]) -> tuple[Vector | None, str]:
    """The vector of a placement of all waiting members, and "" or what it breaks."""
    fabric = problem.fabric
    pods = problem.case["pods"]
    names = {pods[i]["name"] for i in problem.waiting}
    if set(binds) != names:
        return None, f"half a gang: {len(binds)} of {len(names)} placed"
    free = {node: dict(amounts) for node, amounts in problem.free.items()}
    for i in problem.waiting:
        for key, amount in zip(RESOURCES, problem.asks(i)):
            free[binds[pods[i]["name"]]][key] -= amount
    for i in problem.waiting:
        node = binds[pods[i]["name"]]
        if any(free[node][key] < 0 and amount for key, amount in zip(RESOURCES, problem.asks(i))):
            return None, f"node {node} is over-full"
    nodes = sorted(set(binds.values()))
    gang_home = fabric.common(nodes + sorted(problem.anchor_nodes))
    if gang_home is None:
        return None, "nothing placed"
    if fabric.domains[gang_home].rank > problem.limit:
        return None, "the gang spans more than its rule allows"
    ranks = []
    for group in problem.groups:
        common = fabric.common([binds[pods[i]["name"]] for i in group.pods])
        assert common is not None
        home = next(d for d in fabric.path(common) if fabric.contains(d, group.home))
        rank = fabric.domains[home].rank
        if group.ruled:
            if rank > group.limit:
                return None, "a sub-group spans more than its rule allows"
            ranks.append(rank)
    cells = [0] * fabric.root_rank
    touched = {d for node in nodes for d in fabric.path(fabric.leaf_of[node])}
    for d in touched - problem.anchor_domains:
        above = fabric.domains[d].parent
        if above is not None:
            for rank in range(fabric.domains[d].rank, fabric.domains[above].rank):
                cells[rank] += 1
    for node in set(nodes) - problem.anchor_nodes:
        for rank in range(fabric.domains[fabric.leaf_of[node]].rank):
            cells[rank] += 1
    worst_first = tuple(sorted(ranks, reverse=True))
    return (worst_first, fabric.domains[gang_home].rank, tuple(reversed(cells))), ""


class Search:
    """The dynamic programme. Digits of a state: waiting pods by kind and class, groups by kind."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.fabric = problem.fabric
        self._kinds()
        self.tables: dict[int, dict[int, int]] = {}

    def _kinds(self) -> None:
        """Sub-groups that nothing tells apart are one kind; pods of unruled groups are loose."""
        problem = self.problem
        kinds: dict[Any, int] = {}
        loose = list(problem.loose)
        for group in problem.groups:
            if group.ruled:
                shape = tuple(sorted(problem.asks(i) for i in group.pods))
                key = (shape, group.home, group.limit)
                kinds[key] = kinds.get(key, 0) + 1
            else:
                loose += group.pods
        self.columns: list[tuple[int, ...]] = []  # what a pod of each state digit asks for
        bounds: list[int] = []
        self.kinds = []  # [digits of a group's pods, home, limit, groups, digit of whole groups]
        for (shape, home, limit), count in kinds.items():
            need = 0
            for asks in sorted(set(shape)):
                digit = len(self.columns)
                self.columns.append(asks)
                bounds.append(shape.count(asks) * count)
                need += shape.count(asks) << (STATE_BITS * digit)
            self.kinds.append([need, home, limit, count])
        self.target = 0
        for asks in sorted({problem.asks(i) for i in loose}):
            count = sum(1 for i in loose if problem.asks(i) == asks)
            self.target += count << (STATE_BITS * len(self.columns))
            self.columns.append(asks)
            bounds.append(count)
        for kind in self.kinds:
            digit = len(bounds)
            bounds.append(kind[3])
            kind.append(1 << (STATE_BITS * digit))
            self.target += kind[3] << (STATE_BITS * digit)
        # state + guard sets the high bit of a digit exactly when it passes its bound.
        half = 1 << (STATE_BITS - 1)
        self.guard = sum((half - 1 - b) << (STATE_BITS * i) for i, b in enumerate(bounds))
        self.high = sum(half << (STATE_BITS * i) for i in range(len(bounds)))
        self.bounds = bounds

    def _cell_cost(self, low: int, high: int) -> int:
        return sum(1 << (COST_BITS * rank) for rank in range(low, high))

    def _group_cost(self, rank: int) -> int:
        return 1 << (COST_BITS * (self.fabric.root_rank + rank))

    def node_table(self, node: str, parent_rank: int) -> dict[int, int]:
        free = tuple(self.problem.free[node][key] for key in RESOURCES)
        cost = 0 if node in self.problem.anchor_nodes else self._cell_cost(0, parent_rank)
        table = {0: 0}

        def fill(digit: int, state: int, left: tuple[int, ...]) -> None:
            if digit == len(self.columns):
                if state:
                    table[state] = cost
                return
            asks = self.columns[digit]
            for count in range(self.bounds[digit] + 1):
                if any(amount and have < 0 for have, amount in zip(left, asks)):
                    break
                fill(digit + 1, state + (count << (STATE_BITS * digit)), left)
                left = tuple(have - amount for have, amount in zip(left, asks))

        fill(0, 0, free)
        return table

    def merge(self, a: dict[int, int], b: dict[int, int]) -> dict[int, int]:
        if len(b) == 1:
            return a
        out: dict[int, int] = {}
        guard, high = self.guard, self.high
        for state_a, cost_a in a.items():
            for state_b, cost_b in b.items():
                state = state_a + state_b
                if (state + guard) & high:
                    continue
                cost = cost_a + cost_b
                if cost < out.get(state, cost + 1):
                    out[state] = cost
        return out

    def complete(self, d: int, table: dict[int, int]) -> dict[int, int]:
        """Waiting pods that make up whole groups may be counted as groups whose domain is d."""
        rank = self.fabric.domains[d].rank
        for number, (need, home, limit, _, unit) in enumerate(self.kinds):
            if rank > limit or not self.fabric.contains(d, home):
                continue
            price = self._group_cost(rank)
            step = unit - need
            frontier = table
            while frontier:
                grown: dict[int, int] = {}
                for state, cost in frontier.items():
                    if not self._covers(state, need):
                        continue
                    reached = state + step
                    total = cost + price
                    fits = not (reached + self.guard) & self.high
                    if fits and total < table.get(reached, total + 1):
                        grown[reached] = min(total, grown.get(reached, total))
                table = table | grown
                frontier = grown
        return self._prune(d, table)

    def _covers(self, state: int, need: int) -> bool:
        mask = (1 << STATE_BITS) - 1
        while need:
            if state & mask < need & mask:
                return False
            state >>= STATE_BITS
            need >>= STATE_BITS
        return True

    def _prune(self, d: int, table: dict[int, int]) -> dict[int, int]:
        """Pods of a kind that no domain further up may complete are lost."""
        above = self.fabric.domains[d].parent
        rank = self.fabric.domains[above].rank if above is not None else self.fabric.root_rank + 1
        dead = 0
        for need, _, limit, _, _ in self.kinds:
            if rank > limit:
                digit = 0
                while need:
                    if need & ((1 << STATE_BITS) - 1):
                        dead |= ((1 << STATE_BITS) - 1) << (STATE_BITS * digit)
                    need >>= STATE_BITS
                    digit += 1
        return {s: c for s, c in table.items() if not s & dead} if dead else table

    def domain_table(self, d: int) -> dict[int, int]:
        """Best costs inside d, what opening d itself costs left out."""
        domain = self.fabric.domains[d]
        table = {0: 0}
        for node in domain.nodes:
            table = self.merge(table, self.node_table(node, domain.rank))
        for child in domain.children:
            inner = self.domain_table(child)
            price = 0
            if child not in self.problem.anchor_domains:
                price = self._cell_cost(self.fabric.domains[child].rank, domain.rank)
            table = self.merge(table, {s: c + price if s else c for s, c in inner.items()})
        table = self.complete(d, table)
        self.tables[d] = table
        return table

    def run(self) -> Vector | None:
        self.domain_table(0)
        best: Vector | None = None
        for d, table in self.tables.items():
            rank = self.fabric.domains[d].rank
            allowed = rank <= self.problem.limit and self.fabric.contains(d, self.problem.home)
            if allowed and self.target in table:
                vector = self._vector(d, table[self.target])
                best = vector if best is None else min(best, vector)
        return best

    def _vector(self, d: int, cost: int) -> Vector:
        mask = (1 << COST_BITS) - 1
        root_rank = self.fabric.root_rank
        rank = self.fabric.domains[d].rank
        ranks: list[int] = []
        for r in range(root_rank, 0, -1):
            ranks += [r] * ((cost >> (COST_BITS * (root_rank + r))) & mask)
        cells = [(cost >> (COST_BITS * r)) & mask for r in range(root_rank)]
        # d and what holds it are one cell at every rank from its own up.
        for r in range(rank, root_rank):
            cells[r] = 0 if self.problem.anchor_nodes else 1
        return tuple(ranks), rank, tuple(reversed(cells))


def best(problem: Problem) -> Vector | None:
    """The least vector, None when the gang does not fit."""
    return Search(problem).run()


def brute_force(problem: Problem, most: int = 20_000) -> tuple[bool, Vector | None]:
    """Tries every placement. False when there are too many."""
    nodes = sorted(problem.free)
    if len(nodes) ** len(problem.waiting) > most:
        return False, None
    found: Vector | None = None
    names = [problem.case["pods"][i]["name"] for i in problem.waiting]
    for choice in itertools.product(nodes, repeat=len(names)):
        vector, _ = judge(problem, dict(zip(names, choice)))
        if vector is not None and (found is None or vector < found):
            found = vector
    return True, found
