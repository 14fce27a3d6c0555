"""The cluster of `up`: it runs in the background, under a supervisor, until `down`.

The supervisor is the parent of all its processes, so that they end with it, however it ends.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from typing import Any

from hopcluster import binaries, objects
from hopcluster.cluster import Cluster, Options
from hopcluster.errors import ClusterError
from hopcluster.paths import BINARIES, TESTS
from hopcluster.process import PidFile, start_time_of

_SUPERVISOR = "supervisor"
_UP_S = 180.0
_DOWN_S = 20.0


def up(folder: pathlib.Path, arguments: argparse.Namespace) -> None:
    """Two at once: the second waits, and finds the cluster up."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_suffix(".lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _up(folder, arguments)


def _up(folder: pathlib.Path, arguments: argparse.Namespace) -> None:
    started = time.monotonic()
    if _supervisor_pid(folder) is not None:
        print("the cluster is up already")
        if ended := _ended(folder):
            print(f"but {', '.join(ended)} has ended: down, then up again, brings it back")
        print(_what_to_try(_state(folder)))
        return
    _require_hopwise(arguments)
    binaries.build()
    _clean(folder)
    folder.mkdir(parents=True)
    log = folder / "supervisor.log"
    # The same arguments, but for the command.
    options = sys.argv[1:]
    options[options.index("up")] = "serve"
    with open(log, "wb") as output:
        supervisor = subprocess.Popen(
            [sys.executable, "-u", "-m", "hopcluster", *options],
            env=os.environ | {"PYTHONPATH": str(TESTS)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _await_ready(folder, supervisor, log)
    except BaseException:
        supervisor.kill()
        supervisor.wait()
        raise
    print(f"up after {time.monotonic() - started:.1f} s")
    print(_what_to_try(_state(folder)))


def _require_hopwise(arguments: argparse.Namespace) -> None:
    if not arguments.no_scheduler and not os.access(arguments.hopwise, os.X_OK):
        raise ClusterError(
            f"{arguments.hopwise} is missing: build it with ./dev build, or leave Hopwise out with "
            "--no-scheduler"
        )


def _await_ready(
    folder: pathlib.Path, supervisor: subprocess.Popen[bytes], log: pathlib.Path
) -> None:
    """Shows what the supervisor says until the cluster is ready."""
    shown = 0
    deadline = time.monotonic() + _UP_S
    while True:
        ended = supervisor.poll() is not None
        ready = bool(_state(folder))
        text = log.read_text(errors="replace")
        print(text[shown:], end="", flush=True)
        shown = len(text)
        if ready:
            return
        if ended:
            raise ClusterError(f"it did not come up; the logs are in {folder}")
        if time.monotonic() > deadline:
            raise ClusterError(f"it is not up after {_UP_S:g} s; the logs are in {folder}")
        time.sleep(0.1)


def serve(folder: pathlib.Path, arguments: argparse.Namespace) -> None:
    """What the supervisor does."""
    signal.signal(signal.SIGTERM, lambda *unused: sys.exit(0))
    PidFile(folder).add(_SUPERVISOR, os.getpid())
    started = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - started:5.1f} s  {text}", flush=True)

    options = Options(kube_scheduler=arguments.kube_scheduler, old_etcd=arguments.old_etcd)
    with Cluster(options, folder, say) as cluster:
        say("control plane ready")
        fabric = objects.Fabric(
            arguments.nodes, arguments.per_leaf, arguments.leaves_per_spine
        )
        cluster.create(objects.node(name) for name in fabric.node_names())
        cluster.create(fabric.hypernodes())
        say(f"{arguments.nodes} nodes made")
        if not arguments.no_scheduler:
            scheduler = cluster.hopwise(arguments.hopwise, *arguments.scheduler_flag)
            controller = cluster.hopwise(
                arguments.hopwise,
                *arguments.controller_flag,
                name="hopwise-controller",
                command="controller",
            )
            for daemon in (scheduler, controller):
                daemon.start()
            for daemon in (scheduler, controller):
                daemon.wait_ready()
            say("Hopwise ready")
        _write_state(folder, cluster)
        _watch(cluster, say)


def _write_state(folder: pathlib.Path, cluster: Cluster) -> None:
    state = {"kubeconfig": str(cluster.kubeconfig), "port": cluster.port}
    if cluster.daemons:
        state["hopwise"] = f"http://127.0.0.1:{cluster.daemons[0].port}"
    unfinished = folder / "state.new"
    unfinished.write_text(json.dumps(state), encoding="utf-8")
    unfinished.replace(folder / "state.json")


def _watch(cluster: Cluster, say: Any) -> None:
    """Until SIGTERM; says once of each process that it has ended."""
    ended: set[str] = set()
    while True:
        for process in cluster.processes():
            if process.name not in ended and not process.running:
                ended.add(process.name)
                say(process.with_tail(f"ended with {process.exit_code}"))
        time.sleep(1)


def _running(folder: pathlib.Path) -> dict[str, object]:
    return {str(entry["name"]): entry["pid"] for entry in PidFile(folder).entries()}


def _names(folder: pathlib.Path) -> list[str]:
    names = [_SUPERVISOR, *sorted(path.stem for path in folder.glob("*.log"))]
    return list(dict.fromkeys(names))


def _ended(folder: pathlib.Path) -> list[str]:
    running = _running(folder)
    return [name for name in _names(folder) if name not in running]


def status(folder: pathlib.Path) -> bool:
    if _supervisor_pid(folder) is None:
        print("the cluster is down: start it with ./dev cluster up")
        return False
    running = _running(folder)
    for name in _names(folder):
        print(f"{name:<24} {f'pid {running[name]}' if name in running else 'has ended'}")
    state = _state(folder)
    if not state:
        print("it is still coming up")
        return True
    for kind in ("nodes", "pods"):
        print(f"{kind:<24} {_count(state, kind)}")
    print(_what_to_try(state))
    return True


def _count(state: dict[str, Any], kind: str) -> str:
    kubectl = [binaries.path_of("kubectl"), f"--kubeconfig={state['kubeconfig']}"]
    try:
        done = subprocess.run(
            [*kubectl, "get", kind, "-A", "--no-headers", "--request-timeout=5s"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "the API server does not answer"
    if done.returncode != 0:
        return done.stderr.strip()
    return str(len(done.stdout.splitlines()))


def down(folder: pathlib.Path) -> None:
    pid = _supervisor_pid(folder)
    if pid is not None:
        started = start_time_of(pid)
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _DOWN_S
        while start_time_of(pid) == started and time.monotonic() < deadline:
            time.sleep(0.05)
    left = _clean(folder)
    if left:
        print(f"had to kill {', '.join(left)}")
    print("the cluster is down" if pid is not None or left else "there was no cluster")


def _clean(folder: pathlib.Path) -> list[str]:
    left = PidFile(folder).kill_all()
    shutil.rmtree(folder, ignore_errors=True)
    return left


def _supervisor_pid(folder: pathlib.Path) -> int | None:
    for entry in PidFile(folder).entries():
        if entry["name"] == _SUPERVISOR:
            return int(entry["pid"])
    return None


def _state(folder: pathlib.Path) -> dict[str, Any]:
    """Empty until the cluster is ready."""
    try:
        return dict(json.loads((folder / "state.json").read_text(encoding="utf-8")))
    except FileNotFoundError:
        return {}


def _what_to_try(state: dict[str, Any]) -> str:
    if not state:
        return "it is still coming up: ask again with ./dev cluster status"
    lines = [
        "",
        f"export KUBECONFIG={state['kubeconfig']}",
        f"export PATH={BINARIES}:$PATH",
        "kubectl get nodes,hypernodes",
    ]
    if "hopwise" in state:
        lines += [
            "kubectl apply -f examples/live/1-gang.yaml && kubectl get pods -o wide -w",
            "kubectl apply -f examples/live/4-job.yaml && kubectl get vcjob",
            f"curl {state['hopwise']}/metrics",
        ]
    return "\n".join([*lines, "", "./dev cluster down ends it."])
