"""The control plane as one object: etcd, API server, controllers, scheduler, KWOK."""

from __future__ import annotations

import atexit
import dataclasses
import os
import pathlib
import shutil
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from typing import Callable, Iterable, Sequence

from hopcluster import commands
from hopcluster.api import Api, Object
from hopcluster.binaries import path_of
from hopcluster.credentials import ADMIN, KUBE_SCHEDULER, Credentials, User
from hopcluster.errors import ClusterError
from hopcluster.paths import DEPLOY, SCRATCH, TESTS
from hopcluster.ports import free_port
from hopcluster.process import PidFile, Process, start_time_of
from hopcluster.daemon import HopwiseDaemon

# Ten times what is seen on two idle cores: a busy machine is no failure.
_START_S = 60.0
SCHEDULER_ACCOUNT = ("hopwise-system", "hopwise-scheduler")
CONTROLLER_ACCOUNT = ("hopwise-system", "hopwise-controller")
WEBHOOK_ACCOUNT = ("hopwise-system", "hopwise-webhook")


@dataclasses.dataclass(frozen=True)
class Options:
    controllers: bool = True  # kube-controller-manager
    kube_scheduler: bool = False  # beside Hopwise, for pods of "default-scheduler"
    kwok: bool = True
    old_etcd: bool = False  # Debian's 3.4: the API server then serves no streaming lists
    manifests: bool = True  # apply deploy/ and the CRDs of the tests
    # Service accounts, (namespace, name), that get a token which outlives a wiped etcd.
    static_accounts: tuple[tuple[str, str], ...] = (
        SCHEDULER_ACCOUNT,
        CONTROLLER_ACCOUNT,
        WEBHOOK_ACCOUNT,
    )
    apiserver_flags: tuple[str, ...] = ()


