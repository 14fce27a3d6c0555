"""The Helm chart: what it makes is taken by a real API server, has no more rights than deploy/rbac
grants, and starts the program as it wants to be started."""

from __future__ import annotations

import json
import os
import subprocess
import tarfile

import pytest
import yaml
from hopcluster.api import ApiError, documents_of
from hopcluster.binaries import KUBERNETES_VERSION, path_of
from hopcluster.paths import DEPLOY
from hopcluster.ports import free_port
from support import USUAL_FLAGS, Object, eventually, name_of

CHART = DEPLOY / "chart" / "hopwise"
COMPONENTS = ("scheduler", "controller")
# Whose pods must pass as restricted; the API server says so of a Deployment that would not.
NAMESPACE = "chart-test"
EVERYTHING = {
    "commonLabels": {"team": "ml"},
    "image": {
        "registry": "registry.example.com:5000",
        "digest": "sha256:" + "0123456789abcdef" * 4,
        "pullSecrets": [{"name": "pull"}],
    },
    "log": {"level": "debug", "format": "text"},
    "networkPolicy": {
        "metricsFrom": [{"namespaceSelector": {"matchLabels": {"name": "monitoring"}}}],
        "egress": [{"ports": [{"port": 6443, "protocol": "TCP"}]}],
    },
    "serviceMonitor": {"enabled": True, "interval": "1m", "labels": {"release": "prometheus"}},
}
EVERYTHING_OF_A_COMPONENT = {
    "enabled": True,
    "replicas": 3,
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "serviceAccount": {"annotations": {"example.com/role": "r"}},
    "podLabels": {"sidecar": "no"},
    "podAnnotations": {"example.com/note": "n"},
    "nodeSelector": {"node-role.kubernetes.io/control-plane": ""},
    "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
    "topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone",
         "whenUnsatisfiable": "ScheduleAnyway"}],
    "resources": {"requests": {"cpu": 1}, "limits": {"memory": "8Gi"}},
    "extraArgs": ["--kube-api-qps=500"],
}  # fmt: skip
EVERYTHING |= {part: EVERYTHING_OF_A_COMPONENT for part in (*COMPONENTS, "webhook")}
ONLY_THE_PODS = {
    "crds": {"install": False},
    "rbac": {"create": False},
    "networkPolicy": {"enabled": False},
    **{
        part: {
            "replicas": 1,
            "priorityClassName": "",
            "podDisruptionBudget": {"enabled": False},
            "serviceAccount": {"create": False, "name": "somebody"},
        }
        for part in COMPONENTS
    },
}
NOTHING = {"crds": {"install": False}} | {part: {"enabled": False} for part in COMPONENTS}
VALUES = {
    "as it comes": {},
    "everything": EVERYTHING,
    "only the pods": ONLY_THE_PODS,
    "one replica": {"scheduler": {"replicas": 1}, "controller": {"enabled": False}},
    "a dry run": {"scheduler": {"dryRun": True, "schedulerNames": ["test"]}},
    "another certificate": {
        "webhook": {"enabled": True, "tls": {"secretName": "mine", "caBundle": "Q0E="}}
    },
}


@pytest.fixture(scope="module")
def helm(plane, tmp_path_factory):
    home = tmp_path_factory.mktemp("helm")
    homes = {f"HELM_{kind}_HOME": str(home) for kind in ("CACHE", "CONFIG", "DATA")}

    def run(*arguments: str, values: Object | None = None, check: bool = True):
        given = () if values is None else ("--values", "-")
        done = subprocess.run(
            [path_of("helm"), *arguments, *given],
            env=os.environ | homes | {"KUBECONFIG": str(plane.kubeconfig)},
            input=None if values is None else json.dumps(values),
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        if check:
            assert done.returncode == 0, done.stderr
        return done

    return run


@pytest.fixture(scope="module")
def render(helm):
    def run(values: Object | None = None, release: str = "gang", namespace: str = NAMESPACE,
            chart=CHART) -> list[Object]:  # fmt: skip
        done = helm("template", release, str(chart), "--namespace", namespace,
                    "--kube-version", KUBERNETES_VERSION, values=values or {})  # fmt: skip
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    return run


def of_kind(documents: list[Object], kind: str) -> dict[str, Object]:
    return {name_of(each): each for each in documents if each["kind"] == kind}


@pytest.fixture(scope="module")
def restricted(plane):
    """A namespace for restricted pods alone, and the CRD of the Prometheus operator."""
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    meta = {"name": NAMESPACE, "labels": levels}
    plane.api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
    group, plural = "monitoring.coreos.com", "servicemonitors"
    names = {"kind": "ServiceMonitor", "plural": plural, "singular": "servicemonitor"}
    fields = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": fields}}
    version = {"name": "v1", "served": True, "storage": True,
               "schema": {"openAPIV3Schema": schema}}  # fmt: skip
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [version]},
    }
    plane.api.apply(crd)
    eventually(lambda: plane.kubectl("get", plural, check=False).returncode == 0)
    yield
    plane.api.delete(crd)


