"""That the control plane of the tests is there, is real, and leaves nothing behind."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
from typing import Callable, Iterator

import kubernetes
import pytest

from hopcluster import Cluster, Options, objects
from hopcluster.api import documents_of
from hopcluster.cluster import sweep
from hopcluster.paths import DEPLOY, ROOT, TESTS
from hopcluster.process import start_time_of

# A busy machine is no failure.
PATIENCE_S = 60.0


def wait_for(is_so: Callable[[], bool], what: str, within_s: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + within_s
    while not is_so():
        assert time.monotonic() < deadline, f"{what}: not so after {within_s:g} s"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def core(cluster: Cluster) -> Iterator[kubernetes.client.CoreV1Api]:
    """The official client, as users have it."""
    with kubernetes.config.new_client_from_config(str(cluster.kubeconfig)) as client:
        yield kubernetes.client.CoreV1Api(client)


@pytest.fixture(scope="module")
def custom(core: kubernetes.client.CoreV1Api) -> kubernetes.client.CustomObjectsApi:
    return kubernetes.client.CustomObjectsApi(core.api_client)


@pytest.fixture(scope="module")
def eight_nodes(cluster: Cluster) -> Cluster:
    """node0 … node7 under the leaves s0 … s3, the spines s4 and s5, and the core s6."""
    fabric = objects.Fabric()
    cluster.create(objects.node(name) for name in fabric.node_names())
    cluster.create(fabric.hypernodes())
    return cluster


# --- the API server and its CRDs ------------------------------------------------------------------


def test_kubectl_and_the_server_are_of_the_version_we_build(cluster: Cluster) -> None:
    versions = cluster.kubectl("version").stdout.splitlines()
    assert "Client Version: v1.36.1" in versions
    assert "Server Version: v1.36.1" in versions


# What `kubectl get` prints, and what `-o wide` adds.
COLUMNS = [
    ("hypernodes", "NAME TIER TIERNAME NODECOUNT AGE", ""),
    ("podgroups.scheduling.volcano.sh", "NAME STATUS MINMEMBER RUNNINGS AGE", "QUEUE"),
    ("queues", "NAME PARENT", ""),
    ("jobs.batch.volcano.sh", "NAME STATUS MINAVAILABLE RUNNINGS AGE", "QUEUE"),
]


@pytest.fixture(scope="module")
def one_of_each(eight_nodes: Cluster) -> Cluster:
    """Beside the HyperNodes a PodGroup, a Queue and a Job."""
    task = {"name": "worker", "replicas": 1, "template": {"spec": {"containers": []}}}
    for api_version, kind, spec in (
        ("scheduling.volcano.sh/v1beta1", "PodGroup", {"minMember": 2, "networkTopology": {}}),
        ("scheduling.volcano.sh/v1beta1", "Queue", {}),
        ("batch.volcano.sh/v1alpha1", "Job", {"tasks": [task]}),
    ):
        eight_nodes.api.create(
            {"apiVersion": api_version, "kind": kind, "metadata": {"name": "one"}, "spec": spec}
        )
    return eight_nodes


@pytest.mark.parametrize("resource, narrow, wide", COLUMNS, ids=[row[0] for row in COLUMNS])
def test_columns(one_of_each: Cluster, resource: str, narrow: str, wide: str) -> None:
    lines = one_of_each.kubectl("get", resource).stdout.splitlines()
    assert lines[0].split() == narrow.split()
    lines = one_of_each.kubectl("get", resource, "-o", "wide").stdout.splitlines()
    assert lines[0].split() == narrow.split() + wide.split()


def test_a_hypernode_shows_its_tier(eight_nodes: Cluster) -> None:
    line = eight_nodes.kubectl("get", "hypernode", "s4", "--no-headers").stdout
    assert line.split()[:3] == ["s4", "2", "spine"]


SHORT_NAMES = [
    ("hn", "hypernode.topology.volcano.sh/s0"),
    ("podgroup-v1beta1", "podgroup.scheduling.volcano.sh/one"),
    ("pg", "podgroup.scheduling.volcano.sh/one"),
    ("q", "queue.scheduling.volcano.sh/one"),
    ("queue-v1beta1", "queue.scheduling.volcano.sh/one"),
    ("vcjob", "job.batch.volcano.sh/one"),
    ("vj", "job.batch.volcano.sh/one"),
]


@pytest.mark.parametrize("short, whole", SHORT_NAMES, ids=[row[0] for row in SHORT_NAMES])
def test_short_names(one_of_each: Cluster, short: str, whole: str) -> None:
    assert whole in one_of_each.kubectl("get", short, "-o", "name").stdout.splitlines()


def test_defaults(one_of_each: Cluster) -> None:
    group = one_of_each.api.get("scheduling.volcano.sh/v1beta1", "PodGroup", "one")["spec"]
    assert (group["queue"], group["networkTopology"]["mode"]) == ("default", "hard")
    queue = one_of_each.api.get("scheduling.volcano.sh/v1beta1", "Queue", "one")["spec"]
    assert (queue["weight"], queue["dequeueStrategy"]) == (1, "traverse")
    job = one_of_each.api.get("batch.volcano.sh/v1alpha1", "Job", "one")["spec"]
    assert (job["queue"], job["maxRetry"]) == ("default", 3)


def hypernode_with(selector: dict[str, object]) -> dict[str, object]:
    return {"tier": 1, "members": [{"type": "Node", "selector": selector}]}


EXACT, REGEX = {"exactMatch": {"name": "a"}}, {"regexMatch": {"pattern": "a"}}
HYPERNODE, VOLCANO = "topology.volcano.sh/v1alpha1", "scheduling.volcano.sh/v1beta1"
PLUGINS, BATCH = "scheduling.x-k8s.io/v1alpha1", "batch.volcano.sh/v1alpha1"
REFUSED = [
    ("two selectors", HYPERNODE, "HyperNode", hypernode_with(EXACT | REGEX), "set only one of"),
    ("no selector", HYPERNODE, "HyperNode", hypernode_with({}), "set one of"),
    ("no members", HYPERNODE, "HyperNode", {"tier": 1, "members": []}, "at least 1 item"),
    ("no tier", HYPERNODE, "HyperNode", {}, "spec.tier: Required"),
    ("tier below 0", HYPERNODE, "HyperNode", {"tier": -1}, "greater than or equal to 0"),
    ("mode", VOLCANO, "PodGroup", {"networkTopology": {"mode": "firm"}}, "Unsupported value"),
    ("minMember", VOLCANO, "PodGroup", {"minMember": -1}, "greater than or equal to 0"),
    ("group size", VOLCANO, "PodGroup", {"subGroupPolicy": [{"subGroupSize": 0}]}, "or equal to 1"),
    ("amount", VOLCANO, "PodGroup", {"minResources": {"cpu": "much"}}, "minResources.cpu"),
    ("plugins' minimum", PLUGINS, "PodGroup", {"minMember": 0}, "greater than or equal to 1"),
    ("weight", VOLCANO, "Queue", {"weight": 0}, "greater than or equal to 1"),
    ("strategy", VOLCANO, "Queue", {"dequeueStrategy": "lifo"}, "Unsupported value"),
    ("no tasks", BATCH, "Job", {"tasks": []}, "at least 1 item"),
    ("mount path", BATCH, "Job", {"volumes": [{"mountPath": "a:b"}]}, "mountPath"),
    ("task name", BATCH, "Job", {"tasks": [{"name": "No"}]}, "spec.tasks[0].name"),
    ("misspelt", BATCH, "Job", {"minAvailible": 2}, 'unknown field "spec.minAvailible"'),
]


@pytest.mark.parametrize(
    "api_version, kind, spec, complaint",
    [row[1:] for row in REFUSED],
    ids=[row[0] for row in REFUSED],
)
def test_what_is_refused(
    cluster: Cluster, api_version: str, kind: str, spec: dict[str, object], complaint: str
) -> None:
    manifest = kubernetes.client.ApiClient().sanitize_for_serialization(
        {"apiVersion": api_version, "kind": kind, "metadata": {"name": "bad"}, "spec": spec}
    )
    answer = cluster.kubectl(
        "create", "--validate=strict", "-f", "-", stdin=str(manifest), check=False
    )
    assert answer.returncode != 0
    assert complaint in answer.stderr


@pytest.mark.parametrize("example", ["eight-nodes", "two-leaf-pairs"])
def test_our_kinds_in_the_examples_are_accepted(cluster: Cluster, example: str) -> None:
    accepted = 0
    for path in sorted((ROOT / "examples" / example).glob("*.yaml")):
        for manifest in documents_of(path):
            if "volcano.sh/" in manifest["apiVersion"]:
                # Beside whatever the other tests have made.
                manifest["metadata"] = {"name": f"dry-{accepted}"}
                collection = cluster.api.path_of(manifest).rpartition("/")[0]
                cluster.api.request(
                    "POST", f"{collection}?dryRun=All&fieldValidation=Strict", manifest
                )
                accepted += 1
    assert accepted > 0


def test_a_podgroup_takes_its_status_from_an_ordinary_update(
    one_of_each: Cluster, custom: kubernetes.client.CustomObjectsApi
) -> None:
    where = ("scheduling.volcano.sh", "v1beta1", "default", "podgroups", "one")
    group = custom.get_namespaced_custom_object(*where)
    group["status"] = {"phase": "Inqueue"}
    written = custom.replace_namespaced_custom_object(*where, group)
    assert written["status"] == {"phase": "Inqueue"}


def test_other_kinds_take_their_status_by_the_subresource_alone(
    one_of_each: Cluster, custom: kubernetes.client.CustomObjectsApi
) -> None:
    where = ("topology.volcano.sh", "v1alpha1", "hypernodes", "s0")
    change = {"status": {"nodeCount": 2}}
    assert "status" not in custom.patch_cluster_custom_object(*where, change)
    assert custom.patch_cluster_custom_object_status(*where, change)["status"] == {"nodeCount": 2}


# --- the rights of the scheduler ------------------------------------------------------------------

LEASES_IN = "hopwise-system"
WATCHED = (
    "nodes",
    "pods",
    "priorityclasses.scheduling.k8s.io",
    "podgroups.scheduling.volcano.sh",
    "podgroups.scheduling.x-k8s.io",
    "queues.scheduling.volcano.sh",
    "hypernodes.topology.volcano.sh",
)
MAY = [
    *((verb, resource, "") for resource in WATCHED for verb in ("list", "watch")),
    ("get", "pods", ""),
    ("create", "pods/binding", ""),
    ("create", "pods/eviction", ""),
    ("patch", "pods/status", ""),
    ("create", "events", ""),
    ("patch", "events", ""),
    ("patch", "podgroups.scheduling.volcano.sh", ""),
    ("patch", "podgroups.scheduling.x-k8s.io/status", ""),
    ("create", "queues.scheduling.volcano.sh", ""),
    ("patch", "queues.scheduling.volcano.sh/status", ""),
    ("list", "leases.coordination.k8s.io", LEASES_IN),
    ("create", "leases.coordination.k8s.io", LEASES_IN),
    ("update", "leases.coordination.k8s.io", LEASES_IN),
]
MAY_NOT = [
    ("list", "secrets", ""),
    ("get", "configmaps", ""),
    ("create", "pods", ""),
    ("update", "pods", ""),
    ("delete", "pods", ""),
    ("patch", "nodes", ""),
    ("delete", "podgroups.scheduling.volcano.sh", ""),
    ("update", "queues.scheduling.volcano.sh", ""),
    ("patch", "hypernodes.topology.volcano.sh/status", ""),
    ("patch", "podgroups.scheduling.volcano.sh/status", ""),
    ("list", "namespaces", ""),
    ("get", "leases.coordination.k8s.io", "kube-system"),
]


def allowed(
    core: kubernetes.client.CoreV1Api, verb: str, resource: str, namespace: str, name: str = ""
) -> bool:
    whole, _, subresource = resource.partition("/")
    plural, _, group = whole.partition(".")
    review = kubernetes.client.V1SubjectAccessReview(
        spec={
            "user": "system:serviceaccount:hopwise-system:hopwise-scheduler",
            "groups": ["system:serviceaccounts", "system:authenticated"],
            "resourceAttributes": {
                "verb": verb,
                "group": group,
                "resource": plural,
                "subresource": subresource,
                "namespace": namespace,
                "name": name,
            },
        }
    )
    api = kubernetes.client.AuthorizationV1Api(core.api_client)
    return bool(api.create_subject_access_review(review).status.allowed)


def test_the_scheduler_may_do_what_it_must_and_no_more(
    core: kubernetes.client.CoreV1Api,
) -> None:
    assert [right for right in MAY if not allowed(core, *right)] == []
    assert [right for right in MAY_NOT if allowed(core, *right)] == []


def test_it_may_see_whether_other_schedulers_are_alive(
    core: kubernetes.client.CoreV1Api,
) -> None:
    lease = ("get", "leases.coordination.k8s.io")
    assert allowed(core, *lease, "volcano-system", name="vc-scheduler")
    assert allowed(core, *lease, "volcano-system", name="volcano")
    assert allowed(core, *lease, "kube-system", name="kube-scheduler")
    assert not allowed(core, *lease, "volcano-system", name="another")


@pytest.mark.parametrize("static", [True, False], ids=["static token", "issued token"])
def test_its_kubeconfig_is_the_scheduler_and_nobody_else(cluster: Cluster, static: bool) -> None:
    path = cluster.kubeconfig_for_account(
        "hopwise-system", "hopwise-scheduler", static=static, file=f"account-{static}.kubeconfig"
    )
    name = cluster.kubectl("auth", "whoami", f"--kubeconfig={path}", "-o=jsonpath={.status}").stdout
    assert '"username":"system:serviceaccount:hopwise-system:hopwise-scheduler"' in name
    answer = cluster.kubectl("get", "secrets", f"--kubeconfig={path}", check=False)
    assert 'cannot list resource "secrets"' in answer.stderr


# --- nodes and pods -------------------------------------------------------------------------------


def node_is_ready(core: kubernetes.client.CoreV1Api, name: str) -> bool:
    conditions = core.read_node(name).status.conditions or []
    return any(one.type == "Ready" and one.status == "True" for one in conditions)


def phase_of(core: kubernetes.client.CoreV1Api, name: str) -> str:
    try:
        return str(core.read_namespaced_pod(name, "default").status.phase)
    except kubernetes.client.ApiException as error:
        assert error.status == 404
        return "gone"


def test_nodes_become_ready_with_the_room_they_were_given(
    eight_nodes: Cluster, core: kubernetes.client.CoreV1Api
) -> None:
    wait_for(lambda: all(node_is_ready(core, f"node{i}") for i in range(8)), "nodes ready")
    room = core.read_node("node0").status.allocatable
    assert (room["nvidia.com/gpu"], room["rdma/hca"], room["cpu"]) == ("8", "8", "96")


def test_a_node_can_fall_silent_and_come_back(
    eight_nodes: Cluster, core: kubernetes.client.CoreV1Api
) -> None:
    wait_for(lambda: node_is_ready(core, "node7"), "node7 ready")
    eight_nodes.set_node_ready("node7", False)
    assert not node_is_ready(core, "node7")
    eight_nodes.set_node_ready("node7", True)
    wait_for(lambda: node_is_ready(core, "node7"), "node7 ready again")


def bind_when_possible(cluster: Cluster, pod: dict[str, object], node: str) -> None:
    """The account "default", which pods need, comes a moment after the namespace."""
    wait_for(
        lambda: bool(cluster.api.list("v1", "ServiceAccount", "default")), "account of default"
    )
    name = cluster.api.create(pod)["metadata"]["name"]
    cluster.api.bind("default", name, node)


def test_a_pod_that_is_bound_runs_and_goes_when_deleted(
    eight_nodes: Cluster, core: kubernetes.client.CoreV1Api
) -> None:
    bind_when_possible(eight_nodes, objects.pod("bound", gpus=8), "node0")
    wait_for(lambda: phase_of(core, "bound") == "Running", "pod running")
    core.delete_namespaced_pod("bound", "default")
    wait_for(lambda: phase_of(core, "bound") == "gone", "pod gone")


def test_a_pod_that_nobody_binds_waits(
    eight_nodes: Cluster, core: kubernetes.client.CoreV1Api
) -> None:
    eight_nodes.api.create(objects.pod("waits"))
    bind_when_possible(eight_nodes, objects.pod("beside"), "node0")
    wait_for(lambda: phase_of(core, "beside") == "Running", "the other pod running")
    assert phase_of(core, "waits") == "Pending"
    eight_nodes.api.delete(objects.pod("waits"))
    wait_for(lambda: phase_of(core, "waits") == "gone", "pod gone")


# Annotations, and what becomes of the pod.
FATES = [
    ("hopwise.dev/run-time", "100ms", "Succeeded", None),
    ("test.hopwise.dev/refuse", "OutOfcpu", "Failed", "OutOfcpu"),
]


@pytest.mark.parametrize("annotation, value, phase, reason", FATES, ids=["ends", "is refused"])
def test_a_pod_that(
    eight_nodes: Cluster,
    core: kubernetes.client.CoreV1Api,
    annotation: str,
    value: str,
    phase: str,
    reason: str | None,
) -> None:
    name = f"fate-{phase.lower()}"
    pod = objects.pod(name, annotations={annotation: value}, restartPolicy="Never")
    bind_when_possible(eight_nodes, pod, "node1")
    wait_for(lambda: phase_of(core, name) == phase, f"pod {phase}")
    assert core.read_namespaced_pod(name, "default").status.reason == reason


def test_a_deployment_gets_its_pods(
    eight_nodes: Cluster, core: kubernetes.client.CoreV1Api
) -> None:
    eight_nodes.kubectl("create", "deployment", "web", "--image=example.com/none", "--replicas=3")
    wait_for(
        lambda: len(core.list_namespaced_pod("default", label_selector="app=web").items) == 3,
        "three pods",
    )
    eight_nodes.kubectl("delete", "deployment", "web")
    wait_for(
        lambda: not core.list_namespaced_pod("default", label_selector="app=web").items, "no pods"
    )


def test_kube_scheduler_can_run_beside(programs: None) -> None:
    with Cluster(Options(kube_scheduler=True)) as cluster:
        cluster.create([objects.node("alone", ready=True)])
        wait_for(
            lambda: bool(cluster.api.list("v1", "ServiceAccount", "default")), "account of default"
        )
        cluster.api.create(objects.pod("plain", scheduler="default-scheduler"))
        wait_for(
            lambda: cluster.api.get("v1", "Pod", "plain")["status"]["phase"] == "Running",
            "pod running",
        )


# --- an API server that goes away -----------------------------------------------------------------


@pytest.mark.parametrize("old_etcd", [False, True], ids=["our etcd", "Debian's etcd"])
def test_the_api_server_comes_back_with_or_without_its_data(
    programs: None, old_etcd: bool
) -> None:
    with Cluster(Options(controllers=False, kwok=False, old_etcd=old_etcd)) as cluster:
        cluster.create([objects.node("kept")])
        port = cluster.port
        cluster.restart_api_server()
        assert cluster.api.get("v1", "Node", "kept")["metadata"]["name"] == "kept"
        cluster.restart_api_server(wipe=True)
        assert cluster.api.list("v1", "Node") == []
        assert cluster.port == port
        # The old credentials are good, and the CRDs are there again.
        assert cluster.kubectl("get", "hypernodes").stderr.strip() == "No resources found"


# --- nothing is left behind -----------------------------------------------------------------------


def none_runs(started: dict[int, int | None]) -> bool:
    return all(start_time_of(pid) != start for pid, start in started.items())


def test_closing_ends_everything(programs: None) -> None:
    with Cluster(Options(manifests=False)) as cluster:
        started = {process.pid: start_time_of(process.pid) for process in cluster.processes()}
        assert len(started) == 4 and None not in started.values()
    assert none_runs(started)
    assert not cluster.folder.exists()


HARNESS = """
import time
from hopcluster import Cluster, Options
with Cluster(Options(manifests=False)) as cluster:
    print(cluster.folder, *(process.pid for process in cluster.processes()), flush=True)
    time.sleep(600)
