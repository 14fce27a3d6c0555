"""`hopwise controller` with `hopwise scheduler`: the life of vcjobs, with the API server, kubelets
(KWOK's) and the garbage collector real. What a container does is written into the pod's status by
the test, as a kubelet would."""

from __future__ import annotations

import base64
import shutil
import subprocess
import time
from typing import Any

import pytest
from hopcluster.objects import pod
from support import (
    GPUS,
    VOLCANO,
    User,
    annotation_of,
    eventually,
    for_a_while,
    hard,
    name_of,
    node_of,
    queue,
    uid_of,
)

BATCH = "batch.volcano.sh/v1alpha1"
BUS = "bus.volcano.sh/v1alpha1"


def task(name: str, replicas: int = 1, gpus: int = 1, spec: dict | None = None,
         **more: Any) -> dict:  # fmt: skip
    inner = pod("x", scheduler="volcano", gpus=gpus)["spec"]
    inner.pop("schedulerName")
    return {"name": name, "replicas": replicas, "template": {"spec": {**inner, **(spec or {})}},
            **more}  # fmt: skip


def job(name: str, *tasks: dict, **spec: Any) -> dict:
    return {"apiVersion": BATCH, "kind": "Job", "metadata": {"name": name},
            "spec": {"schedulerName": "volcano", "tasks": list(tasks), **spec}}  # fmt: skip


class Jobs:
    """Looks at jobs and plays the containers of their pods."""

    def __init__(self, user: User) -> None:
        self.user = user

    def get(self, name: str = "j") -> dict:
        return self.user.get(BATCH, "Job", name)

    def status(self, name: str = "j") -> dict:
        return self.get(name).get("status") or {}

    def phase(self, name: str = "j") -> str:
        return (self.status(name).get("state") or {}).get("phase", "")

    def await_phase(self, phase: str, name: str = "j") -> dict:
        eventually(lambda: self.phase(name) == phase or self.told(name, phase), what=phase)
        return self.status(name)

    def told(self, name: str, phase: str) -> None:
        raise AssertionError(f"{name} is {self.phase(name)}, not {phase}: {self.status(name)}")

    def pods(self, name: str = "j") -> dict[str, dict]:
        selector = f"volcano.sh/job-name={name}"
        return {name_of(p): p for p in self.user.list("v1", "Pod", label_selector=selector)}

    def await_pods(self, *names: str, phase: str = "Running", job_name: str = "j") -> None:
        def there() -> bool:
            found = {key: p["status"].get("phase") for key, p in self.pods(job_name).items()}
            assert found == dict.fromkeys(names, phase), found
            return True

        eventually(there, what=f"{phase} pods {names}")

    def start(self, made: dict) -> None:
        """Creates the job and waits until all its pods run."""
        self.user.create(made)
        names = [f"{name_of(made)}-{t['name']}-{i}" for t in made["spec"]["tasks"]
                 for i in range(t["replicas"])]  # fmt: skip
        self.await_pods(*names, job_name=name_of(made))
        self.await_phase("Running", name_of(made))

    def end(self, *names: str, phase: str = "Succeeded", exit_code: int = 0) -> None:
        """What a kubelet reports of a pod whose container has ended."""
        ended = {"exitCode": exit_code, "reason": "Completed" if exit_code == 0 else "Error"}
        container = {"name": "main", "image": "x", "imageID": "", "ready": False,
                     "restartCount": 0, "state": {"terminated": ended}}  # fmt: skip
        for name in names:
            self.user.patch("v1", "Pod", name,
                            {"status": {"phase": phase, "containerStatuses": [container]}},
                            "status")  # fmt: skip

    def fail(self, *names: str, exit_code: int = 1) -> None:
        self.end(*names, phase="Failed", exit_code=exit_code)

    def group(self, name: str = "j") -> dict | None:
        return next((g for g in self.user.list(VOLCANO, "PodGroup")
                     if name_of(g) == f"{name}-{uid_of(self.get(name))}"), None)  # fmt: skip

    def command(self, action: str, name: str = "j") -> None:
        target = {"apiVersion": BATCH, "kind": "Job", "name": name, "uid": uid_of(self.get(name)),
                  "controller": True}  # fmt: skip
        self.user.create({"apiVersion": BUS, "kind": "Command", "action": action,
                          "metadata": {"name": f"{name}-{action.lower()}"},
                          "target": target})  # fmt: skip


