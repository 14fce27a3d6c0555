"""Every rule about jobs, queues, PodGroups, HyperNodes and pods, asked of a real API server with
the CRDs and `hopwise webhook`: who breaks one is refused and told the field; others are taken."""

from __future__ import annotations

from typing import Any

from hopcluster.api import ApiError
from hopcluster.objects import pod
from support import CLAIM, TOPOLOGY, VOLCANO, eventually, name_of, pod_group, queue
from test_webhook import JOBS, hook, job

__all__ = ["hook"]  # a fixture

Object = dict[str, Any]
BOTH_TIERS = {"highestTierAllowed": 1, "highestTierName": "leaf"}
PARTS = {"totalPartitions": 2, "partitionSize": 2}


def said(user, item: Object) -> str:
    """What the API server says to an object that somebody would make; "" when it takes it."""
    api = user.plane.api
    namespace = "" if item["kind"] in user.CLUSTER_WIDE else user.namespace
    if namespace:
        item["metadata"]["namespace"] = namespace
    path = api.collection(item["apiVersion"], item["kind"], namespace)
    try:
        api.request("POST", f"{path}?dryRun=All&fieldValidation=Strict", item)
    except ApiError as error:
        return str(error)
    return ""


def judge(user, rows: list[tuple[str, Object, str]]) -> None:
    """Each object is refused with these words, or taken where there are none."""
    wrong = []
    for what, item, words in rows:
        text = said(user, item)
        if bool(text) != bool(words) or words not in text:
            wrong.append(f"{what}: wanted {words!r}, was told {text!r}")
    assert not wrong, "\n".join(wrong)


# --- jobs -----------------------------------------------------------------------------------------


def container(**more: Any) -> Object:
    return {"name": "main", "image": "busybox:1", **more}


def task(name: str = "w", replicas: int = 2, spec: Object | None = None, **more: Any) -> Object:
    template = {"spec": spec or {"containers": [container()]}}
    return {"name": name, "replicas": replicas, "template": template, **more}


def of(*tasks: Object, **spec: Any) -> Object:
    return job("j", tasks=list(tasks) or [task()], **spec)


def asks(requests: Object, limits: Object | None = None) -> Object:
    """A job whose container asks for these amounts."""
    amounts = {"requests": requests, **({"limits": limits} if limits else {})}
    return of(task(spec={"containers": [container(resources=amounts)]}))


