"""The CRDs of deploy/crds: what was written for Volcano is taken and kept, what cannot be meant is
refused with words that say what to do, and an upgrade loses nothing."""

from __future__ import annotations

import copy
import pathlib
from typing import Any, Iterator

import pytest
from hopcluster.api import ApiError, documents_of
from hopcluster.paths import DEPLOY
from support import Object, eventually, name_of

CRDS = {
    crd["spec"]["names"]["kind"]: crd
    for path in sorted((DEPLOY / "crds").glob("*.yaml"))
    for crd in documents_of(path)
}
EVERY_FIELD = list(documents_of(pathlib.Path(__file__).with_name("every_field.yaml")))


def schema_of(kind: str) -> Object:
    (version,) = CRDS[kind]["spec"]["versions"]
    return version["schema"]["openAPIV3Schema"]


def has_status_of_its_own(kind: str) -> bool:
    return "status" in CRDS[kind]["spec"]["versions"][0].get("subresources", {})


def create(plane, item: Object, dry_run: bool = False) -> Object:
    """As a user does whose client asks for strict validation; with its status, if it has one."""
    item = copy.deepcopy(item)
    kind = item["kind"]
    where = "" if CRDS[kind]["spec"]["scope"] == "Cluster" else "default"
    if where:
        item["metadata"]["namespace"] = where
    api = plane.api
    path = api.collection(item["apiVersion"], kind, where) + "?fieldValidation=Strict"
    made = api.request("POST", path + ("&dryRun=All" if dry_run else ""), item)
    if "status" in item and has_status_of_its_own(kind) and not dry_run:
        made = api.patch(made, {"status": item["status"]}, "status")
    return made


@pytest.fixture
def kept(plane) -> Iterator[Any]:
    """kept(object) creates it; it is gone after the test."""
    made = []

    def make(item: Object) -> Object:
        made.append(create(plane, item))
        return made[-1]

    yield make
    for item in made:
        plane.api.delete(item)


# --- what is taken --------------------------------------------------------------------------------


def fields_of(schema: Object, at: str = "") -> set[str]:
    """The paths of all fields that a schema names."""
    found = set()
    for name, inner in schema.get("properties", {}).items():
        if at or name not in ("apiVersion", "kind", "metadata"):
            found |= {f"{at}.{name}"} | fields_of(inner, f"{at}.{name}")
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if isinstance(schema.get(key), dict):
            found |= fields_of(schema[key], at + mark)
    return found


def fields_in(value: Any, schema: Object, at: str = "") -> set[str]:
    """Those of them that an object has."""
    found = set()
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in schema.get("properties", {}):
                path = f"{at}.{name}"
                found |= {path} | fields_in(inner, schema["properties"][name], path)
            elif isinstance(schema.get("additionalProperties"), dict):
                found |= fields_in(inner, schema["additionalProperties"], at + "{}")
    for inner in value if isinstance(value, list) else []:
        found |= fields_in(inner, schema["items"], at + "[]")
    return found


@pytest.mark.parametrize("kind", CRDS)
def test_the_examples_leave_no_field_out(kind):
    used = set()
    for item in EVERY_FIELD:
        if item["kind"] == kind:
            used |= fields_in(item, schema_of(kind))
    assert fields_of(schema_of(kind)) - used == set()


def lacking(given: Any, stored: Any, at: str = "") -> list[str]:
    """What of `given` is not in `stored`; there may be more in `stored`."""
    if isinstance(given, dict) and isinstance(stored, dict):
        return [
            line
            for name in given
            for line in (
                lacking(given[name], stored[name], f"{at}.{name}")
                if name in stored
                else [f"{at}.{name}"]
            )
        ]
    if isinstance(given, list) and isinstance(stored, list) and len(given) == len(stored):
        pairs = zip(given, stored)
        return [line for one, other in pairs for line in lacking(one, other, f"{at}[]")]
    return [] if given == stored else [f"{at}: {stored!r} instead of {given!r}"]