@pytest.fixture
def jobs(user, scheduler, workloads):
    user.floor(4)
    return Jobs(user)


# --- coming up ------------------------------------------------------------------------------------


def test_a_job_runs_to_its_end(user, jobs):
    jobs.start(job("j", task("w", 3), networkTopology=hard(3)))
    group = jobs.group()
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minTaskMember"] == {"w": 3}
    assert group["spec"]["minResources"]["cpu"] == "3"
    assert group["spec"]["networkTopology"] == hard(3)
    one = jobs.pods()["j-w-1"]
    assert annotation_of(one, "scheduling.k8s.io/group-name") == name_of(group)
    assert annotation_of(one, "volcano.sh/task-index") == "1"
    assert one["metadata"]["labels"]["volcano.sh/queue-name"] == "default"
    jobs.end("j-w-0", "j-w-1", "j-w-2")
    status = jobs.await_phase("Completed")
    assert status["succeeded"] == 3
    assert [c["status"] for c in status["conditions"]] == ["Pending", "Running", "Completed"]
    assert sorted(jobs.pods()) == ["j-w-0", "j-w-1", "j-w-2"], "their logs may be wanted"


def test_no_pod_is_made_before_the_gang_is_admitted(user, jobs):
    user.create(queue("shut"))
    user.patch(VOLCANO, "Queue", "shut", {"status": {"state": "Closed"}}, "status")
    user.create(job("j", task("w", 2), queue="shut"))
    eventually(jobs.group)
    user.await_event("PodGroupPending", about=jobs.get())
    for_a_while(lambda: None if not jobs.pods() else jobs.told("j", "without pods"))
    assert jobs.phase() == "Pending"


def test_a_job_that_does_not_fit_says_why_and_starts_when_there_is_room(user, jobs):
    user.create(job("j", task("w", 6, gpus=GPUS)))
    jobs.await_pods(*(f"j-w-{i}" for i in range(6)), phase="Pending")
    user.await_event("PodGroupPending", about=jobs.get())
    for number in (8, 9):
        user.add_node(f"node{number}")
    jobs.await_phase("Running")


def test_a_task_waits_for_the_one_it_depends_on(user, jobs):
    user.create(job("j", task("a", 1), task("b", 1, dependsOn={"name": ["a"]}), minAvailable=1))
    jobs.await_pods("j-a-0", "j-b-0")
    a, b = (jobs.pods()[n]["metadata"]["creationTimestamp"] for n in ("j-a-0", "j-b-0"))
    assert a <= b


def test_replicas_are_followed_to_zero_and_back(user, jobs):
    jobs.start(job("j", task("w", 2)))
    tasks = jobs.get()["spec"]["tasks"]
    for replicas in (4, 1, 0, 2):
        user.patch(BATCH, "Job", "j", {"spec": {"tasks": [{**tasks[0], "replicas": replicas}]}})
        jobs.await_pods(*(f"j-w-{i}" for i in range(replicas)))
        eventually(lambda n=replicas: jobs.group()["spec"]["minMember"] == n)


def test_min_success_completes_it_and_removes_the_rest(user, jobs):
    jobs.start(job("j", task("w", 3), minSuccess=1))
    jobs.end("j-w-2")
    jobs.await_phase("Completed")
    jobs.await_pods("j-w-2", phase="Succeeded")


def test_too_few_successes_fail_it(user, jobs):
    jobs.start(job("j", task("w", 2)))
    jobs.end("j-w-0")
    jobs.fail("j-w-1")
    assert jobs.await_phase("Failed")["failed"] == 1


# --- policies -------------------------------------------------------------------------------------

