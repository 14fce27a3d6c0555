#!/usr/bin/env python3
"""Makes what a job controller makes of Volcano Jobs: a PodGroup, and pods once it is admitted.

For tests only, until Hopwise has a job controller: no policies, plugins, volumes or commands. Owned
objects of a deleted Job are taken away by Kubernetes' own garbage collector.

Usage: job_helper.py --kubeconfig FILE [--at-once]
"""

from __future__ import annotations

import argparse
import copy
import json
import re
import sys
import threading
import time
import traceback
from typing import Any

import kubernetes

Object = dict[str, Any]

PERIOD_S = 0.1
VERSION = "batch.volcano.sh/v1alpha1"
JOBS = "/apis/batch.volcano.sh/v1alpha1/jobs"
JOB_NAME = "volcano.sh/job-name"
INHERITED_ANNOTATIONS = (
    "volcano.sh/preemptable",
    "volcano.sh/cooldown-time",
    "volcano.sh/revocable-zone",
    "volcano.sh/jdb-min-available",
    "volcano.sh/jdb-max-unavailable",
)
INHERITED_LABELS = ("volcano.sh/preemptable", "volcano.sh/cooldown-time")
FINAL = ("Completed", "Failed", "Terminated", "Aborted")


# --- what a Job asks for --------------------------------------------------------------------------


class Task:
    def __init__(self, spec: Object, position: int) -> None:
        policy = spec.get("partitionPolicy")
        self.name = spec.get("name") or f"default{position}"
        self.template = spec.get("template") or {}
        self.partition_size = 0
        self.min_partitions = 0
        self.topology = None
        default = 1
        if policy:
            self.partition_size = max(1, policy.get("partitionSize", 1))
            self.min_partitions = policy.get("minPartitions", 0)
            self.topology = policy.get("networkTopology")
            default = policy.get("totalPartitions", 1) * self.partition_size
        self.replicas = spec.get("replicas", default)
        least = self.min_partitions * self.partition_size or self.replicas
        self.min_available = spec.get("minAvailable", least)
        depends = spec.get("dependsOn") or {}
        self.depends_on = depends.get("name") or []
        self.depends_on_any = depends.get("iteration") == "any"

    def sub_group(self) -> Object:
        policy = {
            "name": self.name,
            "labelSelector": {"matchLabels": {"volcano.sh/task-spec": self.name}},
            "matchLabelKeys": ["volcano.sh/partition-id"],
            "subGroupSize": self.partition_size,
            "minSubGroups": self.min_partitions,
        }
        if self.topology:
            policy["networkTopology"] = self.topology
        return policy


def tasks_of(job: Object) -> list[Task]:
    return [Task(spec, position) for position, spec in enumerate(job["spec"].get("tasks") or [])]


def minimum_of(job: Object, tasks: list[Task]) -> int:
    return job["spec"].get("minAvailable") or sum(task.min_available for task in tasks)


def owner(job: Object) -> list[Object]:
    meta = job["metadata"]
    return [
        {
            "apiVersion": VERSION,
            "kind": "Job",
            "name": meta["name"],
            "uid": meta["uid"],
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def group_name(job: Object) -> str:
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def pod_group(job: Object) -> Object:
    meta, spec, tasks = job["metadata"], job["spec"], tasks_of(job)
    # What kubectl keeps about the Job is not about the group.
    annotations = {key: text for key, text in (meta.get("annotations") or {}).items()
                   if not key.startswith("kubectl.")}  # fmt: skip
    group: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": group_name(job),
            "namespace": meta["namespace"],
            "annotations": annotations,
            "labels": dict(meta.get("labels") or {}),
            "ownerReferences": owner(job),
        },
        "spec": {
            "minMember": minimum_of(job, tasks),
            "minTaskMember": {task.name: task.min_available for task in tasks},
            "queue": spec.get("queue") or "default",
        },
    }
    if spec.get("priorityClassName"):
        group["spec"]["priorityClassName"] = spec["priorityClassName"]
    if spec.get("networkTopology"):
        group["spec"]["networkTopology"] = spec["networkTopology"]
    policies = [task.sub_group() for task in tasks if task.partition_size]
    if policies:
        group["spec"]["subGroupPolicy"] = policies
    return group


def pod_name(job: Object, task: Task, index: int) -> str:
    return f"{job['metadata']['name']}-{task.name}-{index}"


