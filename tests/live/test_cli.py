"""The commands for people on a real API server, with kubectl beside them: `hopwise job`, `queue`,
`pod`, `get`, `topology`, `migrate check`, the names vcctl and kubectl-hopwise, completion, man."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
from typing import Any

import pytest
import yaml
from hopcluster.api import ApiError
from hopcluster.binaries import path_of
from hopcluster.objects import hypernode
from support import HOPWISE, VOLCANO, eventually, name_of, pod_group, queue

BATCH = "batch.volcano.sh/v1alpha1"
BUS = "bus.volcano.sh/v1alpha1"
# Columns of vcctl.
JOB_COLUMNS = (
    "Name Creation Phase JobType Replicas Min Pending Running Succeeded Failed Unknown RetryCount"
)
QUEUE_COLUMNS = "Name Weight State Parent Inqueue Pending Running Unknown Completed"
POD_COLUMNS = "Name Ready Status Restart Age"


def crd(group: str, version: str, kind: str, plural: str) -> dict[str, Any]:
    """A kind with any fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": version, "served": True, "storage": True,
                          "schema": {"openAPIV3Schema": schema}}],
        },
    }  # fmt: skip


def is_served(plane, api_version: str, plural: str) -> bool:
    try:
        plane.api.request("GET", f"/apis/{api_version}/{plural}?limit=1")
    except ApiError:
        return False
    return True


def serve(plane, definition: dict[str, Any]) -> None:
    spec = definition["spec"]
    api_version = f"{spec['group']}/{spec['versions'][0]['name']}"
    plane.api.apply(definition)
    eventually(lambda: is_served(plane, api_version, spec["names"]["plural"]), what="CRD served")


@pytest.fixture(scope="module")
def orders(plane):
    """The kind Command, where the manifests of the cluster have none."""
    if not is_served(plane, BUS, "commands"):
        serve(plane, crd("bus.volcano.sh", "v1alpha1", "Command", "commands"))


Done = subprocess.CompletedProcess[str]


class Shell:
    """Somebody who types commands as one of the program's names."""

    def __init__(self, user, kubeconfig: pathlib.Path, folder: pathlib.Path) -> None:
        self.user = user
        self.kubeconfig = kubeconfig
        self.folder = folder

    def run(self, *words: str, program: str = "hopwise", stdin: str = "",
            kubeconfig: pathlib.Path | None = None) -> Done:  # fmt: skip
        link = self.folder / program
        if not link.exists():
            link.symlink_to(HOPWISE)
        environment = os.environ | {"KUBECONFIG": str(kubeconfig or self.kubeconfig)}
        return subprocess.run([link, *words], env=environment, input=stdin, capture_output=True,
                              text=True, timeout=60, check=False)  # fmt: skip

    def ok(self, *words: str, **how: Any) -> str:
        done = self.run(*words, **how)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def here(self, *words: str, **how: Any) -> str:
        """In the test's namespace."""
        return self.ok(*words, "-n", self.user.namespace, **how)

    def kubectl(self, *words: str) -> str:
        return self.user.plane.kubectl(*words, "-n", self.user.namespace).stdout


