"""The cases of tests/cases on a real cluster: the live scheduler keeps the same promises.

A case is applied step by step. What came of it is read back and given to `hopwise simulate`, which
must find nothing left to do; the case's expectations are judged on its report and on the objects.
HOPWISE_CASES=046,073 runs others than the ones below.
"""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest
import run_cases
import yaml
from support import HOPWISE, SOON_S, Object, User, condition_of, eventually, name_of, node_of

pytestmark = pytest.mark.usefixtures("scheduler", "workloads")

# What makes sense live: no virtual time, no flags of the simulator, no other scheduler's pods,
# kinds that are installed, no step in which two hands race for a node (046), and nothing that the
# CRDs refuse (003).
CHOSEN = """
001 004 006 008 010 011 016 017 018 019 022 026 028 031 033 036 039 045 048 050 054 057 059
061 073 075 078 084 092 110 111 130 145 147 152 154 155
""".split()
# A sample for every day; HOPWISE_LONG=1 runs all of the above.
DAILY = "001 004 017 026 033 045 050 061 073 075 084 092 111 145 154".split()
GRACE_S = 1.0  # so long nothing changes: the step is over

OP = "hopwise.dev/simulate"


def chosen() -> list[str]:
    given = os.environ.get("HOPWISE_CASES")
    if given:
        return given.split(",")
    return CHOSEN if os.environ.get("HOPWISE_LONG") == "1" else DAILY


CASES = [path for path in sorted(run_cases.CASES.glob("*.yaml")) if path.name[:3] in chosen()]


def test_the_chosen_cases_exist():
    assert [path.name[:3] for path in CASES] == sorted(chosen())


# --- applying -------------------------------------------------------------------------------------


def objects_of(text: str) -> list[Object]:
    found = []
    for document in yaml.safe_load_all(text):
        if document is not None:
            found += document["items"] if document["kind"] == "List" else [document]
    return found


class LiveCase:
    def __init__(self, user: User) -> None:
        self.user = user
        self.api = user.plane.api
        self.collected = [
            ("v1", "Node"), ("v1", "Pod"), ("v1", "Event"),
            ("topology.volcano.sh/v1alpha1", "HyperNode"),
            ("scheduling.volcano.sh/v1beta1", "Queue"),
            ("scheduling.volcano.sh/v1beta1", "PodGroup"),
            ("scheduling.x-k8s.io/v1alpha1", "PodGroup"),
            ("batch.volcano.sh/v1alpha1", "Job"), ("apps/v1", "Deployment"),
            ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"),
            ("batch/v1", "Job"), ("scheduling.k8s.io/v1", "PriorityClass")]

    def apply(self, item: Object) -> None:
        kind, meta = item["kind"], item["metadata"]
        if kind not in User.CLUSTER_WIDE:
            meta["namespace"] = self.user.namespace
        op = (meta.get("annotations") or {}).pop(OP, "apply")
        if op == "delete":
            self.api.delete(item, grace_s=0 if kind == "Pod" else None)
            return
        self.complete(item)
        status = item.pop("status", None)
        made = self.api.apply(item)
        if status:
            has_status = kind != "PodGroup" or item["apiVersion"].startswith("scheduling.x-k8s")
            self.api.patch(made, {"status": status}, "status" if has_status else "")

    def complete(self, item: Object) -> None:
        """What the API server wants and the simulator does without."""
        spec = item.get("spec") or {}
        if item["kind"] == "Node":
            room = item.setdefault("status", {})
            room.setdefault("capacity", room.get("allocatable", {}))
        templates = [spec.get("template"), *(t.get("template") for t in spec.get("tasks") or [])]
        inners = [t.setdefault("spec", {}) for t in templates if t]
        for inner in [spec] if item["kind"] == "Pod" else inners:
            inner.setdefault("terminationGracePeriodSeconds", 0)
            for number, container in enumerate(inner.get("containers", [])):
                container.setdefault("name", f"c{number}")
                container.setdefault("image", "example.com/none")

    def step(self, text: str) -> None:
        """Nodes first, as they must be ready; then in the order of the file."""
        items = objects_of(text)
        nodes = [each for each in items if each["kind"] == "Node"]
        deleted = [each for each in nodes if OP in (each["metadata"].get("annotations") or {})]
        self.api.in_parallel(self.apply, [each for each in nodes if each not in deleted])
        for each in items:
            if each["kind"] != "Node" or each in deleted:
                self.apply(each)
        self.rest()

    def rest(self) -> None:
        """Until nothing that counts has changed for a while, and whoever waits was told why."""
        last, since, deadline = None, time.monotonic(), time.monotonic() + SOON_S
        while time.monotonic() - since < GRACE_S:
            pods = self.user.pods()
            now = sorted(
                (p["metadata"]["uid"], node_of(p), p["status"].get("phase", ""),
                 json.dumps(condition_of(p, "PodScheduled"), sort_keys=True))
                for p in pods
            )  # fmt: skip
            untold = [p for p in pods if not node_of(p) and not condition_of(p, "PodScheduled")]
            if now != last or untold:
                last, since = now, time.monotonic()
            assert time.monotonic() < deadline, f"no rest: {[name_of(p) for p in untold]}"
            time.sleep(0.1)

    def read_back(self) -> list[Object]:
        found = []
        for api_version, kind in self.collected:
            for item in self.api.list(api_version, kind):
                meta = item["metadata"]
                meta.pop("managedFields", None)
                if kind not in User.CLUSTER_WIDE and meta["namespace"] != self.user.namespace:
                    continue
                # The case speaks of objects without a namespace.
                if "namespace" in meta:
                    meta["namespace"] = "default"
                if kind == "Event":
                    item["involvedObject"]["namespace"] = "default"
                item["apiVersion"], item["kind"] = api_version, kind
                found.append(item)
        return found


