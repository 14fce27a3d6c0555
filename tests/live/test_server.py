"""What the scheduler serves over HTTP, and what it does with less than a whole cluster."""

from __future__ import annotations

import json
import re
import subprocess

import pytest
from fault_proxy import Answer, Match
from hopcluster.api import ApiError
from hopcluster.objects import hypernode, pod
from hopcluster.paths import DEPLOY, TESTS
from support import (
    GPUS,
    HOPWISE,
    VOLCANO,
    annotation_of,
    await_record,
    condition_of,
    eventually,
    for_a_while,
    hard,
    name_of,
    node_of,
    records,
)

# Volcano's, as its documentation lists them, as far as they tell of what Hopwise does.
VOLCANO_METRICS = """
volcano_e2e_scheduling_latency_milliseconds histogram
volcano_e2e_job_scheduling_latency_milliseconds histogram
volcano_e2e_job_scheduling_duration gauge
volcano_e2e_job_scheduling_start_time gauge
volcano_e2e_job_scheduling_last_time gauge
volcano_action_scheduling_latency_milliseconds histogram
volcano_scheduling_stage_duration_milliseconds histogram
volcano_schedule_attempts_total counter
volcano_unschedule_job_count gauge
volcano_queue_allocated_milli_cpu gauge
volcano_queue_allocated_memory_bytes gauge
volcano_queue_allocated_scalar_resources gauge
volcano_queue_weight gauge
"""
OUR_METRICS = """
hopwise_gang_tier counter
hopwise_gang_domains_crossed histogram
hopwise_waiting_gangs gauge
hopwise_binds_total counter
hopwise_leader gauge
hopwise_cache_synced gauge
hopwise_decision_duration_milliseconds histogram
"""


def families(text: str) -> dict[str, str]:
    return dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))


def test_metrics_bear_volcanos_names_and_our_own(user, start):
    one = start()
    user.floor(4)
    user.gang("runs", 2, topology=hard(1))
    user.await_bound("runs", 2)
    user.gang("waits", 5)
    user.await_told("waits")

    def measured():
        found = families(one.fetch("/metrics")[1])
        for line in (VOLCANO_METRICS + OUR_METRICS).split("\n"):
            if line:
                name, kind = line.split()
                assert found.get(name) == kind, f"{name} is {found.get(name)}"
        return True

    eventually(measured)
    assert one.metric("hopwise_binds_total", result="bound") == 2
    assert one.metric("hopwise_gang_tier", tier="1") == 1
    assert one.metric("hopwise_waiting_gangs", reason="NeverFits") == 1
    assert one.metric("volcano_unschedule_job_count") == 1
    assert one.metric("volcano_schedule_attempts_total", result="scheduled") == 2
    gpus = {"queue_name": "default", "resource": "nvidia.com/gpu"}
    allocated = eventually(lambda: one.metric("volcano_queue_allocated_scalar_resources", **gpus))
    assert allocated in (2 * GPUS, 2 * GPUS * 1000)
    assert not one.metric("hopwise_unannounced_verdict_changes_total")


def test_metrics_can_be_parsed_line_by_line(user, start):
    one = start()
    sample = re.compile(r'[a-zA-Z_:][\w:]*(\{(\w+="(\\.|[^"\\])*",?)*\})? [-+.\w]+$')
    seen = set()
    for line in one.fetch("/metrics")[1].splitlines():
        if line.startswith("# TYPE "):
            name = line.split()[2]
            assert name not in seen, f"{name} is declared twice"
            seen.add(name)
        elif line and not line.startswith("#"):
            assert sample.match(line), line


def test_it_is_healthy_and_ready(start):
    one = start()
    assert one.fetch("/healthz") == (200, "ok\n")
    assert one.fetch("/livez")[0] == 200
    assert one.fetch("/readyz") == (200, "ok: leading\n")
    assert one.fetch("/nothing")[0] == 404


def test_health_has_an_address_of_its_own_when_asked(start):
    one = start("--healthz-address=127.0.0.1:0")
    address = await_record(one, "serving_health")["address"]
    assert address.startswith("http://127.0.0.1:")
    assert address != await_record(one, "serving")["address"]
    port = one.port
    try:
        one.port = int(address.rpartition(":")[2])
        assert one.fetch("/healthz")[0] == 200
        assert one.fetch("/readyz")[0] == 200
        assert one.fetch("/debug/state")[0] == 404, "health alone is served there"
    finally:
        one.port = port


def test_it_is_not_ready_before_it_has_seen_the_cluster(start, proxy):
    with proxy.add(Match("GET", r"^/api/v1/nodes$"), Answer(503)):
        one = start(via=proxy, ready=False)
        await_record(one, "leading")
        eventually(lambda: one.fetch("/readyz")[0] == 503)
        assert "nodes" in one.fetch("/readyz")[1]
        assert one.fetch("/healthz")[0] == 200
    one.wait_ready(60)


def test_nothing_is_placed_before_all_was_seen(user, start, proxy):
    """Nodes known, pods that hold them not: whoever decides now decides wrong."""
    user.floor(2)
    with proxy.add(Match("GET", r"^/api/v1/pods$"), Answer(503)):
        one = start(via=proxy, ready=False)
        await_record(one, "leading")
        user.create(pod("early", gpus=GPUS))

        def unbound():
            assert not node_of(user.pod("early"))

        for_a_while(unbound)
    eventually(lambda: node_of(user.pod("early")), 60)


