"""Whoever declares a gang, however, gets all of it placed or none, and reads why on the objects."""

from __future__ import annotations

import kubernetes
import pytest
import yaml
from hopcluster.objects import pod
from support import (
    GPUS,
    GROUP,
    PLUGINS,
    VOLCANO,
    annotation_of,
    condition_of,
    eventually,
    for_a_while,
    hard,
    index_of,
    name_of,
    node_of,
    pod_group,
    priority_class,
    queue,
    soft,
    uid_of,
)

pytestmark = pytest.mark.usefixtures("scheduler")

WAYS = {
    "pod group": lambda user, *args, **more: user.gang(*args, **more),
    "labels": lambda user, *args, **more: user.label_gang(*args, **more),
    "pod group of scheduler-plugins": lambda user, *args, **more: user.plugin_gang(*args, **more),
}
by_every_way = pytest.mark.parametrize("declare", WAYS.values(), ids=WAYS.keys())


# --- all or none ----------------------------------------------------------------------------------


@by_every_way
def test_a_gang_that_fits_is_bound_whole(user, declare):
    user.floor(4)
    declare(user, "band", 4)
    assert user.await_bound("band", 4) == ["node0", "node1", "node2", "node3"]


@by_every_way
def test_a_gang_that_does_not_fit_holds_nothing(user, declare):
    user.floor(4)
    declare(user, "band", 5)
    for each in user.await_told("band"):
        condition = condition_of(each, "PodScheduled")
        assert condition["reason"] == "Unschedulable"
        assert "nvidia.com/gpu" in condition["message"]
    user.stays_whole_unbound("band")


@by_every_way
def test_more_members_than_the_minimum_come_as_far_as_there_is_room(user, declare):
    user.floor(4)
    declare(user, "band", 6, 3)
    user.await_bound("band", 4)


@by_every_way
def test_members_that_are_missing_keep_the_gang_waiting(user, declare):
    """The minimum counts pods that exist."""
    user.floor(4)
    declare(user, "band", 2, 3)
    (words,) = {condition_of(p, "PodScheduled")["message"] for p in user.await_told("band")}
    assert "2" in words and "3" in words
    user.stays_whole_unbound("band")


def test_a_pod_alone_is_a_gang_of_one(user):
    user.floor(2)
    user.create(pod("solo", gpus=GPUS))
    user.create(pod("duet", scheduler="volcano", gpus=GPUS))
    assert user.await_bound("", 2) == ["node0", "node1"]


def test_pods_of_other_schedulers_are_left_alone(user):
    user.floor(2)
    user.create(pod("theirs", scheduler="somebody-else"))
    user.create(pod("ours"))
    eventually(lambda: node_of(user.pod("ours")))

    def untouched():
        theirs = user.pod("theirs")
        assert node_of(theirs) == "" and not condition_of(theirs, "PodScheduled")

    for_a_while(untouched)
    assert user.events(about=user.pod("theirs")) == []


def test_a_pod_waits_for_the_group_that_it_names(user):
    user.floor(2)
    user.members("band", range(2))
    (words,) = {condition_of(p, "PodScheduled")["message"] for p in user.await_told("band")}
    assert "band" in words
    user.stays_whole_unbound("band")
    user.create(pod_group("band", 2))
    user.await_bound("band", 2)


def web_deployment(replicas):
    """Replicas of a pod that takes all GPUs of a node."""
    labels = {"app": "web"}
    spec = pod("x", scheduler="volcano", gpus=GPUS)["spec"]
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def test_pods_of_a_deployment_are_placed(user):
    """Through the real controllers: Deployment, ReplicaSet, pods."""
    user.floor(4)
    user.create(web_deployment(3))
    user.await_bound("web", 3)
    user.patch("apps/v1", "Deployment", "web", {"spec": {"replicas": 4}})
    user.await_bound("web", 4)

    def available():
        status = user.get("apps/v1", "Deployment", "web")["status"]
        return status.get("availableReplicas") == 4

    eventually(available, what="the Deployment is available")


def test_a_killed_pod_of_a_deployment_is_made_and_placed_anew(user):
    user.floor(2)
    user.create(web_deployment(2))
    user.await_bound("web", 2)
    victim = user.pods("web")[0]
    user.delete("v1", "Pod", name_of(victim))

    def replaced():
        found = user.pods("web")
        return (len(found) == 2 and all(node_of(p) for p in found)
                and uid_of(victim) not in [uid_of(p) for p in found])  # fmt: skip

    eventually(replaced, what="the pod is replaced")


