"""What the live tests share: a user of the cluster, waits with a limit, and readings of what a
scheduler says."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import time
from collections.abc import Callable, Iterable
from typing import Any

import kubernetes
from hopcluster import Cluster, HopwiseDaemon
from hopcluster.api import ApiError
from hopcluster.objects import Fabric, node, pod
from kubernetes.dynamic import DynamicClient

Object = dict[str, Any]

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HOPWISE = pathlib.Path(os.environ.get("HOPWISE", ROOT / "build" / "release" / "bin" / "hopwise"))
LONG = os.environ.get("HOPWISE_LONG") == "1"

POLL_S = 0.05
# Decisions take milliseconds; a machine that builds something else at the same time takes longer.
SOON_S = 20.0
# How long nothing must happen before it counts as "does not happen".
STILL_S = 1.0

GROUP = "scheduling.k8s.io/group-name"
GROUP_LABEL = "pod-group.scheduling.sigs.k8s.io/name"
MINIMUM_LABEL = "pod-group.scheduling.sigs.k8s.io/min-available"
PLUGIN_LABEL = "scheduling.x-k8s.io/pod-group"
VOLCANO = "scheduling.volcano.sh/v1beta1"
PLUGINS = "scheduling.x-k8s.io/v1alpha1"
TOPOLOGY = "topology.volcano.sh/v1alpha1"
LEASE = ("coordination.k8s.io/v1", "Lease", "hopwise-scheduler", "hopwise-system")
GPUS = 8  # of a node
# spec of a PersistentVolumeClaim.
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}

# A Lease that is taken over within seconds, for tests that kill leaders.
SHORT_LEASE = (
    "--leader-elect-lease-duration=2s",
    "--leader-elect-renew-deadline=1700ms",
    "--leader-elect-retry-period=200ms",
)
# For tests that have one scheduler, on a machine that may be busy for seconds.
USUAL_FLAGS = ("--log-format=json", "--log-level=debug")


# --- waiting --------------------------------------------------------------------------------------


def eventually(check: Callable[[], Any], within: float = SOON_S, what: str = "") -> Any:
    """Calls `check` until it neither raises AssertionError nor returns something false."""
    deadline = time.monotonic() + within
    while True:
        try:
            found = check()
            if found:
                return found
            why = f"last found {found!r}"
        except AssertionError as error:
            why = str(error)
        assert time.monotonic() < deadline, f"{what or 'not so'} within {within:g} s: {why}"
        time.sleep(POLL_S)


def for_a_while(check: Callable[[], None], seconds: float = STILL_S) -> None:
    """`check` holds at every look."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        check()
        time.sleep(POLL_S)


# --- objects --------------------------------------------------------------------------------------


def hard(tier: int) -> Object:
    return {"mode": "hard", "highestTierAllowed": tier}


def soft(tier: int = 1) -> Object:
    return {"mode": "soft", "highestTierAllowed": tier}


def pod_group(name: str, minimum: int, **spec: Any) -> Object:
    return {
        "apiVersion": VOLCANO,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum, **spec},
    }


def plugin_pod_group(name: str, minimum: int) -> Object:
    return {
        "apiVersion": PLUGINS,
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"minMember": minimum},
    }


def queue(name: str, **spec: Any) -> Object:
    return {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": name},
            "spec": {"weight": 1, **spec}}  # fmt: skip


def priority_class(name: str, value: int) -> Object:
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
            "metadata": {"name": name}, "value": value}  # fmt: skip


def uid_of(item: Object) -> str:
    return item["metadata"]["uid"]


def name_of(item: Object) -> str:
    return item["metadata"]["name"]


def node_of(item: Object) -> str:
    return item["spec"].get("nodeName", "")


def condition_of(item: Object, type_: str) -> Object | None:
    conditions = item.get("status", {}).get("conditions") or []
    return next((each for each in conditions if each["type"] == type_), None)


def annotation_of(item: Object, key: str) -> str | None:
    return (item["metadata"].get("annotations") or {}).get(key)