# --- what it makes --------------------------------------------------------------------------------


def test_helm_lint_finds_nothing(helm):
    done = helm("lint", "--strict", str(CHART), "--kube-version", KUBERNETES_VERSION)
    assert "1 chart(s) linted, 0 chart(s) failed" in done.stdout
    assert "[WARNING]" not in done.stdout


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_a_real_api_server_takes_it(plane, restricted, render, values):
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": render(values)})
    asked = ("apply", "--dry-run=server", "--server-side", "--force-conflicts", "--validate=strict")
    done = plane.kubectl(*asked, "-n", NAMESPACE, "-f", "-", stdin=text)
    assert "Warning" not in done.stderr


def test_everything_off_makes_nothing(render):
    assert render(NOTHING) == []


def test_each_part_has_what_it_needs(render):
    """Beside the CRDs: what makes it run, what it may do, how it is reached and looked at."""
    documents = render(EVERYTHING)
    for component in COMPONENTS:
        name = f"gang-hopwise-{component}"
        for kind in ("Deployment", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role",
                     "RoleBinding", "Service", "PodDisruptionBudget", "NetworkPolicy",
                     "ServiceMonitor"):  # fmt: skip
            assert name in of_kind(documents, kind), kind
        assert f"{name}-configmap" in of_kind(documents, "ConfigMap")


def test_the_crds_are_those_of_deploy(render):
    made = of_kind(render(), "CustomResourceDefinition")
    own = {name_of(crd): crd for path in (DEPLOY / "crds").glob("*.yaml")
           for crd in documents_of(path)}  # fmt: skip
    assert made.keys() == own.keys()
    for name, crd in made.items():
        assert crd["spec"] == own[name]["spec"]
        assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize("component", COMPONENTS)
def test_the_rights_are_those_of_deploy(render, component):
    """Rule by rule; and of a release in another namespace they are bound to the account there."""
    documents = render()
    own = list(documents_of(DEPLOY / "rbac" / f"{component}.yaml"))
    for kind in ("ClusterRole", "Role"):
        (wanted,) = of_kind(own, kind).values()
        made = of_kind(documents, kind)[f"gang-hopwise-{component}"]
        assert made["rules"] == wanted["rules"]
        binding = of_kind(documents, f"{kind}Binding")[f"gang-hopwise-{component}"]
        assert binding["roleRef"]["name"] == f"gang-hopwise-{component}"
        (subject,) = binding["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": f"gang-hopwise-{component}",
                           "namespace": NAMESPACE}  # fmt: skip
    pods = of_kind(documents, "Deployment")[f"gang-hopwise-{component}"]["spec"]["template"]
    assert pods["spec"]["serviceAccountName"] == f"gang-hopwise-{component}"


def test_an_image_is_named_by_its_digest(render):
    image = of_kind(render(EVERYTHING), "Deployment")["gang-hopwise-scheduler"]
    (container,) = image["spec"]["template"]["spec"]["containers"]
    digest = EVERYTHING["image"]["digest"]
    assert container["image"] == f"registry.example.com:5000/hopwise:0.1.0@{digest}"


def test_what_helm_packs_is_the_same_chart(helm, render, tmp_path):
    """The CRDs and roles are links in the tree and files in the package."""
    helm("package", str(CHART), "--destination", str(tmp_path))
    (package,) = tmp_path.glob("*.tgz")
    with tarfile.open(package) as archive:
        inside = {member.name for member in archive if member.isfile()}
    for folder in ("crds", "rbac"):
        for path in (DEPLOY / folder).glob("*.yaml"):
            assert f"hopwise/files/{folder}/{path.name}" in inside
    assert render(chart=package) == render()


# --- wrong values ---------------------------------------------------------------------------------

WRONG = [
    ("a value that is none", {"scheduller": {}}, "scheduller"),
    ("a value of a part that is none", {"scheduler": {"replica": 1}}, "replica"),
    ("a number as text", {"scheduler": {"replicas": "two"}}, "replicas"),
    ("less than none", {"controller": {"replicas": -1}}, "replicas"),
    ("a digest that is none", {"image": {"digest": "latest"}}, "digest"),
    ("a level that is none", {"log": {"level": "loud"}}, "level"),
    ("no scheduler name", {"scheduler": {"schedulerNames": []}}, "schedulerNames"),
    ("a configuration as a map", {"scheduler": {"config": {"actions": ""}}}, "config"),
    ("a deadline without a unit", {"scheduler": {"gangDeadline": "60"}}, "gangDeadline"),
    ("an argument that is no flag", {"scheduler": {"extraArgs": ["help"]}}, "extraArgs"),
    ("a path that nobody serves", {"webhook": {"admissions": ["cats/validate"]}}, "admissions"),
    ("a certificate whose CA nobody knows",
     {"webhook": {"enabled": True, "tls": {"secretName": "mine"}}}, "webhook.tls.caBundle"),
]  # fmt: skip