# --- judging --------------------------------------------------------------------------------------


def report_of(objects: list[Object], folder, case) -> tuple[dict, str]:
    """What simulate says of the state, after it found nothing to do."""
    items = [each for each in objects if each["kind"] != "Event"]
    (folder / "state.json").write_text(
        json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    )
    command = [HOPWISE, "simulate", "state.json", "--output", "json", "--snapshot-dir", "out"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60,
                          check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["steps"][-1]
    live = {name_of(p): node_of(p) for p in items if p["kind"] == "Pod" and node_of(p)}
    after = json.loads((folder / "out" / "step-1.json").read_text())["items"]
    offline = {name_of(p): node_of(p) for p in after if p["kind"] == "Pod" and node_of(p)}
    assert offline == live, "the simulator finds more to do than was done"
    return report, done.stderr


@pytest.mark.parametrize("path", CASES, ids=[path.stem for path in CASES])
def test_case(user, tmp_path, path):
    case = run_cases.read_case(path)
    assert not case.flags and not case.exit_status, "a case of the simulator alone"
    live = LiveCase(user)
    snapshots = []
    for number, text in enumerate(case.steps, 1):
        live.step(text)
        folder = tmp_path / str(number)
        folder.mkdir()

        def look(folder=folder):
            objects = live.read_back()
            report, complaints = report_of(objects, folder, case)
            return objects, report, complaints

        objects, report, complaints = eventually(look)
        snapshots.append((run_cases.Snapshot(objects, report), complaints))
    problems = judge(case, snapshots)
    assert not problems, "\n".join(problems)


def judge(case, snapshots) -> list[str]:
    """As run_cases does, on what was read back."""
    run = run_cases.Run(0, "", "\n".join(complaints for _, complaints in snapshots), {})
    run.snapshots = lambda: [snapshot for snapshot, _ in snapshots]
    judged = [e for e in case.expectations if not any(w in e[1] for w in ("clock ", "complain"))]
    case.expectations = judged
    return run_cases.judge(case, run)