COUNTS = [
    ("a job that keeps all rules", of(), ""),
    ("no task", job("j", tasks=[]), "spec.tasks"),
    ("less than no replicas", of(task(replicas=-1)), "spec.tasks[0].replicas"),
    ("a minimum below zero", of(task(minAvailable=-1)), "spec.tasks[0].minAvailable"),
    ("a task's minimum above its replicas", of(task(minAvailable=3)), "minAvailable"),
    ("a job's minimum above all replicas", of(minAvailable=3), "minAvailable"),
    ("a job's minimum below zero", of(minAvailable=-1), "spec.minAvailable"),
    ("retries below zero", of(maxRetry=-1), "spec.maxRetry"),
    ("a time to live below zero", of(ttlSecondsAfterFinished=-1), "spec.ttlSecondsAfterFinished"),
    ("no success needed", of(minSuccess=0), "spec.minSuccess"),
    ("two limits of a topology", of(networkTopology=BOTH_TIERS), "spec.networkTopology"),
]
NAMES = [
    ("a task that is no DNS name", of(task("W_1")), "spec.tasks[0].name"),
    ("two tasks of a name", of(task(), task()), "spec.tasks"),
    ("pods with too long names", of(task("w" * 60)) | {"metadata": {"name": "j" * 20}},
     "metadata.name"),
]  # fmt: skip
FAILED = {"event": "PodFailed", "action": "AbortJob"}
POLICIES = [
    ("policies that keep all rules",
     of(policies=[FAILED, {"exitCode": 3, "action": "RestartJob"},
                  {"events": ["PodEvicted", "TaskFailed"], "action": "TerminateJob"}]), ""),
    ("an event twice", of(policies=[FAILED, FAILED | {"action": "RestartJob"}]),
     "spec.policies[1].event"),
    ("an exit code twice",
     of(policies=[{"exitCode": 3, "action": "AbortJob"}, {"exitCode": 3, "action": "AbortJob"}]),
     "spec.policies[1].exitCode"),
    ("any event and another", of(policies=[FAILED, FAILED | {"event": "*"}]), "spec.policies"),
    ("event and exit code", of(policies=[FAILED | {"exitCode": 3}]), "spec.policies[0]"),
    ("neither", of(policies=[{"action": "AbortJob"}]), "spec.policies[0]"),
    ("success as a failure", of(policies=[{"exitCode": 0, "action": "AbortJob"}]), "exitCode"),
    ("an unknown event", of(policies=[FAILED | {"event": "Rain"}]), "spec.policies[0].event"),
    ("an unknown action", of(policies=[FAILED | {"action": "Dance"}]), "spec.policies[0].action"),
    ("a time that is none", of(policies=[FAILED | {"timeout": "soon"}]),
     "spec.policies[0].timeout"),
    ("the same of a task", of(task(policies=[FAILED, FAILED])), "spec.tasks[0].policies[1].event"),
]  # fmt: skip
PLUGINS_AND_ORDER = [
    ("a plugin that is not there", of(plugins={"dance": []}), "spec.plugins[dance]"),
    ("a task that waits for nobody", of(task(dependsOn={"name": ["x"]})),
     "spec.tasks[0].dependsOn.name[0]"),
    ("tasks that wait for each other",
     of(task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})),
     "spec.tasks: "),
    ("tasks one after the other", of(task("a"), task("b", dependsOn={"name": ["a"]})), ""),
]  # fmt: skip
VOLUMES = [
    ("two volumes", of(volumes=[{"mountPath": "/a", "volumeClaim": CLAIM},
                                {"mountPath": "/b", "volumeClaimName": "b"}]), ""),
    ("two volumes at a place", of(volumes=[{"mountPath": "/a", "volumeClaimName": "a"},
                                           {"mountPath": "/a", "volumeClaimName": "b"}]),
     "spec.volumes[1].mountPath"),
    ("a volume at no place", of(volumes=[{"mountPath": "", "volumeClaimName": "a"}]),
     "spec.volumes[0].mountPath"),
    ("a volume with two claims",
     of(volumes=[{"mountPath": "/a", "volumeClaimName": "a", "volumeClaim": CLAIM}]),
     "spec.volumes[0]"),
    ("a claim that cannot be called so",
     of(volumes=[{"mountPath": "/a", "volumeClaimName": "A_"}]),
     "spec.volumes[0].volumeClaimName"),
]  # fmt: skip
TEMPLATES = [
    ("no container", of(task(spec={"containers": []})), "spec.tasks[0].template.spec.containers"),
    ("no image", of(task(spec={"containers": [{"name": "main"}]})),
     "spec.tasks[0].template.spec.containers[0].image"),
    ("two containers of a name", of(task(spec={"containers": [container(), container()]})),
     "spec.tasks[0].template.spec.containers[1].name"),
    ("an unknown restart policy",
     of(task(spec={"containers": [container()], "restartPolicy": "Maybe"})), "restartPolicy"),
    ("a unit that is none", asks({"memory": "10MBi"}), "spec.tasks[0].template.spec.containers[0]"),
    ("an amount that is none", asks({"cpu": "-x"}), "spec.tasks[0].template.spec.containers[0]"),
    ("more than the limit", asks({"cpu": "2"}, {"cpu": "1"}), "requests[cpu]"),
    ("half a device", asks({"nvidia.com/gpu": "1"}, {"nvidia.com/gpu": "2"}),
     "requests[nvidia.com/gpu]"),
    ("a volume that is not there",
     of(task(spec={"containers": [container(volumeMounts=[{"name": "v", "mountPath": "/v"}])]})),
     "volumeMounts[0].name"),
]  # fmt: skip
PARTITIONS = [
    ("partitions that make up the task", of(task(replicas=4, partitionPolicy=PARTS)), ""),
    ("no partitions", of(task(replicas=0, partitionPolicy=PARTS | {"totalPartitions": 0})),
     "partitionPolicy.totalPartitions"),
    ("partitions of nobody", of(task(replicas=0, partitionPolicy=PARTS | {"partitionSize": 0})),
     "partitionPolicy.partitionSize"),
    ("partitions that do not make up the task", of(task(replicas=5, partitionPolicy=PARTS)),
     "totalPartitions"),
    ("more partitions than there are",
     of(task(replicas=4, partitionPolicy=PARTS | {"minPartitions": 3})), "minPartitions"),
    ("a minimum of no whole partitions",
     of(task(replicas=4, minAvailable=3, partitionPolicy=PARTS | {"minPartitions": 1})),
     "minPartitions"),
    ("two limits of a partition's topology",
     of(task(replicas=4, partitionPolicy=PARTS | {"networkTopology": BOTH_TIERS})),
     "partitionPolicy"),
]  # fmt: skip


