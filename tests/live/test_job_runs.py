"""vcjobs from their beginning to their end: what their PodGroup asks for, what they share, what the
plugins for MPI, TensorFlow, Ray and Ascend give their pods, and what is told of it."""

from __future__ import annotations

import json

import pytest
from hopcluster.objects import pod
from support import (
    CLAIM,
    GPUS,
    VOLCANO,
    annotation_of,
    condition_of,
    eventually,
    for_a_while,
    name_of,
    node_of,
    priority_class,
    uid_of,
)
from test_cli import Shell
from test_jobs import BATCH, BUS, job, jobs, task

__all__ = ["jobs"]  # a fixture


def environment(one: dict) -> dict[str, str]:
    return {e["name"]: e.get("value") for e in one["spec"]["containers"][0].get("env", [])}


def ports(one: dict) -> dict[str, int]:
    found = one["spec"]["containers"][0].get("ports", [])
    return {port["name"]: port["containerPort"] for port in found}


# --- what the group asks for ----------------------------------------------------------------------


def test_a_group_asks_for_what_its_minimum_needs(user, jobs):
    memory = {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "main", "image": "x", "resources": {"requests": memory}}
    plain = task("p", 2, spec={"containers": [container]})
    jobs.start(job("j", task("w", 3, gpus=2), plain, minAvailable=5))
    asked = jobs.group()["spec"]["minResources"]
    assert asked == {"cpu": "4", "memory": "2Gi", "pods": "5", "count/pods": "5",
                     "requests.cpu": "4", "requests.memory": "2Gi",
                     "requests.nvidia.com/gpu": "6"}  # fmt: skip


def test_of_a_job_larger_than_its_minimum_the_tasks_of_priority_are_asked_for(user, jobs):
    user.create(priority_class("low", 1))
    user.create(priority_class("high", 100))
    jobs.start(job("j", task("w", 3, gpus=1, spec={"priorityClassName": "low"}),
                   task("m", 1, gpus=4, spec={"priorityClassName": "high"}),
                   minAvailable=2))  # fmt: skip
    asked = jobs.group()["spec"]["minResources"]
    assert (asked["requests.nvidia.com/gpu"], asked["pods"]) == ("5", "2")


def test_a_job_of_nothing_but_cpu_runs(user, jobs):
    jobs.start(job("j", task("w", 4, gpus=0)))
    asked = jobs.group()["spec"]["minResources"]
    assert asked["cpu"] == "4" and "requests.nvidia.com/gpu" not in asked
    jobs.end(*jobs.pods())
    assert jobs.await_phase("Completed")["succeeded"] == 4


# --- volumes --------------------------------------------------------------------------------------


def claim_of(one: dict) -> str:
    (volume,) = (v for v in one["spec"]["volumes"] if "persistentVolumeClaim" in v)
    return volume["persistentVolumeClaim"]["claimName"]


def test_jobs_share_a_claim_that_is_there(user, jobs):
    user.create({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
                 "metadata": {"name": "shared"}, "spec": CLAIM})  # fmt: skip
    volumes = [{"mountPath": "/data", "volumeClaimName": "shared"}]
    for name in ("j", "k"):
        user.create(job(name, task("w"), volumes=volumes))
        one = eventually(lambda n=name: jobs.pods(n).get(f"{n}-w-0"))
        assert claim_of(one) == "shared"
    assert [name_of(c) for c in user.list("v1", "PersistentVolumeClaim")] == ["shared"]
    user.delete(BATCH, "Job", "j")
    eventually(lambda: not jobs.pods("j"))
    (claim,) = user.list("v1", "PersistentVolumeClaim")
    assert not claim["metadata"].get("ownerReferences"), "it belongs to no job"


def test_a_job_that_restarts_keeps_the_claim_that_was_made_for_it(user, jobs):
    user.create(job("j", task("w"), volumes=[{"mountPath": "/data", "volumeClaim": CLAIM}]))
    first = eventually(lambda: jobs.pods().get("j-w-0"))
    jobs.command("RestartJob")
    again = eventually(lambda: (jobs.pods().get("j-w-0") or first)["metadata"]["uid"]
                       != uid_of(first) and jobs.pods()["j-w-0"])  # fmt: skip
    assert claim_of(again) == claim_of(first)
    assert len(user.list("v1", "PersistentVolumeClaim")) == 1


# --- what is told ---------------------------------------------------------------------------------


def test_of_a_job_that_waits_group_pods_and_job_tell_the_same(user, jobs):
    user.create(job("j", task("w", 5, gpus=GPUS)))
    jobs.await_pods(*(f"j-w-{i}" for i in range(5)), phase="Pending")
    group = eventually(jobs.group)
    of_group = user.await_event("Unschedulable", about=group)
    assert of_group["type"] == "Warning"
    of_job = user.await_event("PodGroupPending", "nvidia.com/gpu", about=jobs.get())
    assert of_job["type"] == "Warning"
    condition = eventually(lambda: condition_of(jobs.group(), "Unschedulable"))
    assert condition["status"] == "True" and "nvidia.com/gpu" in condition["message"]
    for one in user.await_told("j"):
        assert condition_of(one, "PodScheduled")["reason"] == "Unschedulable"
    user.add_node("node4")
    jobs.await_phase("Running")
    for one in jobs.pods().values():
        user.await_event("Scheduled", node_of(one), about=one)
    eventually(lambda: condition_of(jobs.group(), "Scheduled")["status"] == "True")