# (what happens, the policy, the phase that it ends in, retryCount)
POLICIES = [
    ("fail", {"event": "PodFailed", "action": "RestartJob"}, "Running", 1),
    ("fail", {"event": "PodFailed", "action": "AbortJob"}, "Aborted", 0),
    ("fail", {"event": "PodFailed", "action": "TerminateJob"}, "Terminated", 0),
    ("fail", {"event": "PodFailed", "action": "CompleteJob"}, "Completed", 0),
    ("fail", {"exitCode": 3, "action": "AbortJob"}, "Aborted", 0),
    ("fail", {"events": ["PodEvicted", "PodFailed"], "action": "TerminateJob"}, "Terminated", 0),
    ("fail", {"event": "PodFailed", "action": "RestartTask"}, "Running", 1),
    ("fail", {"event": "PodFailed", "action": "RestartPod"}, "Running", 1),
    ("evict", {"event": "PodEvicted", "action": "RestartJob"}, "Running", 1),
    ("evict", {"event": "PodEvicted", "action": "TerminateJob"}, "Terminated", 0),
    ("evict", {"event": "*", "action": "AbortJob"}, "Aborted", 0),
    ("succeed", {"event": "TaskCompleted", "action": "CompleteJob"}, "Completed", 0),
]


@pytest.mark.parametrize("of_task", [False, True], ids=["job", "task"])
@pytest.mark.parametrize(
    ("happens", "policy", "phase", "retries"), POLICIES,
    ids=[f"{h}-{p.get('event') or p.get('exitCode') or 'list'}-{p['action']}"
         for h, p, _, _ in POLICIES])  # fmt: skip
def test_a_policy_does_what_it_says(user, jobs, happens, policy, phase, retries, of_task):
    where = {"policies": [policy]}
    first = task("w", 2, **(where if of_task else {}))
    jobs.start(job("j", first, task("v", 1), **({} if of_task else where)))
    before = uid_of(jobs.pods()["j-w-1"])
    if happens == "fail":
        jobs.fail("j-w-1", exit_code=3)
    elif happens == "evict":
        user.delete("v1", "Pod", "j-w-1")
    else:
        jobs.end("j-w-0", "j-w-1")
    if phase == "Running":
        eventually(lambda: jobs.status().get("retryCount") == retries)
        jobs.await_pods("j-v-0", "j-w-0", "j-w-1")
        assert uid_of(jobs.pods()["j-w-1"]) != before
    status = jobs.await_phase(phase)
    assert status.get("retryCount", 0) == retries


def test_a_tasks_policy_stands_before_the_jobs(user, jobs):
    jobs.start(job("j", task("w", 2, policies=[{"event": "PodFailed", "action": "TerminateJob"}]),
                   policies=[{"event": "PodFailed", "action": "AbortJob"}]))  # fmt: skip
    jobs.fail("j-w-0")
    jobs.await_phase("Terminated")


def test_a_policy_with_a_timeout_waits(user, jobs):
    jobs.start(job("j", task("w", 2), policies=[{"event": "PodFailed", "action": "AbortJob",
                                                "timeout": "2s"}]))  # fmt: skip
    jobs.fail("j-w-0")
    started = time.monotonic()
    jobs.await_phase("Aborted")
    assert time.monotonic() - started > 1.5


def test_the_last_retry_fails_it_and_keeps_what_failed(user, jobs):
    jobs.start(job("j", task("w", 2), maxRetry=1,
                   policies=[{"event": "PodFailed", "action": "RestartJob"}]))  # fmt: skip
    jobs.fail("j-w-0")
    jobs.await_phase("Failed")
    jobs.await_pods("j-w-0", phase="Failed")


# --- commands -------------------------------------------------------------------------------------


def test_suspended_and_resumed(user, jobs):
    jobs.start(job("j", task("w", 2)))
    jobs.command("AbortJob")
    jobs.await_phase("Aborted")
    eventually(lambda: not jobs.pods() and jobs.group() is None, what="pods and group gone")
    assert user.list(BUS, "Command") == []
    user.await_event("CommandIssued", "AbortJob", about=jobs.get())
    jobs.command("ResumeJob")
    jobs.await_pods("j-w-0", "j-w-1")
    assert jobs.await_phase("Running")["retryCount"] == 1


