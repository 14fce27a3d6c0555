"""The stand-in for a job controller makes what Volcano's would; no scheduler takes part."""

from __future__ import annotations

import pytest
from job_helper import JobHelper
from support import VOLCANO, User, annotation_of, eventually, hard, name_of, uid_of


@pytest.fixture(scope="module")
def helper(plane):
    with JobHelper(str(plane.kubeconfig)) as made:
        yield made


def job(name: str, *tasks: dict, **spec) -> dict:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"schedulerName": "volcano", "tasks": list(tasks), **spec},
    }


def task(name: str, **spec) -> dict:
    template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
    return {"name": name, "template": template, **spec}


def group_of(user: User) -> dict:
    return eventually(lambda: (found := user.list(VOLCANO, "PodGroup")) and found[0])


def admit(user: User) -> dict:
    group = group_of(user)
    user.patch(VOLCANO, "PodGroup", name_of(group), {"status": {"phase": "Inqueue"}})
    return group


def await_pods(user: User, *names: str) -> None:
    eventually(lambda: sorted(name_of(p) for p in user.pods()) == sorted(names), what=str(names))


def test_pods_come_once_the_group_is_admitted(user, helper):
    made = user.create(job("run", task("a", replicas=2), task("b"), networkTopology=hard(2)))
    group = group_of(user)
    assert name_of(group) == f"run-{uid_of(made)}"
    assert group["spec"]["minMember"] == 3
    assert group["spec"]["minTaskMember"] == {"a": 2, "b": 1}
    assert group["spec"]["networkTopology"] == hard(2)
    assert group["spec"]["queue"] == "default"
    assert user.pods() == []
    admit(user)
    await_pods(user, "run-a-0", "run-a-1", "run-b-0")
    pod = user.pod("run-a-1")
    assert annotation_of(pod, "scheduling.k8s.io/group-name") == name_of(group)
    assert annotation_of(pod, "volcano.sh/task-spec") == "a"
    assert annotation_of(pod, "volcano.sh/task-index") == "1"
    assert annotation_of(pod, "volcano.sh/job-name") == "run"
    assert pod["metadata"]["labels"]["volcano.sh/queue-name"] == "default"
    assert pod["spec"]["schedulerName"] == "volcano"


def test_partitions_become_sub_groups(user, helper):
    policy = {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1,
              "networkTopology": hard(1)}  # fmt: skip
    user.create(job("run", task("a", partitionPolicy=policy)))
    spec = admit(user)["spec"]
    assert (spec["minMember"], spec["minTaskMember"]) == (2, {"a": 2})
    (group,) = spec["subGroupPolicy"]
    assert group["matchLabelKeys"] == ["volcano.sh/partition-id"]
    assert (group["subGroupSize"], group["minSubGroups"]) == (2, 1)
    assert group["networkTopology"] == hard(1)
    await_pods(user, *(f"run-a-{i}" for i in range(4)))
    parts = [p["metadata"]["labels"]["volcano.sh/partition-id"]
             for p in sorted(user.pods(), key=name_of)]  # fmt: skip
    assert parts == ["0", "0", "1", "1"]


def test_a_deleted_pod_is_made_anew_and_a_deleted_job_takes_all_along(user, helper):
    user.create(job("run", task("a", replicas=2)))
    admit(user)
    await_pods(user, "run-a-0", "run-a-1")
    before = uid_of(user.pod("run-a-0"))
    user.delete("v1", "Pod", "run-a-0")
    eventually(lambda: [uid_of(p) for p in user.pods() if name_of(p) == "run-a-0"
                        and uid_of(p) != before])  # fmt: skip
    user.delete("batch.volcano.sh/v1alpha1", "Job", "run")
    eventually(lambda: not user.pods() and not user.list(VOLCANO, "PodGroup"), what="all gone")


def test_replicas_are_followed(user, helper):
    made = user.create(job("run", task("a", replicas=2)))
    admit(user)
    await_pods(user, "run-a-0", "run-a-1")
    for replicas in (3, 1):
        tasks = [{**made["spec"]["tasks"][0], "replicas": replicas}]
        user.patch("batch.volcano.sh/v1alpha1", "Job", "run", {"spec": {"tasks": tasks}})
        await_pods(user, *(f"run-a-{i}" for i in range(replicas)))
        assert group_of(user)["spec"]["minMember"] == replicas