def test_an_action_is_told_with_its_cause(user, jobs):
    jobs.start(job("j", task("w", 2), policies=[{"event": "PodFailed", "action": "RestartJob"}]))
    jobs.fail("j-w-1")
    told = user.await_event("ExecuteAction", "RestartJob", about=jobs.get())
    assert "PodFailed" in told["message"]


# --- from a shell ---------------------------------------------------------------------------------


@pytest.mark.parametrize("waits", [False, True], ids=["running", "waiting"])
@pytest.mark.parametrize("program", ["hopwise", "vcctl"])
def test_a_job_is_suspended_and_resumed_from_a_shell(user, jobs, tmp_path, program, waits):
    shell = Shell(user, user.plane.kubeconfig, tmp_path)
    words = ["-N", "j"] if program == "vcctl" else ["j"]
    replicas = 5 if waits else 2
    user.create(job("j", task("w", replicas, gpus=GPUS)))
    names = [f"j-w-{i}" for i in range(replicas)]
    phase = "Pending" if waits else "Running"
    jobs.await_pods(*names, phase=phase)
    before = {uid_of(p) for p in jobs.pods().values()}
    shell.here("job", "suspend", *words, program=program)
    jobs.await_phase("Aborted")
    eventually(lambda: jobs.pods() == {} and jobs.group() is None)
    shell.here("job", "resume", *words, program=program)
    jobs.await_pods(*names, phase=phase)
    jobs.await_phase(phase)
    assert not before & {uid_of(p) for p in jobs.pods().values()}
    assert jobs.status()["retryCount"] == 1
    assert user.list(BUS, "Command") == []
    shell.here("job", "delete", *words, program=program)
    eventually(lambda: jobs.pods() == {} and user.list(VOLCANO, "PodGroup") == [])


# --- groups of pods that others own ---------------------------------------------------------------


@pytest.mark.parametrize("scheduler_name", ["volcano", "default-scheduler"])
def test_pods_of_a_replication_controller_get_a_group_where_they_are_ours(
    user, jobs, scheduler_name
):
    template = {"metadata": {"labels": {"app": "rc"}},
                "spec": pod("x", scheduler=scheduler_name, gpus=1)["spec"]}  # fmt: skip
    user.create({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "rc"},
                 "spec": {"replicas": 2, "selector": {"app": "rc"},
                          "template": template}})  # fmt: skip

    def bound() -> list[dict]:
        pods = user.pods("rc")
        assert len(pods) == 2 and all(node_of(p) for p in pods), [name_of(p) for p in pods]
        return pods

    pods = eventually(bound)
    groups = user.list(VOLCANO, "PodGroup")
    named = {annotation_of(p, "scheduling.k8s.io/group-name") for p in pods}
    if scheduler_name == "volcano":
        (group,) = groups
        assert named == {name_of(group)}
        assert group["metadata"]["ownerReferences"][0]["kind"] == "ReplicationController"
    else:
        assert groups == [] and named == {None}
    path = f"/api/v1/namespaces/{user.namespace}/replicationcontrollers/rc"
    user.plane.api.request("DELETE", f"{path}?propagationPolicy=Background")
    eventually(lambda: user.pods("rc") == [] and user.list(VOLCANO, "PodGroup") == [])


# --- plugins --------------------------------------------------------------------------------------


def test_a_job_of_mpi_knows_its_hosts_and_ends_with_its_master(user, jobs):
    policies = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    jobs.start(job("j", task("master", policies=policies), task("worker", 2),
                   plugins={"mpi": ["--master=master", "--worker=worker", "--port=23"], "svc": [],
                            "ssh": []}))  # fmt: skip
    pods = jobs.pods()
    assert environment(pods["j-master-0"])["MPI_HOST"] == "j-worker-0.j,j-worker-1.j"
    assert "MPI_HOST" not in environment(pods["j-worker-0"])
    assert {ports(p)["mpijob-port"] for p in pods.values()} == {23}
    for one in pods.values():
        mounts = {m["mountPath"] for m in one["spec"]["containers"][0]["volumeMounts"]}
        assert "/root/.ssh" in mounts
    jobs.end("j-master-0")
    jobs.await_phase("Completed")
    jobs.await_pods("j-master-0", phase="Succeeded")
    eventually(lambda: user.list("v1", "Service") == [])