class Cluster:
    """Use as a context manager, or start() and close()."""

    def __init__(
        self,
        options: Options = Options(),
        folder: pathlib.Path | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.options = options
        self._say = say
        self.folder = _scratch_folder() if folder is None else folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port, self._etcd_port = free_port(), free_port()
        self._health_ports: dict[str, int] = {}
        accounts = [User.service_account(*account) for account in options.static_accounts]
        self.credentials = Credentials(self.folder, [ADMIN, KUBE_SCHEDULER, *accounts])
        self.kubeconfig = self.kubeconfig_for_user(ADMIN)
        self.api = Api(self.port, self.credentials.ca_file, self.credentials.token(ADMIN))
        self._etcd_data = self.folder / "etcd"
        self.etcd = self._process(
            "etcd",
            commands.etcd(self._etcd_data, self._etcd_port, free_port(), options.old_etcd),
        )
        self.api_server = self._process(
            "kube-apiserver",
            commands.kube_apiserver(
                self.port,
                self._etcd_port,
                self.credentials,
                options.controllers,
                options.apiserver_flags,
            ),
        )
        self.others: list[Process] = list(self._optional_processes())
        self.daemons: list[HopwiseDaemon] = []
        atexit.register(self.close)

    def _process(self, name: str, command: Sequence[str]) -> Process:
        return Process(name, command, self.folder)

    def _optional_processes(self) -> Iterable[Process]:
        def health_port(name: str) -> int:
            return self._health_ports.setdefault(name, free_port())

        if self.options.controllers:
            name = "kube-controller-manager"
            yield self._process(
                name,
                commands.kube_controller_manager(
                    health_port(name), self.kubeconfig, self.credentials
                ),
            )
        if self.options.kwok:
            yield self._process("kwok", commands.kwok(health_port("kwok"), self.kubeconfig))
        if self.options.kube_scheduler:
            name = "kube-scheduler"
            kubeconfig = self.kubeconfig_for_user(KUBE_SCHEDULER)
            yield self._process(
                name, commands.kube_scheduler(health_port(name), kubeconfig, self.folder)
            )

    @property
    def server(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    # --- start and end ----------------------------------------------------------------------------

    def __enter__(self) -> Cluster:
        try:
            self.start()
        except BaseException:
            self.close(keep_folder=True)
            raise
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    def start(self) -> None:
        self.start_api_server()
        if self.options.manifests:
            self.apply_manifests()
        for process in self.others:
            process.start()
        for process in self.others:
            self._await_health(process)

    def start_api_server(self) -> None:
        """etcd and the API server, on the ports that they had before."""
        started = time.monotonic()
        self.etcd.start()
        # The API server waits for etcd by itself.
        self.api_server.start()
        self.etcd.wait_until(self._etcd_answers, "answering", _START_S)
        self.api_server.wait_until(self.api.is_ready, "ready", _START_S)
        self._say(f"API server ready after {time.monotonic() - started:.1f} s")

    def stop_api_server(self, wipe: bool = False) -> None:
        """As a machine that loses power does; `wipe` loses all data too."""
        self.api_server.kill()
        self.api.forget_connections()
        if wipe:
            self.etcd.kill()
            shutil.rmtree(self._etcd_data, ignore_errors=True)

    def restart_api_server(self, wipe: bool = False) -> None:
        """After a wipe there are no nodes and no pods, but the manifests are applied again.

        Controllers and KWOK then start anew too: what they remember is of another world.
        """
        if wipe:
            for process in self.others:
                process.kill()
        self.stop_api_server(wipe)
        if wipe:
            self.start()
        else:
            self.start_api_server()

    def close(self, keep_folder: bool = False) -> None:
        """Ends everything; what it ends keeps no data, so nothing is asked politely."""
        atexit.unregister(self.close)
        for daemon in self.daemons:
            daemon.kill()
        for process in (*self.others, self.api_server, self.etcd):
            process.kill()
        if not keep_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def processes(self) -> list[Process]:
        return [self.etcd, self.api_server, *self.others, *self.daemons]

    def _etcd_answers(self) -> bool:
        return _answers_ok(f"http://127.0.0.1:{self._etcd_port}/health")

    def _await_health(self, process: Process) -> None:
        scheme = "http" if process.name == "kwok" else "https"
        url = f"{scheme}://127.0.0.1:{self._health_ports[process.name]}/healthz"
        process.wait_until(lambda: _answers_ok(url), "healthy", _START_S)

    # --- what is in it ----------------------------------------------------------------------------

    def apply_manifests(self) -> None:
        """The CRDs, the tests' own ones, and the rights of the daemons' accounts."""
        for folder in (DEPLOY / "crds", TESTS / "crds"):
            for path in sorted(folder.glob("*.yaml")):
                self.api.apply_file(path)
        for path in sorted((DEPLOY / "rbac").glob("*.yaml")):
            self.api.apply_file(path)

    def create(self, objects: Iterable[Object], threads: int = 8) -> list[Object]:
        """Creates many at once."""
        return self.api.in_parallel(self.api.create, objects, threads)

    def set_node_ready(self, name: str, ready: bool) -> None:
        """Makes the node's kubelet go silent, or come back."""
        node = self.api.get("v1", "Node", name)
        mark = {"test.hopwise.dev/not-ready": None if ready else "true"}
        self.api.patch(node, {"metadata": {"annotations": mark}})
        if not ready:
            kept = [one for one in node["status"]["conditions"] if one["type"] != "Ready"]
            condition = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
            self.api.patch(node, {"status": {"conditions": [*kept, condition]}}, "status")

    # --- access -----------------------------------------------------------------------------------

    def kubeconfig_for_user(self, user: User, server: str = "") -> pathlib.Path:
        path = self.folder / f"{user.name.replace(':', '-')}.kubeconfig"
        return self.credentials.write_kubeconfig(
            path, server or self.server, self.credentials.token(user)
        )

    def kubeconfig_for_account(
        self,
        namespace: str,
        name: str,
        *,
        static: bool = True,
        server: str = "",
        file: str = "",
    ) -> pathlib.Path:
        """A kubeconfig of a service account.

        `static` takes a token of Options.static_accounts, which is good for ever. Otherwise the API
        server issues one, as it does for pods: it is good for an hour, and for nothing once the
        account is gone; it lies in a file beside the kubeconfig, so that it can be exchanged.
        `server` goes through a proxy.
        """
        path = self.folder / (file or f"{namespace}-{name}.kubeconfig")
        if static:
            token = self.credentials.token(User.service_account(namespace, name))
            return self.credentials.write_kubeconfig(
                path, server or self.server, token, namespace=namespace
            )
        token_file = path.with_suffix(".token")
        token_file.touch(mode=0o600)
        token_file.write_text(self.issue_token(namespace, name), encoding="utf-8")
        return self.credentials.write_kubeconfig(
            path, server or self.server, token_file=token_file, namespace=namespace
        )

    def issue_token(self, namespace: str, name: str, lifetime_s: int = 3600) -> str:
        """The API server grants no lifetime under ten minutes."""
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": lifetime_s},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        return str(self.api.request("POST", path, request)["status"]["token"])

    def kubectl(
        self, *arguments: str, stdin: str = "", check: bool = True, within_s: float = 60.0
    ) -> subprocess.CompletedProcess[str]:
        """Runs kubectl as admin."""
        done = subprocess.run(
            [path_of("kubectl"), *arguments],
            env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )
        if check and done.returncode != 0:
            raise ClusterError(f"kubectl {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done

    def hopwise(
        self,
        binary: pathlib.Path,
        *flags: str,
        name: str = "hopwise",
        kubeconfig: pathlib.Path | None = None,
        command: str = "scheduler",
    ) -> HopwiseDaemon:
        """A daemon that is not started yet, with the rights of deploy/rbac and no others."""
        account = ("hopwise-system", f"hopwise-{command}")
        daemon = HopwiseDaemon(
            binary,
            kubeconfig or self.kubeconfig_for_account(*account),
            self.folder,
            flags,
            name,
            command,
        )
        self.daemons.append(daemon)
        return daemon


# --- folders of clusters that do not outlive their process ----------------------------------------


def _scratch_folder() -> pathlib.Path:
    SCRATCH.mkdir(parents=True, exist_ok=True)
    sweep()
    prefix = f"{os.getpid()}-{start_time_of(os.getpid())}-"
    return pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=SCRATCH))


def sweep() -> None:
    """Removes what tests left behind that were killed, and whatever still runs of it."""
    for folder in SCRATCH.glob("*-*-*"):
        pid, start, _ = folder.name.split("-", 2)
        if pid.isdigit() and str(start_time_of(int(pid))) != start:
            PidFile(folder).kill_all()
            shutil.rmtree(folder, ignore_errors=True)


_UNVERIFIED = ssl.create_default_context()
_UNVERIFIED.check_hostname = False
_UNVERIFIED.verify_mode = ssl.CERT_NONE


def _answers_ok(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2, context=_UNVERIFIED) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False
