"""What a vcjob does when something happens to its pods, whatever the action: the pairs of event and
action beyond those of test_jobs.py, and the phases of its PodGroup on the way."""

from __future__ import annotations

import pytest
from support import (
    GPUS,
    VOLCANO,
    condition_of,
    eventually,
    for_a_while,
    name_of,
    node_of,
    priority_class,
    uid_of,
)
from test_jobs import BATCH, Jobs, job, jobs, task

__all__ = ["jobs"]  # a fixture

ENDS = {"AbortJob": "Aborted", "TerminateJob": "Terminated", "CompleteJob": "Completed"}


def restarts(jobs, pod_name: str, count: int) -> None:
    """What a kubelet reports of a container that it started anew so often."""
    container = {"name": "main", "image": "x", "imageID": "", "ready": True,
                 "restartCount": count}  # fmt: skip
    jobs.user.patch("v1", "Pod", pod_name, {"status": {"containerStatuses": [container]}}, "status")


HAPPENINGS = {
    "PodFailed": lambda jobs: jobs.fail("j-w-1", exit_code=3),
    "PodEvicted": lambda jobs: jobs.user.delete("v1", "Pod", "j-w-1"),
    "TaskCompleted": lambda jobs: jobs.end("j-w-0", "j-w-1"),
    "TaskFailed": lambda jobs: restarts(jobs, "j-w-1", 4),
}
# (what happens, the policy but for its action)
EVENTS = [
    ("PodFailed", {"exitCode": 3}),
    ("PodFailed", {"event": "*"}),
    ("PodEvicted", {"event": "PodEvicted"}),
    ("PodEvicted", {"events": ["PodEvicted", "PodFailed"]}),
    ("TaskCompleted", {"event": "TaskCompleted"}),
    ("TaskFailed", {"event": "TaskFailed"}),
]
IDS = ["exit-code", "any", "evicted", "list", "task-completed", "task-failed"]


@pytest.mark.parametrize("of_task", [False, True], ids=["job", "task"])
@pytest.mark.parametrize("action", ENDS)
@pytest.mark.parametrize(("happens", "when"), EVENTS, ids=IDS)
def test_an_event_ends_the_job_as_its_policy_says(user, jobs, happens, when, action, of_task):
    where = {"policies": [{**when, "action": action}]}
    jobs.start(job("j", task("w", 2, maxRetry=3, **(where if of_task else {})), task("v", 1),
                   **({} if of_task else where)))  # fmt: skip
    HAPPENINGS[happens](jobs)
    status = jobs.await_phase(ENDS[action])
    assert status.get("retryCount", 0) == 0
    eventually(lambda: "Running" not in {p["status"]["phase"] for p in jobs.pods().values()})
    user.await_event("ExecuteAction", action, about=jobs.get())


RESTARTED = {
    "RestartJob": {"j-w-0", "j-w-1", "j-v-0"},
    "RestartTask": {"j-w-0", "j-w-1"},
    "RestartPod": {"j-w-1"},
}


@pytest.mark.parametrize("action", RESTARTED)
@pytest.mark.parametrize(("happens", "when"), EVENTS[:4], ids=IDS[:4])
def test_an_event_restarts_what_its_policy_says_and_no_more(jobs, happens, when, action):
    jobs.start(job("j", task("w", 2), task("v", 1), policies=[{**when, "action": action}]))
    before = {name: uid_of(p) for name, p in jobs.pods().items()}
    HAPPENINGS[happens](jobs)
    eventually(lambda: jobs.status().get("retryCount") == 1)
    jobs.await_pods("j-v-0", "j-w-0", "j-w-1")
    jobs.await_phase("Running")
    anew = {name for name, p in jobs.pods().items() if uid_of(p) != before[name]}
    assert anew == RESTARTED[action]


def test_a_partition_restarts_alone(jobs):
    parts = {"totalPartitions": 2, "partitionSize": 2}
    jobs.start(job("j", task("w", 4, partitionPolicy=parts),
                   policies=[{"event": "PodFailed", "action": "RestartPartition"}]))  # fmt: skip
    before = {name: uid_of(p) for name, p in jobs.pods().items()}
    jobs.fail("j-w-2")
    eventually(lambda: jobs.status().get("retryCount") == 1)
    jobs.await_pods(*before)
    anew = {name for name, p in jobs.pods().items() if uid_of(p) != before[name]}
    assert anew == {"j-w-2", "j-w-3"}


def test_of_several_policies_the_first_that_matches_counts(jobs):
    first, second = ({"exitCode": 7, "action": "AbortJob"},
                     {"event": "PodFailed", "action": "TerminateJob"})  # fmt: skip
    jobs.start(job("j", task("w", 2), policies=[first, second]))
    jobs.fail("j-w-0", exit_code=3)
    jobs.await_phase("Terminated")


def test_a_task_without_a_policy_for_the_event_follows_the_jobs(jobs):
    own = [{"event": "PodEvicted", "action": "TerminateJob"}]
    jobs.start(job("j", task("w", 2, policies=own),
                   policies=[{"event": "PodFailed", "action": "AbortJob"}]))  # fmt: skip
    jobs.fail("j-w-0")
    jobs.await_phase("Aborted")


def test_a_task_that_ends_well_completes_the_job_and_not_a_part_of_it(jobs):
    jobs.start(job("j", task("w", 2), task("v", 1),
                   policies=[{"event": "TaskCompleted", "action": "CompleteJob"}]))  # fmt: skip
    jobs.end("j-w-0")
    for_a_while(lambda: None if jobs.phase() == "Running" else jobs.told("j", "Running"))
    jobs.end("j-w-1")
    jobs.await_phase("Completed")
    jobs.await_pods("j-w-0", "j-w-1", phase="Succeeded")