# --- a live problem replayed offline --------------------------------------------------------------


def simulate(folder, text):
    (folder / "state.json").write_text(text)
    done = subprocess.run(
        [HOPWISE, "simulate", "state.json", "--output", "json", "--snapshot-dir", "out"],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)["steps"][-1]
    return {gang["name"]: gang for gang in report["gangs"]}, done.stderr


def test_the_dump_is_replayed_by_simulate(user, start, tmp_path):
    one = start()
    user.floor(8)
    user.gang("runs", 4, topology=hard(2))
    nodes = user.await_bound("runs", 4)
    user.gang("waits", 3, topology=hard(1))
    waiting = user.await_told("waits")
    eventually(lambda: user.group("runs").get("status", {}).get("running") == 4)
    status, text = one.fetch("/debug/state", within_s=20)
    assert status == 200
    assert json.loads(text)["kind"] == "List"
    gangs, complaints = simulate(tmp_path, text)
    assert sorted(gangs["runs"]["nodes"]) == nodes
    assert gangs["waits"]["placed"] == 0
    condition = condition_of(waiting[0], "PodScheduled")
    assert gangs["waits"]["message"] == condition["message"]
    group = condition_of(user.group("waits"), "Unschedulable")
    assert (gangs["waits"]["reason"], gangs["waits"]["message"]) == (
        group["reason"],
        group["message"],
    )
    # What the scheduler says of itself is for people.
    assert not complaints or "SchedulerState" in complaints and complaints.count("\n") == 1


# --- a cluster without some of the kinds ----------------------------------------------------------

CRDS = {
    "hypernodes.topology.volcano.sh": DEPLOY / "crds" / "hypernode.yaml",
    "podgroups.scheduling.volcano.sh": DEPLOY / "crds" / "podgroup.yaml",
    "queues.scheduling.volcano.sh": DEPLOY / "crds" / "queue.yaml",
    "podgroups.scheduling.x-k8s.io": TESTS / "crds" / "plugin-podgroup.yaml",
}


@pytest.fixture
def without_crds(plane):
    def crd(name):
        meta = {"name": name}
        return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": meta}  # fmt: skip

    def is_gone(name):
        try:
            plane.api.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
        except ApiError as error:
            return error.code == 404
        return False

    for name in CRDS:
        plane.api.delete(crd(name))
    for name in CRDS:
        eventually(lambda name=name: is_gone(name), 60, f"{name} gone")
    yield
    for path in CRDS.values():
        plane.api.apply_file(path)


def test_kinds_that_are_not_installed_are_named_and_awaited(user, plane, start, without_crds):
    one = start()
    missing = eventually(
        lambda: (found := {r["resource"] for r in records(one, "kind_not_installed")})
        and len(found) == len(CRDS)
        and found
    )
    assert {name.partition(".")[0] for name in missing} == {"hypernodes", "podgroups", "queues"}
    for name in ("n0", "n1"):
        user.add_node(name)
    user.create(pod("solo", gpus=GPUS))
    eventually(lambda: node_of(user.pod("solo")), what="plain pods are placed")
    user.label_gang("labelled", 2)
    user.await_told("labelled")
    user.delete("v1", "Pod", "solo")
    user.await_bound("labelled", 2)
    user.remove_pods()
    # They come; they are found within the time that the log announced.
    for path in CRDS.values():
        plane.api.apply_file(path)
    user.client.resources.invalidate_cache()
    user.create(hypernode("pair", 1, "leaf", nodes=["n0", "n1"]))
    user.gang("band", 2, topology=hard(1))
    user.await_bound("band", 2, within=40)
    eventually(lambda: annotation_of(user.group("band"), "hopwise.dev/placed-domain") == "pair")
    eventually(lambda: {"default", "root"} <= {name_of(q) for q in user.list(VOLCANO, "Queue")})
    assert one.running


# --- beside another scheduler ---------------------------------------------------------------------


def test_a_dry_run_decides_and_writes_nothing(user, start, proxy):
    user.floor(4)
    user.gang("fits", 2, topology=hard(1))
    user.gang("waits", 5)
    one = start("--dry-run", via=proxy)
    placed = await_record(one, "would_place")
    assert (placed["gang"], placed["pods"], placed["tier"]) == (f"{user.namespace}/fits", 2, 1)
    eventually(lambda: len(records(one, "would_bind")) == 2)
    assert one.metric("hopwise_waiting_gangs", reason="NeverFits") == 1

    def untouched():
        for each in user.pods():
            assert not node_of(each) and not condition_of(each, "PodScheduled")

    for_a_while(untouched)
    assert not user.group("fits").get("status")
    assert user.events() == []
    wrote = {(e.method, e.path) for e in proxy.exchanges() if e.method != "GET"}
    assert wrote <= {("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews")}


def test_a_dry_run_follows_what_the_other_scheduler_does(user, start, plane):
    user.floor(2)
    one = start("--dry-run")
    user.gang("band", 2)
    await_record(one, "would_place")
    for number in range(2):
        plane.api.bind(user.namespace, f"band-{number}", f"node{number}")
    user.gang("next", 1)
    eventually(lambda: one.metric("hopwise_waiting_gangs", reason="NotEnoughResources") == 1)