"""


def test_nothing_runs_on_after_the_harness_was_killed(programs: None) -> None:
    harness = subprocess.Popen(
        [sys.executable, "-c", HARNESS], cwd=TESTS, stdout=subprocess.PIPE, text=True
    )
    assert harness.stdout is not None
    folder, *pids = harness.stdout.readline().split()
    started = {int(pid): start_time_of(int(pid)) for pid in pids}
    assert len(started) == 4 and None not in started.values()
    harness.kill()
    harness.wait()
    wait_for(lambda: none_runs(started), "all processes ended", within_s=20)
    assert pathlib.Path(folder).exists()
    sweep()
    assert not pathlib.Path(folder).exists()


class Person:
    """Somebody who types commands."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.run_dir = folder / "run"

    def __call__(self, *arguments: str) -> tuple[int, str]:
        command = [sys.executable, "-m", "hopcluster", f"--run-dir={self.run_dir}", *arguments]
        done = subprocess.run(
            command, cwd=TESTS, capture_output=True, text=True, timeout=240, check=False
        )
        return done.returncode, done.stdout + done.stderr


@pytest.fixture
def person(programs: None, tmp_path: pathlib.Path) -> Iterator[Person]:
    someone = Person(tmp_path)
    yield someone
    someone("down")


def supervisor_in(status: str) -> int:
    return int(status.split("supervisor", 1)[1].split("pid", 1)[1].split()[0])