# --- topology -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "tier", "nodes_per_domain"), [(2, 1, 2), (4, 2, 4), (3, 2, 4), (8, 3, 8)]
)
def test_a_hard_rule_is_held(user, size, tier, nodes_per_domain):
    user.floor(8)
    user.gang("band", size, topology=hard(tier))
    nodes = user.await_bound("band", size)
    assert len({index_of(node) // nodes_per_domain for node in nodes}) == 1, nodes


def test_a_hard_rule_that_cannot_be_met_never_lapses(user):
    user.floor(8)
    user.gang("band", 3, topology=hard(1))
    (words,) = {condition_of(p, "PodScheduled")["message"] for p in user.await_told("band")}
    assert "leaf" in words and "3" in words
    user.stays_whole_unbound("band")


def test_a_soft_rule_takes_the_closest_there_is(user):
    user.floor(8)
    user.gang("near", 2, topology=soft(1))
    nodes = user.await_bound("near", 2)
    assert len({index_of(node) // 2 for node in nodes}) == 1, "one leaf holds both"
    user.gang("far", 6, topology=soft(1))
    assert len(user.await_bound("far", 6)) == 6, "no leaf holds six, and it runs all the same"


def test_where_a_gang_lies_stands_on_its_pod_group(user):
    user.floor(8)
    user.gang("leaf", 2, topology=hard(1))
    user.await_bound("leaf", 2)
    user.gang("spine", 4, topology=hard(2))
    user.await_bound("spine", 4)

    def place_of(name):
        group = user.group(name)
        keys = ("placed-tier", "placed-domain", "predicted-distance")
        found = [annotation_of(group, f"hopwise.dev/{key}") for key in keys]
        return None if None in found else tuple(found)

    leaf = index_of(user.nodes_of("leaf")[0]) // 2
    spine = index_of(user.nodes_of("spine")[0]) // 4
    assert eventually(lambda: place_of("leaf")) == ("1", f"s{leaf}", "2")
    assert eventually(lambda: place_of("spine")) == ("2", f"s{4 + spine}", "4")


# --- what stands on the objects -------------------------------------------------------------------


def phase_of(user, name, api_version=VOLCANO):
    return user.group(name, api_version).get("status", {}).get("phase")


def test_a_running_gangs_pod_group_says_so(user):
    user.floor(4)
    user.gang("band", 3, 2)
    user.await_bound("band", 3)
    status = eventually(
        lambda: (s := user.group("band").get("status", {})).get("running") == 3 and s,
        what="all are counted as running",
    )
    assert status["phase"] == "Running"
    scheduled = condition_of({"status": status}, "Scheduled")
    assert scheduled["status"] == "True"
    assert scheduled["reason"] == "tasks in gang are ready to be scheduled"
    assert scheduled["transitionID"] and scheduled["lastTransitionTime"]
    assert condition_of({"status": status}, "Unschedulable") is None


def test_a_waiting_gangs_pod_group_says_why(user):
    user.floor(4)
    user.gang("band", 5)
    user.await_told("band")
    group = eventually(
        lambda: condition_of(g := user.group("band"), "Unschedulable") and g,
        what="a condition Unschedulable",
    )
    condition = condition_of(group, "Unschedulable")
    assert condition["status"] == "True"
    assert condition["reason"] == "NeverFits"
    assert "nvidia.com/gpu" in condition["message"]
    assert group["status"]["phase"] == "Inqueue"
    event = user.await_event("Unschedulable", about=group)
    assert event["type"] == "Warning"
    assert event["message"] == condition["message"]


def test_the_pod_group_turns_from_waiting_to_running(user):
    user.floor(2)
    user.gang("band", 3)
    user.await_told("band")
    eventually(lambda: condition_of(user.group("band"), "Unschedulable"))
    user.add_node("node9")
    user.await_bound("band", 3)
    group = eventually(lambda: condition_of(g := user.group("band"), "Scheduled") and g)
    assert condition_of(group, "Unschedulable") is None
    user.await_event("Scheduled", about=group)


def test_a_finished_gang_is_completed(user):
    user.floor(2)
    user.gang("band", 2, annotations={"hopwise.dev/run-time": "500ms"})
    eventually(lambda: phase_of(user, "band") == "Completed", what="phase Completed")
    status = user.group("band")["status"]
    assert (status["succeeded"], status.get("running", 0)) == (2, 0)
    user.gang("next", 2)
    user.await_bound("next", 2)


def test_pod_groups_of_scheduler_plugins_have_its_phases(user):
    user.floor(2)
    user.plugin_gang("band", 2)
    user.await_bound("band", 2)
    eventually(lambda: phase_of(user, "band", PLUGINS) == "Running", what="phase Running")
    eventually(lambda: user.group("band", PLUGINS)["status"].get("running") == 2)


def test_each_bind_has_one_event(user, witness):
    user.floor(4)
    witness.expect(f"{user.namespace}/band", 4)
    user.gang("band", 4)
    user.await_bound("band", 4)
    for each in user.pods("band"):
        event = user.await_event("Scheduled", about=each)
        wanted = f"Successfully assigned {user.namespace}/{name_of(each)} to {node_of(each)}"
        assert (event["type"], event["message"]) == ("Normal", wanted)
    witness.audit(half_bound_limit=5)


def test_each_pod_that_waits_has_an_event(user):
    user.floor(2)
    user.gang("band", 3)
    for each in user.await_told("band"):
        event = user.await_event("FailedScheduling", about=each)
        assert event["type"] == "Warning"
        assert event["message"] == condition_of(each, "PodScheduled")["message"]


def test_a_bound_pods_condition_turns_true(user):
    user.floor(2)
    user.gang("band", 3)
    user.await_told("band")
    user.add_node("node9")
    user.await_bound("band", 3)
    for each in user.pods("band"):
        assert condition_of(each, "PodScheduled")["status"] == "True"


def test_nothing_is_written_while_nothing_changes(user):
    user.floor(4)
    user.gang("runs", 2)
    user.gang("waits", 3)
    user.await_bound("runs", 2)
    user.await_told("waits")
    eventually(lambda: user.group("runs").get("status", {}).get("running") == 2)
    eventually(lambda: condition_of(user.group("waits"), "Unschedulable"))

    def versions():
        items = [user.group("runs"), user.group("waits"), *user.pods()]
        items += user.list(VOLCANO, "Queue") + user.events()
        return {(i["kind"] if "kind" in i else "", name_of(i)): i["metadata"]["resourceVersion"]
                for i in items}  # fmt: skip

    # Counters of a queue are written a second late at most.
    last = [versions()]

    def calm():
        last.append(versions())
        return len(last) > 30 and last[-1] == last[-30]

    eventually(calm, what="calm")
    before = versions()

    def the_same():
        assert versions() == before

    for_a_while(the_same, 2)


# --- queues and priorities ------------------------------------------------------------------------


def queue_status(user, name):
    return user.get(VOLCANO, "Queue", name).get("status") or {}


def test_the_queues_that_must_exist_are_made(user):
    names = eventually(lambda: {name_of(q) for q in user.list(VOLCANO, "Queue")})
    assert {"default", "root"} <= names
    eventually(lambda: queue_status(user, "default").get("state") == "Open")


def test_a_queue_counts_its_gangs_and_what_they_hold(user):
    user.floor(4)
    user.create(queue("team"))
    user.gang("runs", 2, queue="team")
    user.gang("waits", 3, queue="team")
    user.await_bound("runs", 2)
    user.await_told("waits")

    def counted():
        status = queue_status(user, "team")
        assert status.get("running") == 1, status
        assert status.get("inqueue") == 1, status
        assert status.get("allocated", {}).get("nvidia.com/gpu") == str(2 * GPUS), status
        assert status.get("state") == "Open", status
        return True

    eventually(counted)
    user.remove_pods("runs")
    user.delete(VOLCANO, "PodGroup", "runs")
    user.await_bound("waits", 3)
    eventually(lambda: queue_status(user, "team")["allocated"]["nvidia.com/gpu"] == str(3 * GPUS))


def reason_of(user, name):
    return (condition_of(user.group(name), "Unschedulable") or {}).get("reason")


def test_a_closed_queue_takes_nothing_until_it_opens(user):
    user.floor(2)
    user.create({**queue("team"), "status": {"state": "Closed"}})
    # Queues and PodGroups are told by different watches: once one is refused, the queue was seen.
    user.gang("first", 1, queue="team")
    eventually(lambda: reason_of(user, "first") == "QueueClosed")
    user.gang("band", 2, queue="team")
    (words,) = {condition_of(p, "PodScheduled")["message"] for p in user.await_told("band")}
    assert "team" in words
    user.stays_whole_unbound("band")
    assert phase_of(user, "band") in (None, "", "Pending")
    user.delete("v1", "Pod", "first-0")
    user.patch(VOLCANO, "Queue", "team", {"status": {"state": "Open"}}, "status")
    user.await_bound("band", 2)


def test_a_queue_that_does_not_exist_is_named(user):
    user.floor(2)
    user.gang("band", 2, queue="nowhere")
    (words,) = {condition_of(p, "PodScheduled")["message"] for p in user.await_told("band")}
    assert "nowhere" in words
    user.create(queue("nowhere"))
    user.await_bound("band", 2)


def test_a_queues_limit_holds(user):
    user.floor(4)
    user.create(queue("team", capability={"nvidia.com/gpu": 2 * GPUS}))
    user.gang("band", 2, queue="team")
    user.await_bound("band", 2)
    user.gang("more", 1, queue="team")
    (words,) = {condition_of(p, "PodScheduled")["message"] for p in user.await_told("more")}
    assert "team" in words
    user.stays_whole_unbound("more")
    user.remove_pods("band")
    user.await_bound("more", 1)


def test_the_gang_of_higher_priority_is_served_first(user):
    user.floor(2)
    user.create(priority_class("high", 1000))
    user.gang("first", 2)
    user.await_bound("first", 2)
    user.gang("low", 2)
    user.await_told("low")
    user.gang("high", 2, priorityClassName="high", pod_spec={"priorityClassName": "high"})
    user.await_told("high")
    user.remove_pods("first")
    user.await_bound("high", 2)
    user.stays_whole_unbound("low")


# --- as users do it -------------------------------------------------------------------------------


def test_with_the_typed_python_client(user, plane):
    user.floor(2)
    configuration = kubernetes.client.Configuration()
    kubernetes.config.load_kube_config(str(plane.kubeconfig), client_configuration=configuration)
    api = kubernetes.client.ApiClient(configuration)
    core, custom = kubernetes.client.CoreV1Api(api), kubernetes.client.CustomObjectsApi(api)
    where = ("scheduling.volcano.sh", "v1beta1", user.namespace, "podgroups")
    custom.create_namespaced_custom_object(*where, pod_group("band", 2))
    for number in range(2):
        needs = kubernetes.client.V1ResourceRequirements(limits={"nvidia.com/gpu": str(GPUS)})
        core.create_namespaced_pod(
            user.namespace,
            kubernetes.client.V1Pod(
                metadata=kubernetes.client.V1ObjectMeta(
                    name=f"band-{number}", annotations={GROUP: "band"}
                ),
                spec=kubernetes.client.V1PodSpec(
                    scheduler_name="hopwise",
                    containers=[kubernetes.client.V1Container(name="main", image="x",
                                                              resources=needs)],  # fmt: skip
                ),
            ),
        )
    seen = {}
    watch = kubernetes.watch.Watch()
    for event in watch.stream(core.list_namespaced_pod, user.namespace, timeout_seconds=20):
        item = event["object"]
        seen[item.metadata.name] = item.status.phase
        if list(seen.values()) == ["Running", "Running"]:
            watch.stop()
    assert seen == {"band-0": "Running", "band-1": "Running"}

    def phase():
        return custom.get_namespaced_custom_object(*where, "band")["status"]["phase"]

    # The pods may be seen running before their group is written.
    eventually(lambda: phase() == "Running", what="phase Running")


def test_with_kubectl(user, plane):
    user.floor(2)
    objects = [pod_group("band", 2)]
    objects += [pod(f"band-{i}", gpus=GPUS, annotations={GROUP: "band"}) for i in range(2)]
    objects += [pod("late", gpus=GPUS)]
    for each in objects:
        each["metadata"]["namespace"] = user.namespace
    inside = ("-n", user.namespace)
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects[:-1]))
    plane.kubectl("wait", *inside, "--for=condition=PodScheduled", "--timeout=20s",
                  "pod/band-0", "pod/band-1")  # fmt: skip
    plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump(objects[-1]))
    user.await_told("late")
    line = eventually(
        lambda: (out := plane.kubectl("get", *inside, "podgroups.scheduling.volcano.sh", "band",
                                      "--no-headers").stdout.split())[1] == "Running" and out
    )  # fmt: skip
    assert line[:3] == ["band", "Running", "2"]
    user.await_event("FailedScheduling", about=user.pod("late"))
    described = plane.kubectl("describe", *inside, "pod", "late").stdout
    assert "FailedScheduling" in described and "nvidia.com/gpu" in described
    plane.kubectl("delete", *inside, "pod", "band-0", "--wait=true", "--timeout=20s")
    eventually(lambda: node_of(user.pod("late")), what="the room of the deleted pod is used")