@pytest.fixture
def shell(user, tmp_path):
    return Shell(user, user.plane.kubeconfig, tmp_path)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def vcjob(name: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
    tasks = [{"name": "worker", "replicas": 2, "template": template}]
    spec = {"minAvailable": 2, "schedulerName": "volcano", "tasks": tasks, **spec}
    return {"apiVersion": BATCH, "kind": "Job", "metadata": {"name": name}, "spec": spec}


# --- jobs -----------------------------------------------------------------------------------------


def test_a_job_is_run_and_kubectl_sees_it(shell):
    said = shell.here("job", "run", "-N", "train", "-i", "busybox:1", "-r", "3", "-m", "2",
                      "-R", "cpu=500m,memory=64Mi", "-L", "cpu=1")  # fmt: skip
    assert said == "job.batch.volcano.sh/train created\n"
    job = json.loads(shell.kubectl("get", "vcjob", "train", "-o", "json"))
    assert job["spec"]["minAvailable"] == 2
    assert job["spec"]["schedulerName"] == "volcano"
    (task,) = job["spec"]["tasks"]
    assert task["replicas"] == 3
    (container,) = task["template"]["spec"]["containers"]
    assert container["image"] == "busybox:1"
    assert container["resources"]["requests"] == {"cpu": "500m", "memory": "64Mi"}
    assert container["resources"]["limits"] == {"cpu": "1"}


def test_a_job_is_run_from_a_file_and_only_once(shell):
    text = yaml.safe_dump(vcjob("filed"))
    assert "filed created" in shell.here("job", "run", "-f", "-", stdin=text)
    again = shell.run("job", "run", "-f", "-", "-n", shell.user.namespace, stdin=text)
    assert again.returncode == 1
    assert "already exists" in again.stderr


def test_jobs_are_listed_with_vcctls_columns(shell, user):
    user.create(vcjob("a", queue="research"))
    job = user.create(vcjob("b"))
    user.plane.api.patch(job, {"status": {"state": {"phase": "Running"}, "running": 2}}, "status")
    header, first, second = rows(shell.here("job", "list"))
    assert header == JOB_COLUMNS.split()
    assert first[0] == "a" and second[0] == "b"
    assert second[1:] == [job["metadata"]["creationTimestamp"][:10], "Running", "Batch", "2", "2",
                          "0", "2", "0", "0", "0", "0"]  # fmt: skip
    everywhere = rows(shell.ok("job", "list", "-A"))
    assert everywhere[0] == ["Namespace", *JOB_COLUMNS.split()]
    assert [user.namespace, "b"] in [row[:2] for row in everywhere]


def test_lists_of_jobs_are_narrowed_and_written_for_programs(shell, user):
    labelled = vcjob("a", queue="research")
    labelled["metadata"]["labels"] = {"team": "vision"}
    user.create(labelled)
    user.create(vcjob("b", schedulerName="hopwise"))

    def names(*words: str) -> list[str]:
        said = shell.here("job", "list", "-o", "name", *words)
        return [line.removeprefix("job.batch.volcano.sh/") for line in said.splitlines()]

    assert names() == ["a", "b"]
    assert names("-q", "research") == ["a"]
    assert names("-S", "hopwise") == ["b"]
    assert names("-l", "team in (vision, speech)") == ["a"]
    assert names("-l", "team!=vision") == ["b"]
    kubectls = shell.kubectl("get", "vcjob", "-o", "name")
    assert shell.here("job", "list", "-o", "name") == kubectls
    expected = json.loads(shell.kubectl("get", "vcjob", "-o", "json"))
    for read, output in ((json.loads, "json"), (yaml.safe_load, "yaml")):
        found = read(shell.here("job", "list", "-o", output))
        assert found["items"] == expected["items"]
    assert rows(shell.here("job", "list", "-o", "wide"))[0][-3:] == ["Queue", "Scheduler", "Age"]


def test_a_job_is_viewed_with_what_belongs_to_it(shell, user):
    job = user.create(vcjob("train", networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    group = user.create(pod_group(f"train-{job['metadata']['uid']}", 2))
    waits = {"type": "Unschedulable", "status": "True", "reason": "NeverFits",
             "message": "no leaf is large enough", "transitionID": "1",
             "lastTransitionTime": "2026-01-01T00:00:00Z"}  # fmt: skip
    user.plane.api.patch(group, {"status": {"phase": "Inqueue", "conditions": [waits]}})
    user.members("train", range(1))
    user.plane.api.patch(
        {"apiVersion": "v1", "kind": "Pod",
         "metadata": {"name": "train-0", "namespace": user.namespace}},
        {"metadata": {"labels": {"volcano.sh/job-name": "train"}}},
    )  # fmt: skip
    said = shell.here("job", "view", "train")
    assert "Topology:    hard, highest tier 1\n" in said
    assert "Waits:       NeverFits: no leaf is large enough\n" in said
    assert ["train-0", "0/1", "Pending"] in [row[:3] for row in rows(said)]
    assert ["worker", "2", "2"] in [row[:3] for row in rows(said)]
    expected = json.loads(shell.kubectl("get", "vcjob", "train", "-o", "json"))
    assert json.loads(shell.here("job", "view", "train", "-o", "json")) == expected
    assert yaml.safe_load(shell.here("job", "view", "-N", "train", "-o", "yaml")) == expected


def test_suspend_and_resume_are_commands_about_the_job(shell, user, orders):
    job = user.create(vcjob("train"))
    for word, action in (("suspend", "AbortJob"), ("resume", "ResumeJob")):
        shell.here("job", word, "train")
        made = user.plane.api.list(BUS, "Command", user.namespace)
        command = next(each for each in made if each["action"] == action)
        assert name_of(command).startswith(f"train-{action.lower()}-")
        assert command["target"]["kind"] == "Job"
        assert command["target"]["name"] == "train"
        assert command["target"]["uid"] == job["metadata"]["uid"]


def test_a_deleted_job_is_gone(shell, user):
    user.create(vcjob("train"))
    assert shell.here("job", "delete", "train") == 'job.batch.volcano.sh "train" deleted\n'
    eventually(lambda: not user.plane.api.list(BATCH, "Job", user.namespace), what="job gone")
    again = shell.run("job", "delete", "train", "-n", user.namespace)
    assert again.returncode == 1
    assert '"train" not found' in again.stderr


# --- queues, pods ---------------------------------------------------------------------------------


def test_queues_are_made_counted_changed_and_deleted(shell, user, orders):
    name = f"q-{user.namespace}"
    assert "created" in shell.ok("queue", "create", name, "-w", "3")
    user.create(pod_group("g", 1, queue=name))
    header, row = rows(shell.ok("queue", "get", name))
    assert header == QUEUE_COLUMNS.split()
    # Without a controller it has no parent yet; its cell is empty.
    assert [*row[:3], *row[-5:]] == [name, "3", "Open", "0", "1", "0", "0", "0"]
    assert name in [row[0] for row in rows(shell.ok("queue", "list"))]
    assert shell.ok("queue", "list", "-o", "name") == shell.kubectl("get", "q", "-o", "name")
    expected = json.loads(shell.kubectl("get", "q", name, "-o", "json"))
    assert json.loads(shell.ok("queue", "get", name, "-o", "json")) == expected
    shell.ok("queue", "operate", name, "-a", "update", "-w", "7")
    made = user.plane.api.get(VOLCANO, "Queue", name)
    assert made["spec"]["weight"] == 7
    for word, action in (("close", "CloseQueue"), ("open", "OpenQueue")):
        shell.ok("queue", "operate", name, "-a", word)
        commands = user.plane.api.list(BUS, "Command", "default")
        command = next(each for each in commands
                       if each["action"] == action and each["target"]["name"] == name)  # fmt: skip
        assert command["target"]["kind"] == "Queue"
        assert command["target"]["uid"] == made["metadata"]["uid"]
    shell.ok("queue", "delete", name)
    gone = shell.run("queue", "get", name)
    assert gone.returncode == 1
    assert f'"{name}" not found' in gone.stderr


def test_pods_read_as_kubectl_shows_them(shell, user):
    user.add_node("n1")
    user.create(pod_group("run", 1, queue="research"))
    user.create(pod_group("wait", 1))
    user.members("run", range(2))
    user.members("wait", range(1))
    user.plane.api.bind(user.namespace, "run-0", "n1")
    gate = {"schedulingGates": [{"name": "example.com/later"}]}
    user.members("gated", range(1), **gate)

    def alike() -> bool:
        header, *ours = rows(shell.here("pod", "list"))
        assert header == POD_COLUMNS.split()
        theirs = rows(shell.kubectl("get", "pods", "--no-headers"))
        assert [row[:4] for row in ours] == [row[:4] for row in theirs]
        return any(row[2] == "Running" for row in ours)

    eventually(alike, what="a pod that runs, shown alike")
    all_rows = [row[:3] for row in rows(shell.here("pod", "list"))]
    assert ["gated-0", "0/1", "SchedulingGated"] in all_rows
    of_queue = rows(shell.here("pod", "list", "-q", "research"))
    assert [row[0] for row in of_queue[1:]] == ["run-0", "run-1"]
    on_node = shell.here("pod", "list", "--field-selector", "spec.nodeName=n1", "-o", "name")
    assert on_node == "pod/run-0\n"
    everywhere = rows(shell.ok("pod", "list", "-A", "-o", "wide"))
    assert everywhere[0] == ["Namespace", *POD_COLUMNS.split(), "Node", "Job", "Task", "PodGroup"]


# --- the fabric -----------------------------------------------------------------------------------


def test_hypernodes_and_the_tree_are_those_of_the_files(shell, user):
    user.floor(nodes=4)
    dump = user.plane.kubectl("get", "nodes,hypernodes,pods", "-A", "-o", "yaml").stdout
    assert shell.ok("topology", "tree") == shell.ok("topology", "tree", "-", stdin=dump)
    assert shell.ok("topology", "tree") == shell.ok("topology", "tree", "-f", "-", stdin=dump)
    assert "no faults" in shell.ok("topology", "check")
    ours, theirs = rows(shell.ok("get", "hypernodes")), rows(shell.kubectl("get", "hypernodes"))
    assert ours[0] == theirs[0] == "NAME TIER TIERNAME NODECOUNT AGE".split()
    assert sorted(row[:3] for row in ours) == sorted(row[:3] for row in theirs)
    leaf = next(row for row in ours[1:] if row[1] == "1")
    assert leaf[3] == "2"
    names = shell.ok("get", "hn", "-o", "name").splitlines()
    assert sorted(names) == sorted(shell.kubectl("get", "hn", "-o", "name").splitlines())
    assert len(json.loads(shell.ok("get", "nodes", "-o", "json"))["items"]) == 4
    assert rows(shell.ok("get", "nodes"))[1][:2] == ["node0", "Ready"]


def test_a_fault_of_the_live_fabric_fails_the_check(shell, user):
    user.create(hypernode("self", 1, children=["self"]))
    done = shell.run("topology", "check")
    assert done.returncode == 1
    assert "HyperNode/self" in done.stdout


# --- errors ---------------------------------------------------------------------------------------


def refused(done: Done, code: int, *words: str) -> None:
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr


def test_no_server_says_where_it_was_looked_for(shell, user, tmp_path):
    path = user.plane.credentials.write_kubeconfig(
        tmp_path / "nobody.kubeconfig", "https://127.0.0.1:1", token="x"
    )
    refused(shell.run("job", "list", kubeconfig=path), 1, "no answer from the API server",
            str(path), "--kubeconfig")  # fmt: skip
    refused(shell.run("job", "list", "--server", "https://127.0.0.1:1"), 1, "127.0.0.1:1")
    refused(shell.run("job", "list", "--kubeconfig", "/no/such/file"), 2, "/no/such/file")
    refused(shell.run("job", "list", "--context", "nowhere"), 2, 'no context "nowhere"',
            "hopcluster")  # fmt: skip


def test_no_permission_names_verb_and_resource(shell, user):
    nobody = user.plane.kubeconfig_for_account(
        user.namespace, "default", static=False, file=f"{user.namespace}.kubeconfig"
    )
    refused(shell.run("job", "list", kubeconfig=nobody), 1, "forbidden",
            'grant the verb "list" on "jobs"')  # fmt: skip
    refused(shell.run("topology", "tree", kubeconfig=nobody), 1, "nodes")
    refused(shell.run("job", "list", "--token", "wrong"), 1, "refuses our credentials")


def test_no_crd_says_so(shell, user, orders):
    user.create(vcjob("train"))
    definition = user.plane.api.get(
        "apiextensions.k8s.io/v1", "CustomResourceDefinition", "commands.bus.volcano.sh"
    )
    user.plane.api.delete(definition)
    eventually(lambda: not is_served(user.plane, BUS, "commands"), what="CRD gone")
    try:
        refused(shell.run("job", "suspend", "train", "-n", user.namespace), 1,
                "commands.bus.volcano.sh", "install its CRD")  # fmt: skip
    finally:
        kept = {key: definition[key] for key in ("apiVersion", "kind", "spec")}
        serve(user.plane, {**kept, "metadata": {"name": name_of(definition)}})


def test_what_is_not_there_is_named(shell, user):
    for words in (["job", "view"], ["job", "suspend"], ["job", "delete"]):
        done = shell.run(*words, "ghost", "-n", user.namespace)
        refused(done, 1, f"{user.namespace}/ghost", '"ghost" not found')
    refused(shell.run("queue", "operate", "ghost", "-a", "update", "-w", "2"), 1, "ghost")
    refused(shell.run("job", "list", "-n", "no-such-namespace"), 1,
            "the namespace no-such-namespace does not exist")  # fmt: skip
    refused(shell.run("job", "run", "a", "-n", "no-such-namespace"), 1, "no-such-namespace")
    nothing = shell.run("job", "list", "-n", user.namespace)
    assert nothing.returncode == 0
    assert "No resources found" in nothing.stderr


def test_wrong_use_is_told_from_failure(shell, user):
    refused(shell.run("job", "list", "-l", "a in b"), 2, 'the selector is "a in b"')
    refused(shell.run("pod", "list", "--field-selector", "spec.colour=red"), 2, "spec.colour")
    assert shell.run("job", "list", "-o", "xml").returncode == 2
    assert shell.run("job").returncode == 2
    assert shell.run("queue", "operate", "q", "-a", "burn").returncode == 2


# --- other names of the program -------------------------------------------------------------------


def test_a_link_named_vcctl_speaks_as_vcctl(shell, user):
    def vcctl(*words: str) -> str:
        return shell.ok(*words, program="vcctl")

    vcctl("job", "run", "--name", "alpha", "--namespace", user.namespace, "--replicas", "2",
          "--min", "1", "--image", "busybox")  # fmt: skip
    vcctl("job", "run", "-N", "beta", "-n", user.namespace)
    listed = rows(vcctl("job", "list", "-n", user.namespace, "--selector", "alp"))
    assert [row[0] for row in listed] == ["Name", "alpha"]
    assert listed[0] == JOB_COLUMNS.split()
    vcctl("job", "delete", "-N", "alpha", "-n", user.namespace)
    name = f"v-{user.namespace}"
    vcctl("queue", "create", "-n", name, "-w", "2")
    assert [row[0] for row in rows(vcctl("queue", "get", "-n", name))] == ["Name", name]
    vcctl("queue", "operate", "-n", name, "-a", "update", "-w", "5")
    assert user.plane.api.get(VOLCANO, "Queue", name)["spec"]["weight"] == 5
    vcctl("queue", "delete", "-n", name)
    assert vcctl("pod", "list", "-n", user.namespace) == "No resources found\n"
    assert vcctl("job", "list", "-s", user.plane.server, "-k", str(user.plane.kubeconfig),
                 "--all-namespaces").startswith("Namespace")  # fmt: skip
    refused(shell.run("jobflow", "list", program="vcctl"), 2, "serves no JobFlows")


def test_kubectl_finds_it_as_a_plugin(shell, user):
    user.create(vcjob("train"))
    shell.ok("version", program="kubectl-hopwise")  # makes the link
    environment = os.environ | {
        "KUBECONFIG": str(user.plane.kubeconfig),
        "PATH": f"{shell.folder}:{os.environ['PATH']}",
    }
    done = subprocess.run(
        [path_of("kubectl"), "hopwise", "job", "list", "-n", user.namespace, "-o", "name"],
        env=environment, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout == "job.batch.volcano.sh/train\n", done.stderr


# --- migrate --------------------------------------------------------------------------------------


def test_migrate_check_lists_what_would_differ(shell, user):
    api = user.plane.api
    user.create(queue(f"m-{user.namespace}", deserved={"cpu": "1"}))
    user.create(vcjob("train", schedulerName="volcano-b"))
    serve(user.plane, crd("batch.volcano.sh", "v1alpha1", "CronJob", "cronjobs"))
    nightly = {"apiVersion": BATCH, "kind": "CronJob",
               "metadata": {"name": "nightly", "namespace": user.namespace}}  # fmt: skip
    api.create(nightly)
    system = f"volcano-{user.namespace}"
    api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system}})
    conf = 'actions: "enqueue, allocate, shuffle"\ntiers:\n- plugins:\n  - name: gang\n'
    api.create({"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": "conf", "namespace": system},
                "data": {"volcano-scheduler.conf": conf}})  # fmt: skip
    hook = {
        "name": "validatejob.volcano.sh", "sideEffects": "None", "failurePolicy": "Ignore",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": "admission", "namespace": system}},
        "rules": [{"apiGroups": ["none.volcano.sh"], "apiVersions": ["v1"], "resources": ["none"],
                   "operations": ["CREATE"]}],
    }  # fmt: skip
    webhook = {"apiVersion": "admissionregistration.k8s.io/v1",
               "kind": "ValidatingWebhookConfiguration",
               "metadata": {"name": f"hook-{user.namespace}"}, "webhooks": [hook]}  # fmt: skip
    api.create(webhook)
    try:
        done = shell.run("migrate", "check", "--volcano-namespace", system, "-o", "json")
        assert done.returncode == 1, done.stderr
        found = {(each["object"], each["field"]) for each in json.loads(done.stdout)["findings"]}
        assert {
            (f"CronJob {user.namespace}/nightly", "-"),
            (f"Queue m-{user.namespace}", "spec.deserved"),
            (f"Job {user.namespace}/train", "spec.schedulerName"),
            (f"ConfigMap {system}/conf", "volcano-scheduler.conf: actions"),
            (f"ValidatingWebhookConfiguration hook-{user.namespace}",
             "webhooks[validatejob.volcano.sh]"),
        } <= found  # fmt: skip
        table = shell.run("migrate", "check", "--volcano-namespace", system)
        assert table.returncode == 1
        assert table.stdout.startswith("OBJECT ")
        assert " differences in " in table.stdout
    finally:
        api.delete(webhook)
        api.delete({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": "cronjobs.batch.volcano.sh"}})  # fmt: skip
        api.delete({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system}})


def test_migrate_check_says_what_may_not_be_read(shell, user):
    nobody = user.plane.kubeconfig_for_account(
        user.namespace, "default", static=False, file=f"{user.namespace}.kubeconfig"
    )
    done = shell.run("migrate", "check", kubeconfig=nobody)
    assert done.returncode == 1
    assert "not looked at: cannot list jobs.batch.volcano.sh" in done.stderr
    assert "could not be looked at" in done.stdout


# --- completion, man ------------------------------------------------------------------------------


def test_completion_is_a_script_that_its_shell_can_read(shell):
    for name in ("bash", "zsh", "fish"):
        program = shutil.which(name)
        script = shell.ok("completion", name)
        assert "topology" in script
        if program is not None:
            done = subprocess.run([program, "-n"], input=script, capture_output=True, text=True,
                                  timeout=30, check=False)  # fmt: skip
            assert done.returncode == 0 and done.stderr == "", done.stderr


def test_the_man_page_is_read_without_warnings(shell, tmp_path):
    page = tmp_path / "hopwise.1"
    page.write_text(shell.ok("man"), encoding="utf-8")
    if shutil.which("groff") is None:
        pytest.skip("no groff here; the unit tests look at the page's structure")
    done = subprocess.run(["groff", "-man", "-ww", "-Tutf8", "-rLL=100n", str(page)],
                          capture_output=True, text=True, timeout=30, check=False)  # fmt: skip
    assert done.returncode == 0
    assert done.stderr == ""
    assert "hopwise job run" in done.stdout
