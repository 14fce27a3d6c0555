"""What the generated clusters are made of: names, labels, selectors, amounts, plain nodes and pods.

Few values, so that things meet: a selector that matches nothing tests nothing.
"""

from __future__ import annotations

import random
from typing import Any

Object = dict[str, Any]

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
# "row" is on few nodes, "absent" on none.
TOPOLOGY_KEYS = (HOSTNAME, ZONE, ZONE, "rack", "rack", "row", "absent")
NODE_LABELS = {
    ZONE: ("z1", "z2", "z3"),
    "rack": ("r1", "r2"),
    "row": ("1", "2"),
    "disk": ("ssd", "hdd", ""),
    # Read as numbers by Gt and Lt; what is no number matches neither.
    "size": ("5", "10", "010", "1e3", "ten", "", "9223372036854775807", "9223372036854775808"),
}
NAMESPACES = ("ns-a", "ns-b", "ns-c")
POD_LABELS = {"app": ("a", "b", "c"), "track": ("x", "y"), "rev": ("1", "2")}
SCHEDULER_NAME = "hopwise"
MEBI = 1 << 20


class Draw(random.Random):
    """A source of randomness with the words that the generators use."""

    def chance(self, probability: float) -> bool:
        return self.random() < probability

    def some(self, items: Any, at_least: int = 0, at_most: int | None = None) -> list[Any]:
        """Some of the items, in their order."""
        items = list(items)
        most = len(items) if at_most is None else min(at_most, len(items))
        chosen = set(self.sample(range(len(items)), self.randint(min(at_least, most), most)))
        return [item for index, item in enumerate(items) if index in chosen]


def cpu(draw: Draw, milli: int) -> str | int:
    """An amount of processors in one of the ways to write it."""
    ways: list[str | int] = [f"{milli}m", f"{milli / 1000:g}", f"{milli * 1000}u"]
    if milli % 1000 == 0:
        ways += [milli // 1000, f"{milli // 1000}"]
    return draw.choice(ways)


def memory(draw: Draw, mebi: int) -> str | int:
    """An amount of memory in one of the ways to write it."""
    size = mebi * MEBI
    ways: list[str | int] = [f"{mebi}Mi", str(size), size, f"{mebi * 1024}Ki", f"{size}000m"]
    if mebi % 512 == 0:
        ways.append(f"{mebi / 1024:g}Gi")
    return draw.choice(ways)


def labels(draw: Draw, table: dict[str, tuple[str, ...]], likely: float) -> dict[str, str]:
    return {key: draw.choice(values) for key, values in table.items() if draw.chance(likely)}


def label_selector(draw: Draw, table: dict[str, tuple[str, ...]] | None = None) -> Object | None:
    """A selector of labels: none at all, one that takes everything, or one that chooses."""
    table = table or {key: POD_LABELS[key] for key in ("app", "track")}
    kind = draw.random()
    if kind < 0.05:
        return None
    if kind < 0.12:
        return {}
    selector: Object = {}
    if draw.chance(0.6):
        key = draw.choice(list(table))
        selector["matchLabels"] = {key: draw.choice(table[key])}
    if not selector or draw.chance(0.3):
        selector["matchExpressions"] = [
            expression(draw, table) for _ in range(draw.randint(1, 2))
        ]
    return selector


def expression(draw: Draw, table: dict[str, tuple[str, ...]]) -> Object:
    key = draw.choice(list(table))
    operator = draw.choice(("In", "In", "NotIn", "Exists", "DoesNotExist"))
    made: Object = {"key": key, "operator": operator}
    if operator in ("In", "NotIn"):
        made["values"] = draw.some(table[key], at_least=1)
    return made


def merge_label_keys(selector: Object | None, keys: list[str], operator: str, of: Object) -> None:
    """What the API server does with matchLabelKeys before it stores a pod with the labels `of`."""
    if selector is None:
        return
    for key in keys:
        if key in of:
            selector.setdefault("matchExpressions", []).append(
                {"key": key, "operator": operator, "values": [of[key]]}
            )


def node(draw: Draw, index: int) -> Object:
    name = f"n{index}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {HOSTNAME: name} | labels(draw, NODE_LABELS, 0.7),
        },
        "spec": {},
        "status": {"allocatable": {"cpu": "16", "memory": "32Gi", "pods": "110"}},
    }


def room(node: Object) -> Object:
    """What the node has; without allocatable that is its capacity."""
    status = node["status"]
    return status["allocatable"] if "allocatable" in status else status["capacity"]


def add_taints(node: Object, taints: list[Object]) -> None:
    """A node has one taint of a key and an effect."""
    kept = node["spec"].setdefault("taints", [])
    for taint in taints:
        if all((old["key"], old["effect"]) != (taint["key"], taint["effect"]) for old in kept):
            kept.append(taint)


def container(name: str, **fields: Any) -> Object:
    return {"name": name, "image": "app"} | fields


def pod(draw: Draw, name: str, host: str = "") -> Object:
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "namespace": draw.choice(NAMESPACES[:2]),
            "labels": labels(draw, POD_LABELS, 0.8),
        },
        "spec": {"schedulerName": SCHEDULER_NAME, "containers": [container("main")]},
        "status": {"phase": "Pending"},
    }
    if host:
        made["spec"] |= {"nodeName": host, "schedulerName": "default-scheduler"}
        made["status"]["phase"] = "Running"
    return made


class Case:
    """A cluster and the pod to be judged, while the features are being put in."""

    def __init__(self, draw: Draw):
        self.draw = draw
        self.nodes = [node(draw, index) for index in range(draw.randint(1, 8))]
        self.pods = [
            pod(draw, f"p{index}", draw.choice(self.nodes)["metadata"]["name"])
            for index in range(draw.choice((0, 2, 5, 10, 20)))
        ]
        self.pod = pod(draw, "asked")
        self.others: dict[str, list[Object]] = {
            "namespaces": [
                {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": name, "labels": labels(draw, TEAMS, 0.8)},
                }
                for name in NAMESPACES
            ]
        }

    def add(self, kind: str, made: Object) -> None:
        self.others.setdefault(kind, []).append(made)

    @property
    def host_names(self) -> list[str]:
        return [node["metadata"]["name"] for node in self.nodes]

    def all_pods(self) -> list[Object]:
        return [*self.pods, self.pod]

    def result(self) -> Object:
        return {"nodes": self.nodes, "pods": self.pods} | self.others | {"pod": self.pod}


TEAMS = {"team": ("red", "blue")}
