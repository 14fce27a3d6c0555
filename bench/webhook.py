#!/usr/bin/env python3
"""`hopwise webhook` under load: AdmissionReviews over TLS at a steady rate, and how long each
answer takes. See README.md."""

from __future__ import annotations

import base64
import http.client
import itertools
import json
import os
import pathlib
import ssl
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "cluster"))

from hopcluster import Cluster, Options, binaries  # noqa: E402
from hopcluster.objects import Fabric, hypernode, node  # noqa: E402
from hopcluster.ports import free_port  # noqa: E402

HOPWISE = pathlib.Path(os.environ.get("HOPWISE", ROOT / "build/release/bin/hopwise"))
SCALE = float(os.environ.get("HOPWISE_BENCH_SCALE", "1"))
RATE = 500  # requests a second, of all connections together
SECONDS = 10 * SCALE
CONNECTIONS = 16
NODES = round(2000 * SCALE)
QUEUES = round(100 * SCALE)
SECRET = ("v1", "Secret", "hopwise-webhook-tls", "hopwise-system")
VOLCANO = "scheduling.volcano.sh/v1beta1"


def review(group: str, resource: str, item: dict) -> bytes:
    version, name = item["apiVersion"].split("/")[-1], item["metadata"]["name"]
    return json.dumps({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "operation": "CREATE",
                    "name": name, "namespace": "default", "object": item,
                    "resource": {"group": group, "version": version, "resource": resource}},
    }).encode()  # fmt: skip


def job(number: int) -> dict:
    """Of two roles with a template as people write them."""
    container = {
        "name": "main", "image": "registry.example.com/train:1.2.3", "command": ["python"],
        "args": [f"--argument-{i}=some-value-{i}" for i in range(20)],
        "env": [{"name": f"VARIABLE_{i}", "value": "x" * 40} for i in range(40)],
        "resources": {"requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"},
                      "limits": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "8"}},
    }  # fmt: skip
    template = {"metadata": {"labels": {"app": "train"}},
                "spec": {"containers": [container], "restartPolicy": "OnFailure"}}  # fmt: skip
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job",
            "metadata": {"name": f"train-{number}", "namespace": "default"},
            "spec": {"queue": f"q{number % QUEUES}", "minAvailable": 65, "plugins": {"svc": []},
                     "tasks": [{"name": "head", "replicas": 1, "template": template},
                               {"name": "worker", "replicas": 64,
                                "template": template}]}}  # fmt: skip


def mix() -> list[tuple[str, bytes]]:
    """Mostly Jobs, each filled in and judged, some queues and PodGroups, few HyperNodes."""
    batch, scheduling = "batch.volcano.sh", "scheduling.volcano.sh"
    found = []
    for number in range(20):
        found += [("/jobs/mutate", review(batch, "jobs", job(number))),
                  ("/jobs/validate", review(batch, "jobs", job(number)))]  # fmt: skip
        group = {"apiVersion": VOLCANO, "kind": "PodGroup",
                 "metadata": {"name": f"g{number}", "namespace": "default"},
                 "spec": {"minMember": 64, "queue": f"q{number % QUEUES}"}}  # fmt: skip
        found.append(("/podgroups/validate", review(scheduling, "podgroups", group)))
    new = {"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": "new"},
           "spec": {"weight": 1, "parent": "root", "deserved": {"cpu": "10"}}}  # fmt: skip
    found.append(("/queues/validate", review(scheduling, "queues", new)))
    leaf = hypernode("new", 1, nodes=["node0", "node1"])
    found.append(("/hypernodes/validate", review("topology.volcano.sh", "hypernodes", leaf)))
    return found


def work(port: int, context: ssl.SSLContext, asks: list, first: int, start: float,
         out: list[float], troubles: list[str]) -> None:  # fmt: skip
    """One connection: its share of the rate, at its own moments. A request that is late because the
    one before it was slow counts from when it was due."""
    connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=20)
    for number in itertools.count(first, CONNECTIONS):
        due = start + number / RATE
        if due > start + SECONDS:
            break
        time.sleep(max(0.0, due - time.monotonic()))
        path, body = asks[number % len(asks)]
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
        out.append((time.monotonic() - due) * 1e3)
        if answer.status != 200 or b'"allowed":true' not in text:
            troubles.append(f"{path}: {answer.status} {text[:200]!r}")
    connection.close()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(int(len(values) * share), len(values) - 1)]


def measure(port: int, context: ssl.SSLContext) -> list[float]:
    times: list[list[float]] = [[] for _ in range(CONNECTIONS)]
    troubles: list[str] = []
    start = time.monotonic() + 0.5
    threads = [
        threading.Thread(target=work, args=(port, context, mix(), i, start, times[i], troubles))
        for i in range(CONNECTIONS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if troubles:
        raise SystemExit(f"{len(troubles)} requests were not allowed, the first: {troubles[0]}")
    return [each for one in times for each in one]


def cpu_seconds(pid: int) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    binaries.build()
    with Cluster(Options(controllers=False, kwok=False)) as cluster:
        fabric = Fabric(NODES, 16, 16)
        cluster.create(fabric.hypernodes())
        cluster.create([node(name, ready=True) for name in fabric.node_names()])
        cluster.create([{"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": f"q{i}"},
                         "spec": {"weight": 1}} for i in range(QUEUES)])  # fmt: skip
        port = free_port()
        one = cluster.hopwise(HOPWISE, "--bind-address=127.0.0.1", f"--port={port}",
                              "--certificate-names=127.0.0.1", name="webhook",
                              command="webhook")  # fmt: skip
        one.start()
        one.wait_ready()
        ca = base64.b64decode(cluster.api.get(*SECRET)["data"]["ca.crt"]).decode()
        context = ssl.create_default_context(cadata=ca)
        measure(port, context)  # so that all connections and caches are warm
        before = cpu_seconds(one.pid)
        times = measure(port, context)
        cpu = (cpu_seconds(one.pid) - before) * 1e3 / len(times)
        rate = len(times) / SECONDS
        p99 = percentile(times, 0.99)
        ok = "ok" if p99 <= 10 else "short"
        print(f"# {len(times)} requests over {CONNECTIONS} connections, {rate:.0f} a second")
        print(f"TARGET webhook_500_per_s_p99_ms {p99:.3f} 10 {ok}")
        print(f"TARGET webhook_rate_per_s {rate:.3f} 495 {'ok' if rate >= 495 else 'short'}")
        print(f"FIGURE webhook_500_per_s_p50_ms {percentile(times, 0.5):.3f} - -")
        print(f"FIGURE webhook_500_per_s_max_ms {max(times):.3f} - -")
        print(f"FIGURE webhook_cpu_ms_per_request {cpu:.3f} - -")
    return 0


if __name__ == "__main__":
    sys.exit(main())