@pytest.mark.parametrize("item", EVERY_FIELD, ids=lambda one: f"{one['kind']}-{name_of(one)}")
def test_what_is_written_for_volcano_is_taken_and_kept_whole(plane, kept, item):
    made = kept(item)
    namespace = made["metadata"].get("namespace", "")
    stored = plane.api.get(item["apiVersion"], item["kind"], name_of(item), namespace)
    assert lacking(item, stored) == []


TASK = {"name": "worker", "replicas": 4}
PARTS = {"totalPartitions": 2, "partitionSize": 2}
JOB = {"name": "every-field", "uid": "1", "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job"}
QUEUE = JOB | {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue"}


def of(kind: str, **content: Any) -> Object:
    """An object named "one" with this content beside its metadata."""
    spec = CRDS[kind]["spec"]
    api_version = f"{spec['group']}/{spec['versions'][0]['name']}"
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "one"}, **content}


def hyper_node(**member: Any) -> Object:
    return of("HyperNode", spec={"tier": 1, "members": [member]})


def queue(**spec: Any) -> Object:
    return of("Queue", spec=spec)


def job(**spec: Any) -> Object:
    return of("Job", spec={"tasks": [TASK], **spec})


def task(**fields: Any) -> Object:
    return of("Job", spec={"tasks": [TASK | fields]})


TAKEN = [
    ("the other tier field left empty",
     of("PodGroup", spec={"networkTopology": {"highestTierAllowed": 1, "highestTierName": ""}})),
    ("a Queue with as much deserved as it may have",
     queue(capability={"cpu": 1, "memory": "1Gi"}, deserved={"cpu": "1000m", "memory": "1024Mi"})),
    ("amounts of resources that the other list does not have",
     queue(capability={"cpu": 1}, deserved={"gpu": 8}, guarantee={"resource": {"fpga": 1}})),
    ("a task without replicas", of("Job", spec={"minAvailable": 1, "tasks": [{"name": "a"}]})),
    ("parts instead of replicas",
     of("Job", spec={"minAvailable": 4, "tasks": [{"name": "a", "partitionPolicy": PARTS}]})),
    ("a volume without a claim", job(volumes=[{"mountPath": "/a"}])),
    ("a Command for a Queue", of("Command", action="CloseQueue", target=QUEUE)),
]  # fmt: skip


@pytest.mark.parametrize("item", [row[1] for row in TAKEN], ids=[row[0] for row in TAKEN])
def test_what_is_unusual_and_right_is_taken(plane, item):
    create(plane, item, dry_run=True)


DEFAULTS = [
    (of("PodGroup", spec={"networkTopology": {}, "subGroupPolicy": [{"networkTopology": {}}]}),
     {"queue": "default", "networkTopology": {"mode": "hard"},
      "subGroupPolicy": [{"networkTopology": {"mode": "hard"}, "subGroupSize": 1,
                          "minSubGroups": 0}]}),
    (queue(), {"weight": 1, "dequeueStrategy": "traverse"}),
    (job(networkTopology={}),
     {"queue": "default", "maxRetry": 3, "networkTopology": {"mode": "hard"}, "tasks": [TASK]}),
    (task(partitionPolicy=PARTS),
     {"queue": "default", "maxRetry": 3,
      "tasks": [TASK | {"partitionPolicy": PARTS | {"minPartitions": 0}}]}),
]  # fmt: skip


@pytest.mark.parametrize(("item", "spec"), DEFAULTS, ids=[row[0]["kind"] for row in DEFAULTS])
def test_defaults_are_volcanos_and_no_others(plane, item, spec):
    assert create(plane, item, dry_run=True)["spec"] == spec


# --- what is refused ------------------------------------------------------------------------------