def test_a_job_that_waits_can_be_suspended_too(user, jobs):
    user.create(job("j", task("w", 9, gpus=GPUS)))
    jobs.await_pods(*(f"j-w-{i}" for i in range(9)), phase="Pending")
    jobs.command("AbortJob")
    jobs.await_phase("Aborted")
    eventually(lambda: not jobs.pods())


# --- its end --------------------------------------------------------------------------------------


@pytest.mark.parametrize("phase", ["Pending", "Running", "Completed", "Failed", "Terminated"])
def test_a_deleted_job_leaves_nothing(user, jobs, phase):
    made = job("j", task("w", 9 if phase == "Pending" else 2, gpus=GPUS), plugins={"svc": []})
    if phase == "Pending":
        user.create(made)
        eventually(lambda: len(jobs.pods()) == 9)
    else:
        jobs.start(made)
        if phase == "Completed":
            jobs.end("j-w-0", "j-w-1")
        elif phase == "Failed":
            jobs.fail("j-w-0", "j-w-1")
        elif phase == "Terminated":
            jobs.command("TerminateJob")
    jobs.await_phase(phase)
    user.delete(BATCH, "Job", "j")

    def gone() -> bool:
        left = [name_of(o) for version, kind in (("v1", "Pod"), (VOLCANO, "PodGroup"),
                                                 ("v1", "Service"))
                for o in user.list(version, kind)]  # fmt: skip
        assert left == []
        return True

    eventually(gone)


def test_a_finished_job_goes_after_its_time_to_live(user, jobs):
    jobs.start(job("j", task("w", 1), ttlSecondsAfterFinished=1))
    jobs.end("j-w-0")
    eventually(lambda: user.list(BATCH, "Job") == [])
    eventually(lambda: not user.pods())


# --- volumes and plugins --------------------------------------------------------------------------


def test_plugins_give_names_keys_and_numbers(user, jobs):
    plugins = {"svc": [], "ssh": [], "env": [], "pytorch": ["--port=4000"]}
    jobs.start(job("j", task("master"), task("worker", 2), plugins=plugins))
    worker = jobs.pods()["j-worker-1"]
    env = {e["name"]: e.get("value") for e in worker["spec"]["containers"][0]["env"]}
    assert env["VC_TASK_INDEX"] == "1"
    assert (env["MASTER_ADDR"], env["MASTER_PORT"]) == ("j-master-0.j", "4000")
    assert (env["WORLD_SIZE"], env["RANK"]) == ("3", "2")
    assert worker["spec"]["hostname"] == "j-worker-1"
    assert worker["spec"]["subdomain"] == "j"
    service = user.get("v1", "Service", "j")
    assert service["spec"]["clusterIP"] == "None"
    assert user.get("networking.k8s.io/v1", "NetworkPolicy", "j")
    hosts = user.get("v1", "ConfigMap", "j-svc")["data"]
    assert hosts["VC_WORKER_HOSTS"] == "j-worker-0.j,j-worker-1.j"
    assert set(user.get("v1", "Secret", "j-ssh")["data"]) == {
        "id_rsa", "id_rsa.pub", "authorized_keys", "config"}  # fmt: skip
    recorded = jobs.status()["controlledResources"]
    assert recorded["plugin-svc"] == "svc"
    assert recorded["plugin-ssh"] == "ssh"
    jobs.end(*jobs.pods())
    jobs.await_phase("Completed")
    eventually(lambda: user.list("v1", "Service") == [])


def test_the_keys_are_a_pair(user, jobs, tmp_path):
    if shutil.which("ssh-keygen") is None:
        pytest.skip("no ssh-keygen on this machine")
    user.create(job("j", task("w"), plugins={"ssh": []}))
    data = eventually(lambda: [s for s in user.list("v1", "Secret") if name_of(s) == "j-ssh"])[0]
    key = tmp_path / "key"
    key.write_bytes(base64.b64decode(data["data"]["id_rsa"]))
    key.chmod(0o600)
    done = subprocess.run(["ssh-keygen", "-y", "-f", str(key)], capture_output=True, text=True,
                          check=True)  # fmt: skip
    public = base64.b64decode(data["data"]["id_rsa.pub"]).decode().split()
    assert done.stdout.split()[:2] == public[:2]