def index_of(node_name: str) -> int:
    """Of the nodes that Fabric makes: 7 of node7."""
    return int(node_name.removeprefix("node"))


# --- a user ---------------------------------------------------------------------------------------


class User:
    """Someone with the Python client and a namespace, who also may make nodes."""

    CLUSTER_WIDE = {"Node", "HyperNode", "Queue", "PriorityClass", "Namespace"}

    def __init__(self, plane: Cluster, client: DynamicClient, namespace: str) -> None:
        self.plane = plane
        self.client = client
        self.namespace = namespace

    # Any kind, as the dynamic client has it.
    def kind(self, api_version: str, kind: str):
        return self.client.resources.get(api_version=api_version, kind=kind)

    def _where(self, kind: str, namespace: str | None = None) -> dict[str, str]:
        return {} if kind in self.CLUSTER_WIDE else {"namespace": namespace or self.namespace}

    def create(self, item: Object) -> Object:
        where = self._where(item["kind"])
        item["metadata"].update(where)
        status = item.get("status")
        made = self.kind(item["apiVersion"], item["kind"]).create(body=item, **where).to_dict()
        if status:
            self.plane.api.patch(made, {"status": status}, "status")
        return made

    def create_all(self, items: Iterable[Object]) -> None:
        """Many at once, in the order given per kind."""
        batch = list(items)
        for item in batch:
            item["metadata"].update(self._where(item["kind"]))
        self.plane.create(batch)

    def get(self, api_version: str, kind: str, name: str, namespace: str | None = None) -> Object:
        where = self._where(kind, namespace)
        return self.kind(api_version, kind).get(name=name, **where).to_dict()

    def list(self, api_version: str, kind: str, **selectors: str) -> list[Object]:
        where = self._where(kind)
        found = self.kind(api_version, kind).get(**where, **selectors)
        return [each.to_dict() for each in found.items]

    def patch(self, api_version: str, kind: str, name: str, change: Object,
              subresource: str = "") -> Object:  # fmt: skip
        item = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
        item["metadata"].update(self._where(kind))
        return self.plane.api.patch(item, change, subresource)

    def delete(self, api_version: str, kind: str, name: str) -> None:
        item = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
        item["metadata"].update(self._where(kind))
        self.plane.api.delete(item, grace_s=0 if kind == "Pod" else None)

    # --- nodes

    def floor(self, nodes: int = 8, per_leaf: int = 2, leaves_per_spine: int = 2,
              hypernodes: bool = True, gpus: int = GPUS) -> list[str]:  # fmt: skip
        """Nodes node0 … under leaves (tier 1), spines (2) and a core (3); returns their names."""
        fabric = Fabric(nodes, per_leaf, leaves_per_spine)
        names = fabric.node_names()
        # The fabric first: a node without its place would be used as one without.
        self.create_all(fabric.hypernodes() if hypernodes else [])
        self.create_all(node(name, gpus=gpus) for name in names)
        self.await_ready(names)
        return names

    def add_node(self, name: str, labels: dict[str, str] | None = None, **room: Any) -> None:
        self.create_all([node(name, labels, **{"gpus": GPUS, **room})])
        self.await_ready([name])

    def await_ready(self, names: Iterable[str]) -> None:
        wanted = set(names)

        def ready() -> bool:
            nodes = self.plane.api.list("v1", "Node")
            good = {name_of(n) for n in nodes
                    if (condition_of(n, "Ready") or {}).get("status") == "True"}  # fmt: skip
            return wanted <= good

        eventually(ready, what="nodes ready")

    # --- gangs

    def gang(self, name: str, size: int, minimum: int | None = None, *, gpus: int = GPUS,
             topology: Object | None = None, scheduler: str = "hopwise",
             annotations: dict[str, str] | None = None, pod_spec: Object | None = None,
             pods: bool = True, **spec: Any) -> None:  # fmt: skip
        """A PodGroup and its pods <name>-0 …"""
        if topology:
            spec["networkTopology"] = topology
        self.create(pod_group(name, size if minimum is None else minimum, **spec))
        if pods:
            self.members(name, range(size), gpus=gpus, scheduler=scheduler,
                         annotations=annotations, **(pod_spec or {}))  # fmt: skip

    def members(self, group: str, numbers: Iterable[int], *, gpus: int = GPUS,
                scheduler: str = "hopwise", annotations: dict[str, str] | None = None,
                **spec: Any) -> None:  # fmt: skip
        marks = {GROUP: group, **(annotations or {})}
        self.create_all(
            pod(f"{group}-{i}", scheduler=scheduler, gpus=gpus, annotations=marks, **spec)
            for i in numbers
        )

    def label_gang(self, name: str, size: int, minimum: int | None = None, *, gpus: int = GPUS,
                   **spec: Any) -> None:  # fmt: skip
        marks = {GROUP_LABEL: name, MINIMUM_LABEL: str(size if minimum is None else minimum)}
        self.create_all(pod(f"{name}-{i}", gpus=gpus, labels=marks, **spec) for i in range(size))

    def plugin_gang(self, name: str, size: int, minimum: int | None = None, *, gpus: int = GPUS,
                    **spec: Any) -> None:  # fmt: skip
        self.create(plugin_pod_group(name, size if minimum is None else minimum))
        marks = {PLUGIN_LABEL: name}
        self.create_all(pod(f"{name}-{i}", gpus=gpus, labels=marks, **spec) for i in range(size))

    def pods(self, group: str = "") -> list[Object]:
        """Pods of the namespace; those named <group> or <group>-… ."""
        found = self.plane.api.list("v1", "Pod", self.namespace)
        if not group:
            return found
        return [p for p in found if name_of(p) == group or name_of(p).startswith(f"{group}-")]

    def pod(self, name: str) -> Object:
        return self.plane.api.get("v1", "Pod", name, self.namespace)

    def group(self, name: str, api_version: str = VOLCANO) -> Object:
        return self.plane.api.get(api_version, "PodGroup", name, self.namespace)

    def nodes_of(self, group: str = "") -> list[str]:
        """Nodes of the bound pods, one for each."""
        return sorted(node_of(p) for p in self.pods(group) if node_of(p))

    def await_bound(self, group: str, count: int, within: float = SOON_S) -> list[str]:
        """Exactly `count` pods of the group get a node; returns the nodes."""

        def bound() -> bool:
            found = self.pods(group)
            have = sum(1 for p in found if node_of(p))
            assert have == count, f"{have} of {len(found)} bound: {self.why(group)}"
            return True

        eventually(bound, within, f"{count} pods of {group} bound")
        return self.nodes_of(group)

    def await_told(self, group: str, within: float = SOON_S) -> list[Object]:
        """All pods of the group wait and say why; returns them."""

        def told() -> bool:
            found = self.pods(group)
            assert found
            for each in found:
                condition = condition_of(each, "PodScheduled")
                assert condition and condition["status"] == "False", f"{name_of(each)} says nothing"
            return True

        eventually(told, within, f"pods of {group} told")
        return self.pods(group)

    def stays_whole_unbound(self, group: str, seconds: float = STILL_S) -> None:
        def nobody() -> None:
            assert self.nodes_of(group) == []

        for_a_while(nobody, seconds)

    def why(self, group: str) -> str:
        for each in self.pods(group):
            condition = condition_of(each, "PodScheduled")
            if condition and condition["status"] == "False":
                return f"{condition.get('reason')}: {condition.get('message')}"
        return "no word why"

    def remove_pods(self, group: str = "") -> None:
        names = [name_of(p) for p in self.pods(group)]
        self.plane.api.in_parallel(lambda name: self.delete("v1", "Pod", name), names)
        eventually(lambda: not self.pods(group) or None, what="pods gone")

    # --- what was said

    def forget_events(self) -> None:
        path = self.plane.api.collection("v1", "Event", self.namespace)
        self.plane.api.request("DELETE", path)

    def events(self, reason: str = "", about: Object | None = None,
               namespace: str | None = None) -> list[Object]:  # fmt: skip
        found = self.plane.api.list("v1", "Event", namespace or self.namespace)
        return [
            e
            for e in found
            if (not reason or e.get("reason") == reason)
            and (about is None or e["involvedObject"].get("uid") == uid_of(about))
        ]

    def await_event(self, reason: str, words: str = "", about: Object | None = None,
                    within: float = SOON_S, namespace: str | None = None) -> Object:  # fmt: skip
        def found() -> Object | None:
            return next((e for e in self.events(reason, about, namespace)
                         if words in e.get("message", "")), None)  # fmt: skip

        return eventually(found, within, f"Event {reason} with {words!r}")

    # --- leaving

    def clean(self) -> None:
        """Takes away all that a test can have made; the next one finds an empty cluster."""
        api = self.plane.api
        owners = [("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"),
                  ("batch/v1", "Job"), ("batch.volcano.sh/v1alpha1", "Job")]  # fmt: skip
        groups = [(VOLCANO, "PodGroup"), (PLUGINS, "PodGroup")]
        for api_version, kind in [*owners, *groups]:
            with contextlib.suppress(ApiError, Exception):
                path = api.collection(api_version, kind, self.namespace)
                api.request("DELETE", f"{path}?propagationPolicy=Background")
        api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}})
        for api_version, kind in (("v1", "Node"), (TOPOLOGY, "HyperNode"), (VOLCANO, "Queue"),
                                  ("scheduling.k8s.io/v1", "PriorityClass")):  # fmt: skip
            with contextlib.suppress(ApiError):
                for each in api.list(api_version, kind):
                    if name_of(each) in ("default", "root") or name_of(each).startswith("system-"):
                        continue
                    each["apiVersion"], each["kind"] = api_version, kind
                    api.delete(each)
        deadline = time.monotonic() + SOON_S
        while (left := self.pods()) and time.monotonic() < deadline:
            for each in left:
                each["apiVersion"], each["kind"] = "v1", "Pod"
                api.delete(each, grace_s=0)
            time.sleep(POLL_S)
        assert not self.pods(), "pods that would disturb the next test"