def make_pod(job: Object, task: Task, index: int) -> Object:
    meta, spec = job["metadata"], job["spec"]
    template = copy.deepcopy(task.template)
    queue = spec.get("queue") or "default"
    made: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": pod_name(job, task, index),
            "namespace": meta["namespace"],
            "annotations": dict(template.get("metadata", {}).get("annotations") or {}),
            "labels": dict(template.get("metadata", {}).get("labels") or {}),
            "ownerReferences": owner(job),
        },
        "spec": template.get("spec") or {},
    }
    annotations, labels = made["metadata"]["annotations"], made["metadata"]["labels"]
    annotations.update({
        "volcano.sh/task-index": str(index),
        "volcano.sh/task-spec": task.name,
        "scheduling.k8s.io/group-name": group_name(job),
        "volcano.sh/job-name": meta["name"],
        "volcano.sh/queue-name": queue,
        "volcano.sh/job-version": "0",
        "volcano.sh/template-uid": f"{meta['name']}-{task.name}",
    })  # fmt: skip
    labels.update({
        "volcano.sh/task-index": str(index),
        "volcano.sh/task-spec": task.name,
        "volcano.sh/job-name": meta["name"],
        "volcano.sh/job-namespace": meta["namespace"],
        "volcano.sh/queue-name": queue,
    })  # fmt: skip
    if task.partition_size:
        labels["volcano.sh/partition-id"] = str(index // task.partition_size)
    inherit(meta.get("annotations") or {}, INHERITED_ANNOTATIONS, annotations)
    inherit(meta.get("labels") or {}, INHERITED_LABELS, labels)
    pod_spec = made["spec"]
    pod_spec.setdefault("schedulerName", spec.get("schedulerName") or "volcano")
    pod_spec.setdefault("terminationGracePeriodSeconds", 0)
    for number, container in enumerate(pod_spec.get("containers") or []):
        container.setdefault("name", f"c{number}")
        container.setdefault("image", "example.com/none")
    if spec.get("priorityClassName"):
        pod_spec.setdefault("priorityClassName", spec["priorityClassName"])
    return made


def inherit(source: dict[str, str], keys: tuple[str, ...], target: dict[str, str]) -> None:
    for key in keys:
        if key in source:
            target[key] = source[key]


# --- what is there --------------------------------------------------------------------------------


def phase_of(pod: Object) -> str:
    return pod.get("status", {}).get("phase", "Pending")


def count(pods: list[Object], task: str | None, *phases: str) -> int:
    return sum(
        1
        for pod in pods
        if phase_of(pod) in phases
        and (task is None or pod["metadata"]["labels"].get("volcano.sh/task-spec") == task)
    )


def may_start(task: Task, tasks: list[Task], pods: list[Object]) -> bool:
    by_name = {each.name: each for each in tasks}
    met = [
        name not in by_name
        or count(pods, name, "Running", "Succeeded") >= by_name[name].min_available
        for name in task.depends_on
    ]
    return not met or (any(met) if task.depends_on_any else all(met))


def next_phase(job: Object, tasks: list[Task], pods: list[Object]) -> str:
    phase = ((job.get("status") or {}).get("state") or {}).get("phase", "")
    minimum, replicas = minimum_of(job, tasks), sum(task.replicas for task in tasks)
    running = count(pods, None, "Running")
    finished = count(pods, None, "Succeeded", "Failed")
    if phase in ("", "Pending"):
        return "Running" if running + finished >= max(1, minimum) else "Pending"
    if phase == "Running" and replicas and finished >= replicas:
        short = any(count(pods, task.name, "Succeeded") < task.min_available for task in tasks)
        enough = count(pods, None, "Succeeded") >= minimum
        return "Completed" if enough and not short else "Failed"
    return phase


# --- the controller -------------------------------------------------------------------------------


class JobHelper:
    """Looks at all Jobs ten times a second in a thread of its own."""

    def __init__(self, kubeconfig: str, at_once: bool = False) -> None:
        configuration = kubernetes.client.Configuration()
        kubernetes.config.load_kube_config(kubeconfig, client_configuration=configuration)
        self._api = kubernetes.client.ApiClient(configuration)
        self._at_once = at_once
        self._stop = threading.Event()
        self.problems: list[str] = []  # what went wrong and is tried again
        self._thread = threading.Thread(target=self._run, name="job-helper", daemon=True)

    def __enter__(self) -> JobHelper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)

    def _run(self) -> None:
        while not self._stop.wait(PERIOD_S):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - the server may be away; look again
                self.problems.append("".join(traceback.format_exception_only(error)).strip())

    def look(self) -> None:
        for job in self._call("GET", JOBS)["items"]:
            if not job["metadata"].get("deletionTimestamp"):
                self._reconcile(job)

    def _reconcile(self, job: Object) -> None:
        meta, tasks = job["metadata"], tasks_of(job)
        pods = self._pods_of(job)
        phase = ((job.get("status") or {}).get("state") or {}).get("phase", "")
        if phase in FINAL:
            for pod in pods:
                if phase_of(pod) not in ("Succeeded", "Failed"):
                    self._delete(pod)
            return
        group = self._ensure_group(job)
        admitted = (group.get("status") or {}).get("phase") not in (None, "", "Pending")
        if admitted or self._at_once:
            self._make_pods(job, tasks, pods)
        self._write_status(job, tasks, pods)

    def _pods_of(self, job: Object) -> list[Object]:
        meta = job["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods"
        found = self._call("GET", path, query=[("labelSelector", f"{JOB_NAME}={meta['name']}")])
        return [
            pod
            for pod in found["items"]
            if any(ref["uid"] == meta["uid"] for ref in pod["metadata"].get("ownerReferences", []))
        ]

    def _ensure_group(self, job: Object) -> Object:
        wanted = pod_group(job)
        meta = wanted["metadata"]
        path = f"/apis/{wanted['apiVersion']}/namespaces/{meta['namespace']}/podgroups"
        found = self._call("GET", f"{path}/{meta['name']}", missing_is_none=True)
        if found is None:
            return self._call("POST", path, wanted)
        if any(found["spec"].get(key) != value for key, value in wanted["spec"].items()
               if key != "subGroupPolicy"):  # fmt: skip
            return self._call("PATCH", f"{path}/{meta['name']}", {"spec": wanted["spec"]})
        return found

    def _make_pods(self, job: Object, tasks: list[Task], pods: list[Object]) -> None:
        present = {pod["metadata"]["name"]: pod for pod in pods}
        wanted = set()
        path = f"/api/v1/namespaces/{job['metadata']['namespace']}/pods"
        for task in tasks:
            starts = may_start(task, tasks, pods)
            for index in range(task.replicas):
                name = pod_name(job, task, index)
                wanted.add(name)
                if starts and name not in present:
                    self._call("POST", path, make_pod(job, task, index), exists_is_well=True)
        for name, pod in present.items():
            if name not in wanted:
                self._delete(pod)

    def _write_status(self, job: Object, tasks: list[Task], pods: list[Object]) -> None:
        meta, status = job["metadata"], job.get("status") or {}
        phase = next_phase(job, tasks, pods)
        change: Object = {
            "minAvailable": minimum_of(job, tasks),
            "pending": count(pods, None, "Pending"),
            "running": count(pods, None, "Running"),
            "succeeded": count(pods, None, "Succeeded"),
            "failed": count(pods, None, "Failed"),
        }
        same = all(status.get(key) == value for key, value in change.items())
        if same and (status.get("state") or {}).get("phase") == phase:
            return
        change["state"] = {"phase": phase}
        path = f"/apis/{VERSION}/namespaces/{meta['namespace']}/jobs/{meta['name']}/status"
        self._call("PATCH", path, {"status": change}, missing_is_none=True)

    def _delete(self, pod: Object) -> None:
        meta = pod["metadata"]
        if not meta.get("deletionTimestamp"):
            path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
            self._call("DELETE", path, missing_is_none=True)

    def _call(self, method: str, path: str, body: Object | None = None, *,
              query: list[tuple[str, str]] | None = None, missing_is_none: bool = False,
              exists_is_well: bool = False) -> Any:  # fmt: skip
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        try:
            answer = self._api.call_api(
                path,
                method,
                query_params=query or [],
                header_params={"Content-Type": kind, "Accept": "application/json"},
                body=body,
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _preload_content=False,
                _request_timeout=10,
            )
            text = answer.data
            if answer.status >= 300:
                raise kubernetes.client.ApiException(
                    status=answer.status, reason=f"{method} {path}: {text[:300]!r}"
                )
        except kubernetes.client.ApiException as error:
            if error.status == 404 and missing_is_none:
                return None
            if error.status == 409 and exists_is_well:
                return None
            raise
        return json.loads(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--at-once", action="store_true", help="pods before the group is admitted")
    options = parser.parse_args()
    with JobHelper(options.kubeconfig, options.at_once) as helper:
        print("ready", flush=True)
        told = 0
        try:
            while True:
                time.sleep(1)
                for problem in helper.problems[told:]:
                    print(re.sub(r"\s+", " ", problem), file=sys.stderr, flush=True)
                told = len(helper.problems)
        except KeyboardInterrupt:
            return 0


if __name__ == "__main__":
    sys.exit(main())