def test_a_plugin_that_is_not_known_is_told_of(user, jobs):
    user.create(job("j", task("w"), plugins={"dance": []}))
    user.await_event("PluginError", "dance is not known", about=jobs.get())


def test_a_claim_is_made_mounted_and_kept(user, jobs):
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    user.create(job("j", task("w"), volumes=[{"mountPath": "/data", "volumeClaim": claim}]))
    made = eventually(lambda: user.list("v1", "PersistentVolumeClaim"))
    assert len(made) == 1
    name = name_of(made[0])
    one = eventually(lambda: jobs.pods().get("j-w-0"))
    assert one["spec"]["volumes"][0]["persistentVolumeClaim"]["claimName"] == name
    mounts = one["spec"]["containers"][0]["volumeMounts"]
    assert (name, "/data") in [(m["name"], m["mountPath"]) for m in mounts]
    assert jobs.status()["controlledResources"][f"volume-pvc-{name}"] == name


# --- what cannot be done --------------------------------------------------------------------------


def test_a_quota_that_forbids_pods_is_told_and_lifted(user, jobs):
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
             "spec": {"hard": {"pods": "0"}}}  # fmt: skip
    user.create(quota)
    # Enforced once its status is there, which a controller writes that does not run here.
    user.patch("v1", "ResourceQuota", "none",
               {"status": {"hard": {"pods": "0"}, "used": {"pods": "0"}}}, "status")  # fmt: skip
    user.create(job("j", task("w", 2)))
    user.await_event("FailedCreate", "exceeded quota", about=jobs.get())
    eventually(lambda: "exceeded quota" in jobs.status()["state"].get("message", ""))
    user.delete("v1", "ResourceQuota", "none")
    jobs.await_phase("Running")
    assert "message" not in jobs.status()["state"]


def test_a_pod_that_is_in_the_way_is_told_of(user, jobs):
    user.create(pod("j-w-0", scheduler="nobody"))
    user.create(job("j", task("w", 2)))
    user.await_event("FailedCreate", "j-w-0", about=jobs.get())
    eventually(lambda: "already exists" in jobs.status()["state"].get("message", ""))
    user.delete("v1", "Pod", "j-w-0")
    jobs.await_phase("Running")


def test_a_template_that_is_refused_is_told_of(user, jobs):
    broken = task("w")
    broken["template"]["spec"]["containers"] = []
    user.create(job("j", broken))
    user.await_event("FailedCreate", "spec.containers", about=jobs.get())
    eventually(lambda: "spec.containers" in jobs.status()["state"].get("message", ""))


# --- groups of other workloads --------------------------------------------------------------------


def workload(kind: str, replicas: int, annotations: dict | None = None) -> dict:
    labels = {"app": "a"}
    spec = pod("x", scheduler="volcano", gpus=1)["spec"]
    template = {"metadata": {"labels": labels}, "spec": spec}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    meta = {"name": "a", "annotations": annotations or {}}
    made: dict[str, Any] = {"apiVersion": version, "kind": kind, "metadata": meta}
    if kind == "Job":
        spec["restartPolicy"] = "Never"
        made["spec"] = {"parallelism": replicas, "completions": replicas, "template": template}
    else:
        made["spec"] = {"replicas": replicas, "selector": {"matchLabels": labels},
                        "template": template}  # fmt: skip
        if kind == "StatefulSet":
            made["spec"] |= {"serviceName": "a", "podManagementPolicy": "Parallel"}
    return made


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job", "ReplicaSet"])
def test_pods_of_a_workload_share_a_group(user, jobs, kind):
    user.create(workload(kind, 3, {"scheduling.volcano.sh/group-min-member": "3"}))

    def grouped() -> bool:
        pods = user.pods()
        names = {annotation_of(p, "scheduling.k8s.io/group-name") for p in pods}
        assert len(pods) == 3
        assert len(names) == 1
        assert all(node_of(p) for p in pods)
        return names != {None}

    eventually(grouped)
    (group,) = user.list(VOLCANO, "PodGroup")
    assert name_of(group).startswith("podgroup-")
    assert group["spec"]["minMember"] == 3