def client_of(plane: Cluster) -> DynamicClient:
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(str(plane.kubeconfig), client_configuration=configuration)
    configuration.retries = False
    cache = plane.folder / "discovery.json"
    return DynamicClient(kubernetes.client.ApiClient(configuration), cache_file=str(cache))


# --- a scheduler's words --------------------------------------------------------------------------


def records(scheduler: HopwiseDaemon, event: str = "") -> list[Object]:
    """Its log, which must be JSON; lines of a crash are passed over."""
    found = []
    for line in scheduler.log().splitlines():
        with contextlib.suppress(ValueError):
            record = json.loads(line)
            if isinstance(record, dict) and (not event or record.get("event") == event):
                found.append(record)
    return found


def await_record(scheduler: HopwiseDaemon, event: str, within: float = SOON_S,
                 at_least: int = 1) -> Object:  # fmt: skip
    """The latest record of the event, once there are so many."""

    def found() -> Object | None:
        have = records(scheduler, event)
        return have[-1] if len(have) >= at_least else None

    return eventually(found, within, scheduler.with_tail(f"has not logged {event}"))


def cpu_seconds(pid: int) -> float:
    """User and system time that a process has used."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def free_lease(plane: Cluster, command: str = "scheduler") -> None:
    """What a killed leader left, so that the next one need not wait for it to expire."""
    api_version, kind, _, namespace = LEASE
    name = f"hopwise-{command}"
    meta = {"name": name, "namespace": namespace}
    plane.api.delete({"apiVersion": api_version, "kind": kind, "metadata": meta})


def holder(user: User) -> str:
    """Who holds the Lease now; "" when nobody does."""
    try:
        lease = user.plane.api.get(*LEASE)
    except ApiError:
        return ""
    return lease["spec"].get("holderIdentity") or ""