def test_a_job_of_tensorflow_knows_its_cluster(user, jobs):
    jobs.start(job("j", task("ps"), task("worker", 2),
                   plugins={"tensorflow": ["--port=5000"], "svc": []}))  # fmt: skip
    config = json.loads(environment(jobs.pods()["j-worker-1"])["TF_CONFIG"])
    assert config["cluster"] == {"ps": ["j-ps-0.j:5000"],
                                 "worker": ["j-worker-0.j:5000", "j-worker-1.j:5000"]}  # fmt: skip
    assert config["task"] == {"type": "worker", "index": 1}
    jobs.end("j-ps-0", "j-worker-0", "j-worker-1")
    assert jobs.await_phase("Completed")["succeeded"] == 3


def ray_task(name: str, replicas: int = 1) -> dict:
    made = task(name, replicas)
    made["template"]["spec"]["containers"][0]["name"] = name
    return made


def test_a_job_of_ray_starts_its_head_and_joins_its_workers(user, jobs):
    jobs.start(job("j", ray_task("head"), ray_task("worker", 2), plugins={"ray": [], "svc": []}))
    head, worker = jobs.pods()["j-head-0"], jobs.pods()["j-worker-1"]
    assert ports(head) == {"gcs": 6379, "dashboard": 8265, "client-server": 10001}
    assert "ray start --head" in head["spec"]["containers"][0]["command"][-1]
    assert "--address=j-head-0.j:6379" in worker["spec"]["containers"][0]["command"][-1]
    service = user.get("v1", "Service", "j-head-svc")["spec"]
    assert service["selector"]["volcano.sh/task-spec"] == "head"
    assert {p["port"] for p in service["ports"]} == {6379, 8265, 10001}
    jobs.end(*jobs.pods())
    jobs.await_phase("Completed")
    eventually(lambda: user.list("v1", "Service") == [])


def test_ranks_are_counted_over_masters_and_workers(jobs):
    jobs.start(job("j", task("master"), task("worker", 2), plugins={"hcclrank": []}))
    ranks = {name: annotation_of(p, "hccl/rankIndex") for name, p in jobs.pods().items()}
    assert ranks == {"j-master-0": "0", "j-worker-0": "1", "j-worker-1": "2"}


def test_anybody_may_reach_a_job_that_disables_its_network_policy(user, jobs):
    jobs.start(job("j", task("w"), plugins={"svc": ["--disable-network-policy=true"]}))
    assert [name_of(s) for s in user.list("v1", "Service")] == ["j"]
    assert user.list("networking.k8s.io/v1", "NetworkPolicy") == []
    jobs.start(job("k", task("w"), plugins={"svc": []}))
    (policy,) = user.list("networking.k8s.io/v1", "NetworkPolicy")
    own = {"volcano.sh/job-name": "k", "volcano.sh/job-namespace": user.namespace}
    assert policy["spec"]["podSelector"]["matchLabels"] == own
    (peer,) = policy["spec"]["ingress"][0]["from"]
    assert peer["podSelector"]["matchLabels"] == own


@pytest.mark.parametrize("inject", [True, False])
def test_hosts_stand_in_the_environment_unless_that_is_switched_off(user, jobs, inject):
    jobs.start(job("j", task("w", 2),
                   plugins={"svc": [f"--inject-hosts-env={str(inject).lower()}"]}))  # fmt: skip
    (container,) = jobs.pods()["j-w-0"]["spec"]["containers"]
    names = {e["name"] for e in container.get("env", [])}
    assert ({"VC_W_HOSTS", "VC_W_NUM"} <= names) == inject
    assert "/etc/volcano" in {m["mountPath"] for m in container["volumeMounts"]}
    assert user.get("v1", "ConfigMap", "j-svc")["data"]["w.host"].split() == ["j-w-0.j", "j-w-1.j"]


def test_the_list_of_hosts_follows_the_replicas(user, jobs):
    jobs.start(job("j", task("w", 1), plugins={"svc": []}))
    tasks = jobs.get()["spec"]["tasks"]
    for replicas in (3, 2):
        user.patch(BATCH, "Job", "j", {"spec": {"tasks": [{**tasks[0], "replicas": replicas}]}})
        hosts = [f"j-w-{i}.j" for i in range(replicas)]
        eventually(lambda h=hosts: user.get("v1", "ConfigMap", "j-svc")["data"]["w.host"].split()
                   == h)  # fmt: skip
        jobs.await_pods(*(f"j-w-{i}" for i in range(replicas)))


def test_one_job_has_all_plugins_and_runs_to_its_end(user, jobs):
    plugins = {"svc": [], "ssh": [], "env": [], "hcclrank": []}
    jobs.start(job("j", task("w", 2), plugins=plugins))
    recorded = jobs.status()["controlledResources"]
    assert {f"plugin-{name}" for name in plugins} <= set(recorded)
    jobs.end(*jobs.pods())
    jobs.await_phase("Completed")

    def removed() -> bool:
        left = [name_of(o) for kind in ("Service", "Secret", "ConfigMap")
                for o in user.list("v1", kind) if name_of(o).startswith("j")]  # fmt: skip
        assert left == []
        return True

    eventually(removed)
    for_a_while(lambda: None if jobs.phase() == "Completed" else jobs.told("j", "Completed"), 0.5)