def test_up_status_and_down(person: Person) -> None:
    assert person("status") == (1, "the cluster is down: start it with ./dev cluster up\n")
    code, text = person("up", "--nodes=4", "--no-scheduler")
    assert code == 0, text
    assert f"export KUBECONFIG={person.run_dir}/admin.kubeconfig" in text
    code, text = person("up", "--no-scheduler")
    assert (code, text.splitlines()[0]) == (0, "the cluster is up already")
    code, text = person("status")
    assert code == 0
    assert ["nodes", "4"] in [line.split() for line in text.splitlines()]
    supervisor = supervisor_in(text)
    started = {supervisor: start_time_of(supervisor)}
    assert person("down") == (0, "the cluster is down\n")
    assert none_runs(started)
    assert not person.run_dir.exists()
    assert person("down") == (0, "there was no cluster\n")


def test_up_works_again_after_the_supervisor_was_killed(person: Person) -> None:
    assert person("up", "--nodes=1", "--no-scheduler")[0] == 0
    supervisor = supervisor_in(person("status")[1])
    subprocess.run(["kill", "-9", str(supervisor)], check=True)
    wait_for(lambda: start_time_of(supervisor) is None, "the supervisor ended")
    assert person("status")[0] == 1
    code, text = person("up", "--nodes=2", "--no-scheduler")
    assert code == 0, text
    assert ["nodes", "2"] in [line.split() for line in person("status")[1].splitlines()]


def test_up_without_the_program_says_what_to_do(person: Person) -> None:
    code, text = person("up", "--hopwise=/nowhere/hopwise")
    assert code == 1
    assert "/nowhere/hopwise is missing: build it with ./dev build" in text
