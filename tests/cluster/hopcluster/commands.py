"""The command lines of the control plane's programs, and why each flag is there."""

from __future__ import annotations

import pathlib
from typing import Sequence

import yaml

from hopcluster.binaries import old_etcd, path_of
from hopcluster.credentials import Credentials
from hopcluster.paths import TESTS

# Those that tests and people miss when they are not there. The node controllers are left out: they
# would want heartbeats from nodes that have none.
CONTROLLERS = (
    "deployment-controller",
    "disruption-controller",
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "pod-garbage-collector-controller",
    "replicaset-controller",
    "replicationcontroller-controller",
    "serviceaccount-controller",
    "statefulset-controller",
)


def etcd(folder: pathlib.Path, port: int, peer_port: int, old: bool) -> list[str]:
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer_port}"
    return [
        old_etcd() if old else path_of("etcd"),
        f"--data-dir={folder}",
        "--name=hopcluster",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=hopcluster={peer}",
        # Nothing here must outlive a crash of the machine.
        "--unsafe-no-fsync",
        "--quota-backend-bytes=4294967296",
        "--logger=zap",
        "--log-level=warn",
    ]


def kube_apiserver(
    port: int, etcd_port: int, credentials: Credentials, accounts_served: bool, more: Sequence[str]
) -> list[str]:
    # TaintNodesByCondition taints new nodes until a node controller, which does not run here, takes
    # the taint away. ServiceAccount wants the account "default" that a controller makes.
    disabled = ["TaintNodesByCondition"] + ([] if accounts_served else ["ServiceAccount"])
    return [
        path_of("kube-apiserver"),
        f"--etcd-servers=http://127.0.0.1:{etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--advertise-address=127.0.0.1",
        # No pod asks for the service "kubernetes", and a loopback address may not be its endpoint.
        "--endpoint-reconciler-type=none",
        f"--cert-dir={credentials.certificates}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={credentials.account_public_key}",
        f"--service-account-signing-key-file={credentials.account_key}",
        f"--token-auth-file={credentials.token_file}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.96.0.0/16",
        f"--disable-admission-plugins={','.join(disabled)}",
        "--profiling=false",
        *more,
    ]


def kube_controller_manager(
    port: int, kubeconfig: pathlib.Path, credentials: Credentials
) -> list[str]:
    return [
        path_of("kube-controller-manager"),
        f"--kubeconfig={kubeconfig}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--controllers={','.join(CONTROLLERS)}",
        f"--service-account-private-key-file={credentials.account_key}",
        "--leader-elect=false",
        # A Deployment of a thousand pods must not wait for the controller's good manners.
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
        "--concurrent-gc-syncs=20",
    ]


def kube_scheduler(port: int, kubeconfig: pathlib.Path, folder: pathlib.Path) -> list[str]:
    config = folder / "kube-scheduler.yaml"
    content = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        # As generous as Hopwise's own, for comparisons.
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 2000, "burst": 2000},
        "leaderElection": {"leaderElect": False},
    }
    config.write_text(yaml.safe_dump(content), encoding="utf-8")
    return [
        path_of("kube-scheduler"),
        f"--config={config}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
    ]


def kwok(port: int, kubeconfig: pathlib.Path) -> list[str]:
    return [
        path_of("kwok"),
        f"--kubeconfig={kubeconfig}",
        f"--config={TESTS / 'kwok.yaml'}",
        "--manage-all-nodes",
        # No heartbeats: thousands of nodes would write all the time, and nobody reads it.
        "--node-lease-duration-seconds=0",
        f"--server-address=127.0.0.1:{port}",
        "--node-port=0",
    ]