def test_jobs_that_break_a_rule_are_refused(user, hook):
    hook()
    judge(user, COUNTS + NAMES + POLICIES + PLUGINS_AND_ORDER + VOLUMES + TEMPLATES + PARTITIONS)


def test_a_job_goes_to_a_queue_that_is_open_and_holds_no_others(user, hook):
    hook()
    for one in (queue("org"), queue("team", parent="org"), queue("shut")):
        user.create(one)
    user.patch(VOLCANO, "Queue", "shut", {"status": {"state": "Closed"}}, "status")
    rows = [("its queue is open", job("j", queue="team"), ""),
            ("its queue is not there", job("j", queue="nowhere"), "spec.queue"),
            ("its queue is closed", job("j", queue="shut"), "spec.queue"),
            ("its queue holds others", job("j", queue="org"), "spec.queue"),
            ("its queue is the root", job("j", queue="root"), "spec.queue")]  # fmt: skip

    def seen() -> bool:
        judge(user, rows)
        return True

    eventually(seen, what="the webhook has seen the queues")


def test_of_a_job_only_counts_and_priority_change(user, hook):
    hook()
    user.create(of(task("a"), task("b"), minAvailable=2))
    tasks = user.get(JOBS, "Job", "j")["spec"]["tasks"]

    def change(spec: Object) -> str:
        item = {"apiVersion": JOBS, "kind": "Job",
                "metadata": {"name": "j", "namespace": user.namespace}}  # fmt: skip
        try:
            user.plane.api.patch(item, {"spec": spec})
        except ApiError as error:
            return str(error)
        return ""

    scaled = [tasks[0] | {"replicas": 4, "minAvailable": 1}, tasks[1]]
    assert change({"minAvailable": 1}) == ""
    assert change({"tasks": scaled}) == ""
    assert change({"priorityClassName": "high"}) == ""
    assert "minAvailable is at most" in change({"minAvailable": 7})
    assert "spec.tasks" in change({"tasks": scaled[:1]})
    assert "spec.queue" in change({"queue": "other"})
    assert "spec.tasks[0].name" in change({"tasks": [scaled[0] | {"name": "c"}, scaled[1]]})
    another = {"spec": {"containers": [container(image="busybox:2")]}}
    assert "spec.tasks[0].template" in change({"tasks": [scaled[0] | {"template": another},
                                                         scaled[1]]})  # fmt: skip
    assert user.get(JOBS, "Job", "j")["spec"]["tasks"][0]["replicas"] == 4


# --- queues and PodGroups -------------------------------------------------------------------------


def weighted(hierarchy: str, weights: str) -> Object:
    made = queue("q")
    made["metadata"]["annotations"] = {"volcano.sh/hierarchy": hierarchy,
                                       "volcano.sh/hierarchy-weights": weights}  # fmt: skip
    return made


QUEUES = [
    ("amounts that fit each other",
     queue("q", capability={"cpu": "8"}, deserved={"cpu": "4"},
           guarantee={"resource": {"cpu": "2"}}), ""),
    ("no weight", queue("q", weight=0), "spec.weight"),
    ("more deserved than possible", queue("q", capability={"cpu": "1"}, deserved={"cpu": "2"}),
     "deserved"),
    ("more guaranteed than deserved",
     queue("q", deserved={"cpu": "1"}, guarantee={"resource": {"cpu": "2"}}), "guarantee"),
    ("guaranteed, and not deserved",
     queue("q", deserved={"cpu": "1"}, guarantee={"resource": {"memory": "1Gi"}}),
     "spec.guarantee.resource[memory]"),
    ("an amount below zero", queue("q", capability={"cpu": "-1"}), "spec.capability"),
    ("a parent that is not there", queue("q", parent="nowhere"), "spec.parent"),
    ("itself as its parent", queue("q", parent="q"), "parent"),
    ("a weight for each level", weighted("root/a", "1/2"), ""),
    ("a level without weight", weighted("root/a/b", "1/2"), "hierarchy-weights"),
    ("a weight that is none", weighted("root/a", "1/x"), "hierarchy-weights"),
]  # fmt: skip


def test_queues_that_break_a_rule_are_refused(user, hook):
    hook()
    judge(user, QUEUES)