BOTH_TIERS = {"highestTierAllowed": 1, "highestTierName": "leaf"}
NOT_BOTH = "set highestTierAllowed or highestTierName, not both"
REFUSED = [
    ("member without a selector", hyper_node(type="Node"), "say in selector which ones"),
    ("HyperNodes by pattern",
     hyper_node(type="HyperNode", selector={"regexMatch": {"pattern": "a"}}), "exactMatch alone"),
    ("operator that does not exist",
     hyper_node(type="Node", selector={"labelMatch": {"matchExpressions": [
         {"key": "a", "operator": "Equals", "values": ["b"]}]}}), "Unsupported value"),
    ("In without values",
     of("PodGroup", spec={"subGroupPolicy": [{"labelSelector": {"matchExpressions": [
         {"key": "a", "operator": "In"}]}}]}), "In and NotIn need values"),
    ("both tiers of a group", of("PodGroup", spec={"networkTopology": BOTH_TIERS}), NOT_BOTH),
    ("both tiers of a sub-group",
     of("PodGroup", spec={"subGroupPolicy": [{"networkTopology": BOTH_TIERS}]}), NOT_BOTH),
    ("role minimum below 0", of("PodGroup", spec={"minTaskMember": {"a": -1}}), "minTaskMember.a"),
    ("own parent", queue(parent="one"), "not its own parent"),
    ("more deserved than possible", queue(capability={"cpu": 1}, deserved={"cpu": "1001m"}),
     "deserved is at most the capability"),
    ("more guaranteed than possible",
     queue(capability={"cpu": 1}, guarantee={"resource": {"cpu": 2}}),
     "guaranteed is at most the capability"),
    ("more guaranteed than deserved",
     queue(deserved={"cpu": 1}, guarantee={"resource": {"cpu": 2}}),
     "guaranteed is at most what is deserved"),
    ("both tiers of a Job", job(networkTopology=BOTH_TIERS), NOT_BOTH),
    ("both tiers of a part", task(partitionPolicy=PARTS | {"networkTopology": BOTH_TIERS}),
     NOT_BOTH),
    ("more than all replicas", job(minAvailable=5), "at most the replicas of all tasks together"),
    ("more than its replicas", task(minAvailable=5), "minAvailable of a task is at most"),
    ("two tasks of a name", of("Job", spec={"tasks": [TASK, TASK]}), "a name of its own"),
    ("task that waits for itself", task(dependsOn={"name": ["worker"]}), "depend on itself"),
    ("parts that do not add up", task(replicas=5, partitionPolicy=PARTS),
     "totalPartitions times partitionSize"),
    ("more parts than there are", task(partitionPolicy=PARTS | {"minPartitions": 3}),
     "minPartitions is at most totalPartitions"),
    ("minimum that is no whole parts",
     task(minAvailable=3, partitionPolicy=PARTS | {"minPartitions": 1}),
     "minPartitions times partitionSize"),
    ("policy for nothing", job(policies=[{"action": "AbortJob"}]),
     "set either events or an exitCode"),
    ("policy for two things",
     job(policies=[{"action": "AbortJob", "event": "PodFailed", "exitCode": 1}]),
     "set either events or an exitCode"),
    ("policy without action", job(policies=[{"event": "PodFailed"}]), "say in action"),
    ("success as a failure", task(policies=[{"action": "AbortJob", "exitCode": 0}]),
     "exitCode of 0 is no failure"),
    ("event that is none", job(policies=[{"action": "AbortJob", "event": "Rain"}]),
     "Unsupported value"),
    ("action that is none", job(policies=[{"action": "Dance", "event": "PodFailed"}]),
     "Unsupported value"),
    ("volume with two claims",
     job(volumes=[{"mountPath": "/a", "volumeClaimName": "a", "volumeClaim": {}}]),
     "set volumeClaimName or volumeClaim, not both"),
    ("pods without containers", task(template={"spec": {}}), "template.spec.containers: Required"),
    ("Command without action", of("Command", target=JOB), "say in action what is to be done"),
    ("Command without target", of("Command", action="AbortJob"), "say in target what it is about"),
    ("Queue that is to abort", of("Command", action="AbortJob", target=QUEUE),
     "every other a target of kind Job"),
    ("Job of another group",
     of("Command", action="AbortJob", target=JOB | {"apiVersion": "batch/v1"}),
     "a Job of batch.volcano.sh"),
    ("CPU on no node", of("Numatopology", spec={"cpuDetail": {"0": {"numa": -1}}}),
     "greater than or equal to 0"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "words"), [row[1:] for row in REFUSED],
                         ids=[row[0] for row in REFUSED])  # fmt: skip
