"""Watches the API server beside the scheduler and judges what happened: nothing over-committed at
any moment, nobody bound twice, no gang half bound for long, an Event for every bind and eviction.

It talks to the API server directly, whatever stands between that and the scheduler.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
import threading
import time
from collections import defaultdict
from dataclasses import dataclass, field

from hopcluster import Cluster
from hopcluster.api import ApiError
from hopcluster.credentials import ADMIN
from support import GROUP, GROUP_LABEL, PLUGIN_LABEL, Object, annotation_of, name_of, uid_of

_SUFFIXES = {"": 1.0, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2.0**10,
             "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}  # fmt: skip
FINISHED = ("Succeeded", "Failed")
OURS = ("hopwise", "volcano")


def amount(text: str) -> float:
    match = re.fullmatch(r"([0-9.]+)([a-zA-Z]*)", str(text))
    assert match, f"no quantity: {text}"
    return float(match.group(1)) * _SUFFIXES[match.group(2)]


def request_of(pod: Object) -> dict[str, float]:
    total: dict[str, float] = defaultdict(float)
    total["pods"] = 1
    for container in pod["spec"]["containers"]:
        for resource, text in container.get("resources", {}).get("requests", {}).items():
            total[resource] += amount(text)
    return total


def gang_of(pod: Object) -> str | None:
    labels = pod["metadata"].get("labels") or {}
    name = annotation_of(pod, GROUP) or labels.get(GROUP_LABEL) or labels.get(PLUGIN_LABEL)
    return f"{pod['metadata']['namespace']}/{name}" if name else None


def condition_of(pod: Object, kind: str) -> Object:
    conditions = pod.get("status", {}).get("conditions") or []
    return next((one for one in conditions if one["type"] == kind), {})


def is_evicted(pod: Object) -> bool:
    """Deleted by the eviction API, which says so in a condition."""
    told = condition_of(pod, "DisruptionTarget")
    deleted = pod["metadata"].get("deletionTimestamp")
    return bool(deleted) and told.get("reason") == "EvictionByEvictionAPI"


def is_called_unscheduled(pod: Object) -> bool:
    told = condition_of(pod, "PodScheduled")
    return bool(pod["spec"].get("nodeName")) and told.get("status") == "False"


@dataclass
class Life:
    """A pod as it was seen."""

    namespace: str
    name: str
    gang: str | None
    scheduler: str
    nodes: list[str] = field(default_factory=list)  # each that it was ever on
    holds_room: bool = False
    gone: bool = False


@dataclass
class Span:
    """How long a gang was half bound."""

    gang: str
    since: float
    until: float | None = None


class Witness:
    def __init__(self, plane: Cluster) -> None:
        self._plane = plane
        self._lock = threading.Lock()
        self._seen = threading.Condition(self._lock)
        self._lives: dict[str, Life] = {}
        self._pods: dict[str, Object] = {}
        self._rooms: dict[str, dict[str, float]] = {}
        self._faults: list[str] = []
        self._evicted: dict[str, tuple[str, str]] = {}  # by uid: namespace and name
        self._spans: dict[str, Span] = {}
        self.half_bound: list[Span] = []
        self._minimums: dict[str, int] = {}
        self._version = 0
        self._stopping = False
        self._connection: http.client.HTTPSConnection | None = None
        self._thread = threading.Thread(target=self._run, name="witness", daemon=True)
        self._thread.start()

    def expect(self, gang: str, minimum: int) -> None:
        """Of "namespace/name" so many members run, or none."""
        with self._lock:
            self._minimums[gang] = minimum

    def stop(self) -> None:
        self._stopping = True
        connection = self._connection
        if connection is not None and connection.sock is not None:
            try:
                connection.sock.shutdown(2)
            except OSError:
                pass
        self._thread.join(10)

    def __enter__(self) -> Witness:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- seeing

    def _run(self) -> None:
        while not self._stopping:
            try:
                version = self._list()
                self._watch(version)
            except (OSError, http.client.HTTPException, ValueError, ApiError, KeyError):
                time.sleep(0.1)

    def _list(self) -> str:
        for node in self._plane.api.list("v1", "Node"):
            self._see_node(node)
        answer = self._plane.api.request("GET", "/api/v1/pods")
        present = {uid_of(pod) for pod in answer["items"]}
        with self._lock:
            missing = [self._pods[uid] for uid in set(self._pods) - present]
        for pod in missing:
            self._see(pod, gone=True)
        for pod in answer["items"]:
            self._see(pod, gone=False)
        return str(answer["metadata"]["resourceVersion"])

    def _watch(self, version: str) -> None:
        context = ssl.create_default_context(cafile=str(self._plane.credentials.ca_file))
        connection = http.client.HTTPSConnection("127.0.0.1", self._plane.port, context=context)
        self._connection = connection
        token = self._plane.credentials.token(ADMIN)
        path = f"/api/v1/pods?watch=1&allowWatchBookmarks=true&resourceVersion={version}"
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            while not self._stopping:
                line = response.readline()
                if not line:
                    return
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] != "BOOKMARK":
                    self._see(event["object"], gone=event["type"] == "DELETED")
        finally:
            connection.close()

    def _see_node(self, node: Object) -> None:
        room = node.get("status", {}).get("allocatable") or {}
        with self._lock:
            self._rooms[name_of(node)] = {key: amount(text) for key, text in room.items()}

    def _see(self, pod: Object, gone: bool) -> None:
        node = pod["spec"].get("nodeName")
        if node and node not in self._rooms:
            try:
                self._see_node(self._plane.api.get("v1", "Node", node))
            except (ApiError, OSError, http.client.HTTPException):
                pass  # the node is gone again
        with self._lock:
            life = self._lives.setdefault(
                uid_of(pod),
                Life(pod["metadata"]["namespace"], name_of(pod), gang_of(pod),
                     pod["spec"].get("schedulerName", "")),
            )  # fmt: skip
            if node and node not in life.nodes:
                life.nodes.append(node)
                if len(life.nodes) > 1:
                    self._faults.append(f"{life.name} was bound twice: {life.nodes}")
            if is_evicted(pod) and life.scheduler in OURS:
                self._evicted[uid_of(pod)] = (life.namespace, life.name)
            life.gone = gone
            life.holds_room = bool(
                node and not gone and pod.get("status", {}).get("phase") not in FINISHED
            )
            if gone:
                self._pods.pop(uid_of(pod), None)
            else:
                self._pods[uid_of(pod)] = pod
            if life.holds_room:
                self._weigh(node)
            self._look_at_gang(life.gang)
            if gone:
                del self._lives[uid_of(pod)]
            self._version = max(self._version, int(pod["metadata"].get("resourceVersion", 0)))
            self._seen.notify_all()

    def _weigh(self, node: str) -> None:
        held: dict[str, float] = defaultdict(float)
        for uid, pod in self._pods.items():
            if self._lives[uid].holds_room and pod["spec"].get("nodeName") == node:
                for resource, much in request_of(pod).items():
                    held[resource] += much
        room = self._rooms.get(node)
        if room is None:
            return
        for resource, much in held.items():
            if much > room.get(resource, 0) * (1 + 1e-9):
                room_words = f"{room.get(resource, 0):g} {resource}"
                words = f"{node} is over-committed: {much:g} of {room_words}"
                if words not in self._faults:
                    self._faults.append(words)

    def _look_at_gang(self, gang: str | None) -> None:
        minimum = self._minimums.get(gang or "")
        if gang is None or minimum is None:
            return
        held = sum(1 for life in self._lives.values() if life.gang == gang and life.nodes
                   and not life.gone)  # fmt: skip
        span = self._spans.get(gang)
        if 0 < held < minimum and span is None:
            span = self._spans[gang] = Span(gang, time.monotonic())
            self.half_bound.append(span)
        elif not 0 < held < minimum and span is not None:
            span.until = time.monotonic()
            del self._spans[gang]

    def wait_bound(self, namespace: str, count: int, within: float) -> bool:
        """Until so many pods of the namespace were bound; False when they were not in time."""

        def bound() -> bool:
            lives = self._lives.values()
            return sum(1 for life in lives if life.namespace == namespace and life.nodes) >= count

        with self._seen:
            return self._seen.wait_for(bound, within)

    # --- judging

    def catch_up(self, within: float = 10.0) -> None:
        """Until it has seen all that stands now."""
        pods = self._plane.api.list("v1", "Pod")
        latest = max((int(pod["metadata"]["resourceVersion"]) for pod in pods), default=0)
        with self._seen:
            assert self._seen.wait_for(lambda: self._version >= latest, within), "witness is behind"

    def audit(self, half_bound_limit: float | None = None, events_within: float = 15.0) -> None:
        """Asserts all that must hold whatever happened. `half_bound_limit`: no gang was half bound
        for longer, nor is one now."""
        self.catch_up()
        with self._lock:
            assert not self._faults, "; ".join(self._faults)
            late = [name_of(pod) for pod in self._pods.values() if is_called_unscheduled(pod)]
            assert not late, f"bound, and yet told to wait: {late}"
            if half_bound_limit is not None:
                now = time.monotonic()
                long = [s for s in self.half_bound if (s.until or now) - s.since > half_bound_limit]
                assert not long, f"half bound too long: {long}"
                assert not self._spans, f"still half bound: {list(self._spans)}"
        self._await_events(events_within)

    def _await_events(self, within: float) -> None:
        deadline = time.monotonic() + within
        while True:
            problems = self._missing_bind_events() + self._missing_evict_events()
            if not problems:
                return
            assert time.monotonic() < deadline, "; ".join(problems[:10])
            time.sleep(0.1)

    def _missing_bind_events(self) -> list[str]:
        told: dict[str, list[str]] = defaultdict(list)
        with self._lock:
            namespaces = {life.namespace for life in self._lives.values() if life.nodes}
        for namespace in namespaces:
            for event in self._plane.api.list("v1", "Event", namespace):
                if event.get("reason") == "Scheduled" and event["involvedObject"]["kind"] == "Pod":
                    told[event["involvedObject"].get("uid", "")].append(event.get("message", ""))
        problems = []
        with self._lock:
            for uid, life in self._lives.items():
                if life.scheduler not in OURS or not life.nodes or life.gone:
                    continue
                wanted = [f"Successfully assigned {life.namespace}/{life.name} to {life.nodes[0]}"]
                if told[uid] != wanted:
                    problems.append(f"{life.name} on {life.nodes} has Events {told[uid]}")
        return problems

    def _missing_evict_events(self) -> list[str]:
        with self._lock:
            evicted = dict(self._evicted)
        told = {
            event["involvedObject"].get("uid", "")
            for namespace in {namespace for namespace, _ in evicted.values()}
            for event in self._plane.api.list("v1", "Event", namespace)
            if event.get("reason") == "Evict" and event["involvedObject"]["kind"] == "Pod"
        }
        return [f"{name} was evicted without an Event" for uid, (_, name) in evicted.items()
                if uid not in told]  # fmt: skip