def test_queues_are_five_deep_and_no_deeper(user, hook):
    hook()
    above = "root"
    for level in range(1, 6):
        made = queue(f"level{level}", parent=above)
        # The webhook must have seen the one above.
        eventually(lambda q=made: said(user, q) == "", what=f"level {level} is taken")
        user.create(made)
        above = name_of(made)
    eventually(lambda: "levels below root" in said(user, queue("level6", parent=above)))


def test_pod_groups_go_to_an_open_queue_and_have_one_limit(user, hook):
    hook()
    user.create(queue("shut"))
    user.patch(VOLCANO, "Queue", "shut", {"status": {"state": "Closed"}}, "status")
    policy = {"name": "s", "networkTopology": BOTH_TIERS}
    rows = [("a group without a queue", pod_group("g", 1), ""),
            ("a queue that is not there", pod_group("g", 1, queue="nowhere"), "spec.queue"),
            ("a queue that is closed", pod_group("g", 1, queue="shut"), "spec.queue"),
            ("two limits", pod_group("g", 1, networkTopology=BOTH_TIERS), "spec.networkTopology"),
            ("two limits of a sub-group", pod_group("g", 1, subGroupPolicy=[policy]),
             "spec.subGroupPolicy[0].networkTopology")]  # fmt: skip

    def seen() -> bool:
        judge(user, rows)
        return True

    eventually(seen, what="the webhook has seen the queue")


# --- HyperNodes and pods --------------------------------------------------------------------------


def hyper_node(*selectors: Object, name: str = "h") -> Object:
    members = [{"type": "Node", "selector": each} for each in selectors]
    return {"apiVersion": TOPOLOGY, "kind": "HyperNode", "metadata": {"name": name},
            "spec": {"tier": 1, "members": members}}  # fmt: skip


EXACT = {"exactMatch": {"name": "n0"}}
HYPER_NODES = [
    ("members by name", hyper_node(EXACT), ""),
    ("members by pattern", hyper_node({"regexMatch": {"pattern": "^n[0-9]+$"}}), ""),
    ("members by label", hyper_node({"labelMatch": {"matchLabels": {"rack": "a"}}}), ""),
    ("an empty name", hyper_node({"exactMatch": {"name": ""}}), "exactMatch.name"),
    ("an empty pattern", hyper_node({"regexMatch": {"pattern": ""}}), "regexMatch.pattern"),
    ("a pattern that is none", hyper_node({"regexMatch": {"pattern": "n[0"}}),
     "spec.members[0].selector.regexMatch.pattern"),
    ("no members", hyper_node(), "spec.members"),
    ("members by nothing", hyper_node({}), "spec.members[0].selector"),
    ("members by two ways", hyper_node(EXACT | {"regexMatch": {"pattern": "a"}}),
     "spec.members[0].selector"),
    ("a name that is none", hyper_node(EXACT, name="Bad_Name"), "metadata.name"),
    ("a tier below zero", hyper_node(EXACT) | {"spec": {"tier": -1, "members": []}}, "spec.tier"),
]  # fmt: skip


def test_hypernodes_that_can_never_work_are_refused(user, hook):
    hook()
    judge(user, HYPER_NODES)


def test_a_hypernode_is_not_changed_into_one_that_can_never_work(user, hook):
    hook()
    user.create(hyper_node(EXACT))
    for members, words in (
        ([{"type": "Node", "selector": {"regexMatch": {"pattern": "n[0"}}}], "regexMatch.pattern"),
        ([{"type": "Node", "selector": {"exactMatch": {"name": ""}}}], "exactMatch.name"),
        ([], "spec.members"),
    ):
        try:
            user.patch(TOPOLOGY, "HyperNode", "h", {"spec": {"members": members}})
            text = "taken"
        except ApiError as error:
            text = str(error)
        assert words in text
    (member,) = user.get(TOPOLOGY, "HyperNode", "h")["spec"]["members"]
    assert member["selector"] == EXACT


def marked(**marks: str) -> Object:
    keys = {"least": "volcano.sh/jdb-min-available", "most": "volcano.sh/jdb-max-unavailable"}
    return pod("p", annotations={keys[key]: text for key, text in marks.items()})


PODS = [
    ("a number", marked(least="2"), ""),
    ("a share", marked(most="30%"), ""),
    ("nothing at all", marked(least="0"), "jdb-min-available"),
    ("all of them", marked(least="100%"), "jdb-min-available"),
    ("a word", marked(most="many"), "jdb-max-unavailable"),
    ("both", marked(least="1", most="1"), "exclude each other"),
]


def test_budgets_of_pods_are_numbers_or_shares_and_one_of_two(user, hook):
    hook(pods=True)
    judge(user, PODS)