def test_what_cannot_be_meant_is_refused(plane, item, words):
    with pytest.raises(ApiError) as refusal:
        create(plane, item, dry_run=True)
    assert refusal.value.code == 422
    assert words in str(refusal.value)


# --- what kubectl prints --------------------------------------------------------------------------

COLUMNS = [
    ("hypernodes", "NAME TIER TIERNAME NODECOUNT AGE", ""),
    ("podgroups.scheduling.volcano.sh", "NAME STATUS MINMEMBER RUNNINGS AGE", "QUEUE"),
    ("queues.scheduling.volcano.sh", "NAME PARENT", ""),
    ("jobs.batch.volcano.sh", "NAME STATUS MINAVAILABLE RUNNINGS AGE", "QUEUE"),
    ("commands.bus.volcano.sh", "NAME AGE", ""),
    ("numatopo", "NAME AGE", ""),
]


def test_kubectl_prints_the_columns(plane, kept):
    for item in EVERY_FIELD:
        kept(item)
    for resource, narrow, more in COLUMNS:
        asked = ("get", resource, "-n", "default")
        for flags, wanted in (((), narrow), (("-o", "wide"), f"{narrow} {more}")):
            head, *rows = plane.kubectl(*asked, *flags).stdout.splitlines()
            assert head.split() == wanted.split(), resource
            assert rows, resource
    wide = plane.kubectl("get", "hn", "every-field", "-o", "wide", "--no-headers").stdout
    assert wide.split()[:4] == ["every-field", "2", "spine", "4"]


# --- an upgrade -----------------------------------------------------------------------------------

LIMITS = ("x-kubernetes-validations", "enum", "minimum", "maximum", "minItems", "maxItems",
          "maxLength", "maxProperties", "pattern", "required")  # fmt: skip


def without_limits(schema: Any) -> Any:
    """The same fields, and anything goes; lists by key need their key."""
    if isinstance(schema, dict):
        by_key = schema.get("x-kubernetes-list-type") == "map"
        return {
            name: inner if by_key and name == "items" else without_limits(inner)
            for name, inner in schema.items()
            if name not in LIMITS or isinstance(inner, dict)
        }
    return [without_limits(inner) for inner in schema] if isinstance(schema, list) else schema


def put_crd(plane, crd: Object) -> None:
    """Replaces it: an apply would leave what another manager has set too."""
    api = plane.api
    current = api.get(crd["apiVersion"], crd["kind"], name_of(crd))
    api.request("PUT", api.path_of(crd), current | {"spec": crd["spec"]})


@pytest.fixture
def former(plane):
    """The CRDs as they were before anything was limited; afterwards they are as they should be."""
    for crd in CRDS.values():
        old = copy.deepcopy(crd)
        schema = old["spec"]["versions"][0]["schema"]
        schema["openAPIV3Schema"] = without_limits(schema["openAPIV3Schema"])
        put_crd(plane, old)
    yield
    for crd in CRDS.values():
        put_crd(plane, crd)


def is_taken(plane, item: Object) -> bool:
    try:
        create(plane, item, dry_run=True)
    except ApiError:
        return False
    return True


def test_an_upgrade_keeps_what_would_be_refused_today(plane, former):
    api = plane.api
    by_kind = {row[1]["kind"]: row[1] for row in REFUSED}
    assert set(by_kind) == set(CRDS)
    for item in by_kind.values():
        eventually(lambda: is_taken(plane, item), what=f"the former CRD of {item['kind']}")
    made = [create(plane, item) for item in by_kind.values()]
    for crd in CRDS.values():
        put_crd(plane, crd)
    for item in by_kind.values():
        fresh = item | {"metadata": {"name": "two"}}
        eventually(lambda: not is_taken(plane, fresh), what=f"the CRD of {item['kind']}")
    for item in made:
        # Who touches something else is not held up by what was there before.
        api.patch(item, {"metadata": {"labels": {"seen": "yes"}}})
        namespace = item["metadata"].get("namespace", "")
        stored = api.get(item["apiVersion"], item["kind"], name_of(item), namespace)
        assert lacking(item.get("spec", {}), stored.get("spec", {})) == []
        assert stored["metadata"]["labels"]["seen"] == "yes"
        api.delete(item)