def test_a_group_goes_with_its_replicas_and_comes_again(user, jobs):
    user.create(workload("StatefulSet", 2))
    first = uid_of(eventually(lambda: user.list(VOLCANO, "PodGroup"))[0])
    user.patch("apps/v1", "StatefulSet", "a", {"spec": {"replicas": 0}})
    eventually(lambda: user.list(VOLCANO, "PodGroup") == [])
    user.patch("apps/v1", "StatefulSet", "a", {"spec": {"replicas": 2}})
    again = eventually(lambda: user.list(VOLCANO, "PodGroup"))
    assert uid_of(again[0]) != first
    eventually(lambda: all(node_of(p) for p in user.pods()) and len(user.pods()) == 2)


def test_a_deleted_workload_leaves_no_group(user, jobs):
    user.create(workload("Deployment", 2))
    eventually(lambda: user.list(VOLCANO, "PodGroup"))
    user.delete("apps/v1", "Deployment", "a")
    eventually(lambda: user.list(VOLCANO, "PodGroup") == [] and not user.pods())


def test_pods_of_other_schedulers_get_no_group(user, jobs):
    made = workload("Deployment", 1)
    made["spec"]["template"]["spec"]["schedulerName"] = "default-scheduler"
    user.create(made)
    eventually(lambda: any(node_of(p) for p in user.pods()))
    assert user.list(VOLCANO, "PodGroup") == []


def test_a_topology_asked_for_by_annotations_is_kept(user, jobs):
    marks = {"volcano.sh/network-topology-mode": "hard",
             "volcano.sh/network-topology-highest-tier": "1"}  # fmt: skip
    made = workload("Deployment", 2, {"scheduling.volcano.sh/group-min-member": "2"})
    made["spec"]["template"]["metadata"]["annotations"] = marks
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = pod("x", gpus=GPUS)["spec"][
        "containers"][0]["resources"]  # fmt: skip
    user.create(made)
    eventually(lambda: len({node_of(p) for p in user.pods()} - {""}) == 2)
    leaves = {int(node_of(p).removeprefix("node")) // 2 for p in user.pods()}
    assert len(leaves) == 1


# --- queues ---------------------------------------------------------------------------------------


def queue_command(user, action: str, name: str) -> None:
    user.create({"apiVersion": BUS, "kind": "Command", "action": action,
                 "metadata": {"name": f"{name}-{action.lower()}"},
                 "target": {"apiVersion": VOLCANO, "kind": "Queue", "name": name,
                            "uid": uid_of(user.get(VOLCANO, "Queue", name))}})  # fmt: skip


def await_state(user, name: str, state: str) -> None:
    eventually(lambda: user.get(VOLCANO, "Queue", name).get("status", {}).get("state") == state,
               what=f"{name} {state}")  # fmt: skip


def test_queues_close_with_those_below_and_open_again(user, jobs):
    user.create(queue("dept"))
    user.create(queue("team", parent="dept"))
    eventually(lambda: user.get(VOLCANO, "Queue", "dept")["spec"].get("parent") == "root")
    await_state(user, "team", "Open")
    jobs.start(job("j", task("w"), queue="team"))
    queue_command(user, "CloseQueue", "dept")
    await_state(user, "dept", "Closed")
    await_state(user, "team", "Closing")
    marks = user.get(VOLCANO, "Queue", "team")["metadata"]["annotations"]
    assert marks["volcano.sh/closed-by-parent"] == "true"
    user.delete(BATCH, "Job", "j")
    await_state(user, "team", "Closed")
    queue_command(user, "OpenQueue", "dept")
    await_state(user, "team", "Open")
    assert user.list(BUS, "Command") == []


def test_the_root_stays_open(user, jobs):
    eventually(lambda: [q for q in user.list(VOLCANO, "Queue") if name_of(q) == "root"])
    queue_command(user, "CloseQueue", "root")
    root = user.get(VOLCANO, "Queue", "root")
    user.await_event("CommandIssued", "cannot be closed", about=root, namespace="default")
    assert root.get("status", {}).get("state", "Open") == "Open"