def test_containers_may_restart_as_often_as_their_task_says(jobs):
    policies = [{"event": "TaskFailed", "action": "TerminateJob"}]
    jobs.start(job("j", task("w", 2, maxRetry=5, policies=policies)))
    restarts(jobs, "j-w-0", 5)
    for_a_while(lambda: None if jobs.phase() == "Running" else jobs.told("j", "Running"))
    restarts(jobs, "j-w-1", 1)
    jobs.await_phase("Terminated")


# --- a gang that loses members --------------------------------------------------------------------


def lose_one(user, jobs) -> str:
    """The job's second pod is evicted and finds no place any more; returns the node it had."""
    node = node_of(jobs.pods()["j-w-1"])
    user.patch("v1", "Node", node, {"spec": {"unschedulable": True}})
    user.delete("v1", "Pod", "j-w-1")
    return node


def pod_group_phase(jobs) -> str:
    return (jobs.group() or {}).get("status", {}).get("phase", "")


@pytest.fixture
def pair(user, scheduler, workloads):
    """Jobs of two pods fill the cluster."""
    user.floor(2)
    return Jobs(user)


def test_a_gang_that_loses_a_member_for_good_is_unknown_until_it_is_whole(user, pair):
    pair.start(job("j", task("w", 2, gpus=GPUS)))
    eventually(lambda: pod_group_phase(pair) == "Running")
    node = lose_one(user, pair)
    eventually(lambda: pod_group_phase(pair) == "Unknown")
    condition = condition_of(pair.group(), "Unschedulable")
    assert condition["status"] == "True"
    assert node_of(pair.pods()["j-w-0"]), "who runs goes on"
    user.patch("v1", "Node", node, {"spec": {"unschedulable": None}})
    pair.await_pods("j-w-0", "j-w-1")
    eventually(lambda: pod_group_phase(pair) == "Running")
    pair.await_phase("Running")


def test_a_gang_that_loses_all_members_waits_again(user, pair):
    pair.start(job("j", task("w", 2, gpus=GPUS)))
    eventually(lambda: pod_group_phase(pair) == "Running")
    for node in ("node0", "node1"):
        user.patch("v1", "Node", node, {"spec": {"unschedulable": True}})
    for name in ("j-w-0", "j-w-1"):
        user.delete("v1", "Pod", name)
    pair.await_pods("j-w-0", "j-w-1", phase="Pending")
    pair.await_phase("Pending")
    eventually(lambda: pod_group_phase(pair) in ("Pending", "Inqueue"))
    user.patch("v1", "Node", "node0", {"spec": {"unschedulable": None}})
    user.stays_whole_unbound("j")
    user.patch("v1", "Node", "node1", {"spec": {"unschedulable": None}})
    pair.await_phase("Running")
    eventually(lambda: pod_group_phase(pair) == "Running")


@pytest.mark.parametrize("action", ["AbortJob", "TerminateJob"])
def test_a_policy_for_unknown_ends_the_job(user, pair, action):
    pair.start(job("j", task("w", 2, gpus=GPUS),
                   policies=[{"event": "Unknown", "action": action}]))  # fmt: skip
    eventually(lambda: pod_group_phase(pair) == "Running")
    lose_one(user, pair)
    pair.await_phase(ENDS[action])


def test_a_policy_for_unknown_restarts_the_job_which_waits_whole(user, pair):
    pair.start(job("j", task("w", 2, gpus=GPUS),
                   policies=[{"event": "Unknown", "action": "RestartJob"}]))  # fmt: skip
    eventually(lambda: pod_group_phase(pair) == "Running")
    node = lose_one(user, pair)
    eventually(lambda: pair.status().get("retryCount") == 1)
    pair.await_pods("j-w-0", "j-w-1", phase="Pending")
    user.stays_whole_unbound("j")
    user.patch("v1", "Node", node, {"spec": {"unschedulable": None}})
    pair.await_pods("j-w-0", "j-w-1")
    assert pair.await_phase("Running")["retryCount"] == 1


# --- order ----------------------------------------------------------------------------------------


def test_the_task_of_higher_priority_gets_the_room_that_there_is(user, pair):
    user.create(priority_class("low", 10))
    user.create(priority_class("high", 1000))
    tasks = [task(name, 2, gpus=GPUS, spec={"priorityClassName": name}) for name in ("low", "high")]
    user.create(job("j", *tasks, minAvailable=2))
    user.await_bound("j", 2)
    placed = sorted(name for name, p in pair.pods().items() if node_of(p))
    assert placed == ["j-high-0", "j-high-1"]
    group = pair.group()
    assert group["spec"]["minResources"]["requests.nvidia.com/gpu"] == str(2 * GPUS)
    assert [name_of(g) for g in user.list(VOLCANO, "PodGroup")] == [name_of(group)]


def test_an_action_on_one_job_leaves_its_neighbour_alone(user, jobs):
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    jobs.start(job("j", task("w", 2), policies=policies))
    jobs.start(job("k", task("w", 2), policies=policies))
    before = {name: uid_of(p) for name, p in jobs.pods("k").items()}
    jobs.fail("j-w-0")
    eventually(lambda: jobs.status().get("retryCount") == 1)
    jobs.await_phase("Running")
    assert {name: uid_of(p) for name, p in jobs.pods("k").items()} == before
    assert user.get(BATCH, "Job", "k")["status"].get("retryCount", 0) == 0