@pytest.mark.parametrize(("values", "word"), [row[1:] for row in WRONG],
                         ids=[row[0] for row in WRONG])  # fmt: skip
def test_wrong_values_are_refused_by_name(helm, values, word):
    done = helm("template", str(CHART), "--kube-version", KUBERNETES_VERSION, values=values,
                check=False)  # fmt: skip
    assert done.returncode != 0
    assert word in done.stderr


# --- how it works out -----------------------------------------------------------------------------


def flags_of(container: Object, **replaced: str) -> list[str]:
    """The container's flags for a process on this machine, but for those that tests give anyway."""
    usual = {flag.partition("=")[0] for flag in USUAL_FLAGS}
    flags = []
    for flag in container["args"][1:]:
        name = flag.partition("=")[0]
        if name in replaced:
            flags.append(f"{name}={replaced[name]}")
        elif name not in usual and name != "--listen-address":
            flags.append(flag)
    return flags


def probed(container: Object) -> list[str]:
    return [
        container[probe]["httpGet"]["path"]
        for probe in ("startupProbe", "livenessProbe", "readinessProbe")
    ]


@pytest.fixture
def as_installed(render):
    """The documents of a release by which Hopwise has the names of deploy/rbac."""
    return render(release="hopwise", namespace="hopwise-system")


def container_of(documents: list[Object], component: str) -> Object:
    deployment = of_kind(documents, "Deployment")[f"hopwise-{component}"]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["args"][0] == component
    return container


def test_the_scheduler_starts_as_the_chart_says_and_answers_the_probes(
    as_installed, start, tmp_path
):
    container = container_of(as_installed, "scheduler")
    config = of_kind(as_installed, "ConfigMap")["hopwise-scheduler-configmap"]["data"]
    (mount,) = container["volumeMounts"]
    for name, text in config.items():
        (tmp_path / name).write_text(text)
    conf = f"{mount['mountPath']}/volcano-scheduler.conf"
    assert f"--scheduler-conf={conf}" in container["args"]
    port = free_port()
    flags = flags_of(container, **{"--scheduler-conf": str(tmp_path / "volcano-scheduler.conf"),
                                   "--healthz-address": f"127.0.0.1:{port}"})  # fmt: skip
    one = start(*flags)
    one.port = port
    for path in probed(container):
        eventually(lambda: one.fetch(path)[0] == 200, what=path)


def test_the_controller_starts_as_the_chart_says_and_answers_the_probes(
    plane, as_installed, control
):
    container = container_of(as_installed, "controller")
    config = of_kind(as_installed, "ConfigMap")["hopwise-controller-configmap"]
    plane.api.apply(config)
    try:
        port = free_port()
        one = control(None, *flags_of(container, **{"--healthz-address": f"127.0.0.1:{port}"}))
        one.port = port
        for path in probed(container):
            eventually(lambda: one.fetch(path)[0] == 200, what=path)
        assert "ConfigurationRefused" not in one.log()
    finally:
        plane.api.delete(config)


def test_it_is_installed_upgraded_and_removed_and_the_crds_stay(plane, restricted, helm):
    """CRDs that are there already are taken over if that is asked for, and outlive the release."""
    crd = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "hypernodes.topology.volcano.sh")
    uid = plane.api.get(*crd)["metadata"]["uid"]
    common = ("--namespace", NAMESPACE, "--take-ownership")
    helm("install", "gang", str(CHART), *common)
    deployment = ("apps/v1", "Deployment", "gang-hopwise-scheduler", NAMESPACE)
    assert plane.api.get(*deployment)["spec"]["replicas"] == 2
    done = helm("upgrade", "gang", str(CHART), *common, values={"scheduler": {"replicas": 3}})
    assert "kubectl -n chart-test get lease gang-hopwise-scheduler" in done.stdout
    assert plane.api.get(*deployment)["spec"]["replicas"] == 3
    helm("uninstall", "gang", "--namespace", NAMESPACE)
    with pytest.raises(ApiError):
        plane.api.get(*deployment)
    assert plane.api.get(*crd)["metadata"]["uid"] == uid
