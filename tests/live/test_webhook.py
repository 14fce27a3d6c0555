"""What users and operators see of `hopwise webhook`: what is filled in, warned of and refused, and
what happens when it is away, gets another certificate, or is sent what is no question."""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import subprocess
import threading
import time

import kubernetes
import pytest
import yaml
from hopcluster.api import ApiError
from hopcluster.objects import hypernode, node, pod
from hopcluster.paths import DEPLOY
from hopcluster.ports import free_port
from support import (
    HOPWISE,
    TOPOLOGY,
    USUAL_FLAGS,
    VOLCANO,
    await_record,
    eventually,
    name_of,
    queue,
    records,
)

JOBS = "batch.volcano.sh/v1alpha1"
REGISTRATION = "admissionregistration.k8s.io/v1"
CONFIGURATIONS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
SECRET = ("v1", "Secret", "hopwise-webhook-tls", "hopwise-system")


# --- a webhook and the configurations that make the API server ask it -----------------------------


class Hook:
    """A running webhook with its admission port."""

    def __init__(self, plane, daemon, port: int) -> None:
        self.plane = plane
        self.daemon = daemon
        self.port = port

    @property
    def ca(self) -> str:
        data = self.plane.api.get(*SECRET)["data"]["ca.crt"]
        return base64.b64decode(data).decode()

    def trust(self, ca: str = "") -> ssl.SSLContext:
        return ssl.create_default_context(cadata=ca or self.ca)

    def connect(self, context: ssl.SSLContext | None = None) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, context=context or self.trust(), timeout=20
        )

    def ask(self, path: str, body: bytes, method: str = "POST") -> tuple[int, str]:
        connection = self.connect()
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()

    def serial(self) -> str:
        """Of the certificate that it presents."""
        with socket.create_connection(("127.0.0.1", self.port), 10) as raw:
            with self.trust().wrap_socket(raw, server_hostname="127.0.0.1") as wrapped:
                return wrapped.getpeercert()["serialNumber"]


def configurations(port: int, policy: str | None = None, pods: bool = False) -> list[dict]:
    """Those of deploy/webhook, with an address of this machine in place of the Service."""
    files = ["mutating.yaml", "validating.yaml"] + (["pods.yaml"] if pods else [])
    found = []
    for file in files:
        for item in yaml.safe_load_all((DEPLOY / "webhook" / file).read_text()):
            for webhook in item["webhooks"]:
                path = webhook["clientConfig"].pop("service")["path"]
                webhook["clientConfig"]["url"] = f"https://127.0.0.1:{port}{path}"
                webhook["failurePolicy"] = policy or webhook["failurePolicy"]
            found.append(item)
    return found


# Refused by nothing else: what the CRDs check is answered by them.
BAD_QUEUE = queue("bad", parent="nowhere")


def judges(plane) -> bool:
    """Whether the API server asks: it takes a moment to see a configuration."""
    path = f"/apis/{VOLCANO}/queues?dryRun=All"
    try:
        plane.api.request("POST", path, BAD_QUEUE)
    except ApiError as error:
        return "spec.parent: there is no queue nowhere" in str(error)
    return False


@pytest.fixture
def hook(user, plane):
    """hook(*flags, policy=…, pods=…, register=…): a webhook that is asked about everything."""
    made, applied = [], []

    def clear() -> None:
        for kind in CONFIGURATIONS:
            for name in ("hopwise-webhook", "hopwise-webhook-pods"):
                meta = {"name": name}
                plane.api.delete({"apiVersion": REGISTRATION, "kind": kind, "metadata": meta})

    def run(*flags: str, policy: str | None = None, pods: bool = False, register: bool = True,
            port: int = 0) -> Hook:  # fmt: skip
        port = port or free_port()
        daemon = plane.hopwise(
            HOPWISE, *USUAL_FLAGS, "--bind-address=127.0.0.1", f"--port={port}",
            "--certificate-names=127.0.0.1", "--graceful-shutdown-time=0", *flags,
            name=f"webhook-{port}-{len(made)}", command="webhook",
        )  # fmt: skip
        made.append(daemon)
        for item in configurations(port, policy, pods) if register else []:
            plane.api.create(item)
            applied.append(item)
        daemon.start()
        daemon.wait_ready()
        if register:
            eventually(lambda: judges(plane), what="the API server asks the webhook")
        return Hook(plane, daemon, port)

    plane.api.delete(secret())
    yield run
    clear()
    for daemon in made:
        code = daemon.stop()
        assert code in (0, -9), daemon.with_tail(f"ended with {code}")
        plane.daemons.remove(daemon)
    plane.api.delete(secret())
    if applied:
        eventually(lambda: not judges(plane), what="the API server asks nobody")


def secret() -> dict:
    api_version, kind, name, namespace = SECRET
    return {"apiVersion": api_version, "kind": kind,
            "metadata": {"name": name, "namespace": namespace}}  # fmt: skip


def job(name: str, **spec) -> dict:
    template = {"spec": {"containers": [{"name": "main", "image": "busybox:1"}]}}
    tasks = spec.pop("tasks", [{"replicas": 2, "template": template}])
    return {"apiVersion": JOBS, "kind": "Job", "metadata": {"name": name},
            "spec": {"tasks": tasks, **spec}}  # fmt: skip


def refusal(call) -> str:
    """What the official client is told."""
    with pytest.raises(kubernetes.client.exceptions.ApiException) as caught:
        call()
    told = json.loads(caught.value.body)
    return f"{told['code']} {told['message']}"


def apply(user, *items: dict, check: bool = True):
    """By kubectl, all in one file."""
    for item in items:
        if item["kind"] not in user.CLUSTER_WIDE:
            item["metadata"]["namespace"] = user.namespace
    return user.plane.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(items), check=check)


# --- what users see -------------------------------------------------------------------------------


def test_a_job_is_filled_in(user, hook):
    hook()
    apply(user, job("train", plugins={"pytorch": []}))
    spec = user.get(JOBS, "Job", "train")["spec"]
    assert (spec["queue"], spec["schedulerName"], spec["maxRetry"]) == ("default", "volcano", 3)
    assert spec["minAvailable"] == 2
    assert set(spec["plugins"]) == {"pytorch", "svc"}
    (task,) = spec["tasks"]
    assert (task["name"], task["minAvailable"], task["maxRetry"]) == ("default0", 2, 3)
    assert task["template"]["spec"]["restartPolicy"] == "Always"


def test_a_job_that_cannot_be_used_is_refused_with_the_path_of_each_field(user, hook):
    hook()
    bad = job("bad", queue="nowhere", plugins={"horovod": []})
    done = apply(user, bad, check=False)
    assert done.returncode != 0
    for words in ("validatejob.hopwise.dev", "spec.queue: there is no queue nowhere",
                  "spec.plugins[horovod]: "):  # fmt: skip
        assert words in done.stderr
    told = refusal(lambda: user.create(bad))
    assert told.startswith("422 ") and "spec.plugins[horovod]: " in told


def test_of_a_job_that_exists_only_counts_change(user, hook):
    hook()
    apply(user, job("train"))
    scaled = user.patch(JOBS, "Job", "train", {"spec": {"minAvailable": 1}})
    assert scaled["spec"]["minAvailable"] == 1
    with pytest.raises(ApiError) as error:
        user.patch(JOBS, "Job", "train", {"spec": {"networkTopology": {"mode": "soft"}}})
    assert "spec.networkTopology: cannot change" in str(error.value)


def test_a_queue_and_its_jobs_may_stand_in_one_file(user, hook):
    """The webhook has not seen the queue yet when it is asked about the job."""
    one = hook()
    for number in range(5):
        apply(user, queue(f"young-{number}"), job(f"at-once-{number}", queue=f"young-{number}"))
    assert one.daemon.metric("hopwise_admission_reviews_total", path="/jobs/validate",
                             verdict="refused") is None  # fmt: skip


def test_queues_are_filled_in_and_kept_in_order(user, hook):
    hook()
    made = user.create({"apiVersion": VOLCANO, "kind": "Queue", "metadata": {"name": "org"},
                        "spec": {"deserved": {"cpu": "10"}}})  # fmt: skip
    assert made["spec"]["parent"] == "root" and made["spec"]["reclaimable"] is True
    # The next rule needs the one before it to have been seen.
    time.sleep(0.5)
    user.create(queue("team", parent="org", deserved={"cpu": "6"}))
    time.sleep(0.5)
    told = refusal(lambda: user.create(queue("more", parent="org", deserved={"cpu": "5"})))
    assert "spec.deserved[cpu]: with it the queues below org come to 11 cpu" in told
    done = user.plane.kubectl("delete", "queue", "org", check=False)
    assert "the queue org holds other queues, such as team" in done.stderr
    for name in ("team", "org"):
        user.plane.kubectl("delete", "queue", name)
        time.sleep(0.5)
    if not any(name_of(each) == "default" for each in user.list(VOLCANO, "Queue")):
        user.plane.api.create(queue("default"))  # a scheduler makes it, and none is running
    told = user.plane.kubectl("delete", "queue", "default", check=False).stderr
    assert "the queue default is needed always" in told


def test_a_pod_group_goes_to_the_queue_of_its_namespace(user, hook):
    hook()
    user.create(queue("ours"))
    mark = {"scheduling.volcano.sh/queue-name": "ours"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": user.namespace}}
    user.plane.api.patch(space, {"metadata": {"annotations": mark}})

    def goes(name: str) -> bool:
        group = {"apiVersion": VOLCANO, "kind": "PodGroup",
                 "metadata": {"name": name, "namespace": user.namespace},
                 "spec": {"minMember": 1}}  # fmt: skip
        made = user.plane.api.request(
            "POST", f"/apis/{VOLCANO}/namespaces/{user.namespace}/podgroups?dryRun=All", group
        )
        return made["spec"]["queue"] == "ours"

    eventually(lambda: goes("band"))
    told = refusal(lambda: user.create(
        {"apiVersion": VOLCANO, "kind": "PodGroup", "metadata": {"name": "lost"},
         "spec": {"minMember": 1, "queue": "nowhere"}}))  # fmt: skip
    assert "spec.queue: there is no queue nowhere" in told


def fabric(user) -> None:
    user.create_all([node(f"n{i}") for i in range(4)])
    user.create(hypernode("leaf0", 1, nodes=["n0", "n1"]))
    user.create(hypernode("spine", 2, children=["leaf0"]))


FAULTS = [
    (hypernode("twice", 1, nodes=["n1", "n2"]), "Overlap"),
    (hypernode("other", 2, children=["leaf0"]), "TwoParents"),
    (hypernode("low", 1, children=["spine"]), "TierOrder"),
    (hypernode("self", 3, children=["self"]), "Cycle"),
]


def test_a_hypernode_that_breaks_the_fabric_is_warned_of_and_taken(user, hook):
    hook()
    fabric(user)
    for item, reason in FAULTS:
        name = item["metadata"]["name"]

        def warned(item=item, reason=reason):
            done = user.plane.kubectl("apply", "--dry-run=server", "-f", "-",
                                      stdin=yaml.safe_dump(item))  # fmt: skip
            field = "tier" if reason == "TierOrder" else "members"
            assert f"Warning: spec.{field}: HyperNode " in done.stderr, done.stderr
            assert f"({reason})" in done.stderr
            return True

        eventually(warned, what=f"{name} is warned of")
    apply(user, FAULTS[0][0])
    assert user.plane.api.get(TOPOLOGY, "HyperNode", "twice")
    quiet = apply(user, hypernode("leaf1", 1, nodes=["n3"]))
    assert quiet.stderr == ""


def test_a_hypernode_that_breaks_the_fabric_is_refused_on_request(user, hook):
    hook("--hypernode-faults=refuse")
    fabric(user)
    for item, reason in FAULTS:

        def refused(item=item, reason=reason):
            done = user.plane.kubectl("apply", "--dry-run=server", "-f", "-",
                                      stdin=yaml.safe_dump(item), check=False)  # fmt: skip
            assert done.returncode != 0 and f"({reason})" in done.stderr, done.stderr
            return True

        eventually(refused, what=f"{item['metadata']['name']} is refused")
    # Objects come in any order: what is missing may follow.
    early = apply(user, hypernode("early", 3, children=["spine", "later"]))
    assert "(MissingChild)" in early.stderr
    assert user.plane.api.get(TOPOLOGY, "HyperNode", "early")


def test_a_pattern_that_is_none_is_refused_always(user, hook):
    hook()
    item = hypernode("p", 1)
    item["spec"]["members"] = [{"type": "Node", "selector": {"regexMatch": {"pattern": "n[0"}}}]
    done = apply(user, item, check=False)
    assert "spec.members[0].selector.regexMatch.pattern: is no regular expression" in done.stderr


def test_what_was_there_before_the_webhook_can_be_labelled_and_leaves(user, hook):
    user.create(job("old", queue="gone"))
    user.create(BAD_QUEUE)
    hook()
    label = {"metadata": {"labels": {"seen": "yes"}}}
    assert user.patch(JOBS, "Job", "old", label)["metadata"]["labels"] == {"seen": "yes"}
    assert user.patch(VOLCANO, "Queue", "bad", label)["metadata"]["labels"] == {"seen": "yes"}
    user.delete(JOBS, "Job", "old")
    user.delete(VOLCANO, "Queue", "bad")


def test_pods_go_where_their_group_says(user, hook, tmp_path):
    conf = tmp_path / "admission.conf"
    conf.write_text(yaml.safe_dump({"resourceGroups": [
        {"resourceGroup": "gpu", "object": {"key": "namespace", "value": [user.namespace]},
         "labels": {"kind": "gpu"}}]}))  # fmt: skip
    one = hook(f"--admission-conf={conf}", pods=True)
    user.create(pod("first"))
    assert user.pod("first")["spec"]["nodeSelector"] == {"kind": "gpu"}
    marks = {"volcano.sh/jdb-min-available": "none"}
    told = refusal(lambda: user.create(pod("budget", annotations=marks)))
    assert 'metadata.annotations[volcano.sh/jdb-min-available]: "none" is no number' in told
    conf.write_text("resourceGroups: 1\n")
    assert "must be a list" in await_record(one.daemon, "configuration_refused")["error"]
    user.create(pod("second"))
    assert user.pod("second")["spec"]["nodeSelector"] == {"kind": "gpu"}
    conf.write_text("resourceGroups: []\n")
    await_record(one.daemon, "configuration_loaded")
    user.create(pod("third"))
    assert "nodeSelector" not in user.pod("third")["spec"]


# --- what operators see ---------------------------------------------------------------------------


def test_away_it_fails_closed_or_open_as_configured(user, hook):
    one = hook(policy="Fail")
    one.daemon.stop()
    told = refusal(lambda: user.create(job("closed")))
    assert "failed calling webhook" in told
    for item in configurations(one.port, "Ignore"):
        user.plane.api.patch(item, {"webhooks": item["webhooks"]})
    eventually(lambda: not fails(user), what="the API server knows the new policy")
    user.create(job("open", queue="nowhere"))
    assert user.get(JOBS, "Job", "open")["spec"]["queue"] == "nowhere"


def fails(user) -> bool:
    path = f"/apis/{VOLCANO}/queues?dryRun=All"
    try:
        user.plane.api.request("POST", path, queue("probe"))
    except ApiError:
        return True
    return False


def test_its_numbers_tell_of_each_kind_and_verdict(user, hook):
    one = hook()
    user.create(job("good"))
    refusal(lambda: user.create(job("bad", queue="nowhere")))
    for verdict in ("allowed", "refused"):
        assert one.daemon.metric("hopwise_admission_reviews_total", path="/jobs/validate",
                                 operation="CREATE", verdict=verdict) == 1  # fmt: skip
        assert one.daemon.metric("hopwise_admission_duration_milliseconds_count", resource="jobs",
                                 verdict=verdict)  # fmt: skip
    expiry = one.daemon.metric("hopwise_admission_certificate_expiry_seconds")
    assert abs(expiry - time.time() - 90 * 86400) < 600
    assert one.daemon.fetch("/readyz") == (200, "ok\n")
    assert one.daemon.fetch("/healthz")[0] == 200


def test_replicas_and_restarts_present_the_same_certificate(user, hook):
    first = hook()
    second = hook(register=False)
    assert first.serial() == second.serial()
    before = first.serial()
    first.daemon.restart()
    first.daemon.wait_ready()
    assert first.serial() == before
    assert len(records(first.daemon, "certificate_issued")) <= 1


def test_a_ca_bundle_that_somebody_removes_comes_back(user, hook):
    hook()
    item = {"apiVersion": REGISTRATION, "kind": CONFIGURATIONS[1],
            "metadata": {"name": "hopwise-webhook"}}  # fmt: skip
    webhooks = user.plane.api.get(REGISTRATION, CONFIGURATIONS[1], "hopwise-webhook")["webhooks"]
    for webhook in webhooks:
        webhook["clientConfig"].pop("caBundle")
    user.plane.api.patch(item, {"webhooks": webhooks})
    eventually(lambda: judges(user.plane), 30, "asked again")


class Steady:
    """Somebody who applies a job again and again, in a dry run; keeps what went wrong."""

    def __init__(self, user) -> None:
        self.user = user
        self.done = 0
        self.troubles: list[str] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        path = f"/apis/{JOBS}/namespaces/{self.user.namespace}/jobs?dryRun=All"
        while not self._end.is_set():
            try:
                made = self.user.plane.api.request("POST", path, job(f"dry-{self.done}"))
                assert made["spec"]["minAvailable"] == 2
            except (ApiError, AssertionError, OSError) as error:
                self.troubles.append(str(error))
            self.done += 1

    def __enter__(self) -> Steady:
        self._thread.start()
        return self

    def __exit__(self, *unused: object) -> None:
        self._end.set()
        self._thread.join()


def test_certificates_are_renewed_while_it_works(user, hook):
    one = hook("--certificate-validity=12s")
    seen = {one.serial()}
    with Steady(user) as steady:
        eventually(lambda: (seen.add(one.serial()) or len(seen) >= 3), 60, "three certificates")
    assert steady.troubles == []
    assert steady.done > 50
    assert one.daemon.metric("hopwise_admission_certificate_changes_total") >= 3


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True, timeout=30)


def given_pair(folder, serial: int) -> None:
    """As whoever deploys certificates does it: a new file takes the place of the old one."""
    new = folder / f"{serial}"
    new.mkdir()
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
            "/CN=webhook", "-keyout", str(new / "tls.key"),
            "-out", str(new / "tls.csr"))  # fmt: skip
    (new / "names").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    openssl("x509", "-req", "-in", str(new / "tls.csr"), "-CA", str(folder / "ca.crt"), "-CAkey",
            str(folder / "ca.key"), "-set_serial", str(serial), "-days", "2", "-extfile",
            str(new / "names"), "-out", str(new / "tls.crt"))  # fmt: skip
    for file in ("tls.crt", "tls.key"):
        (new / file).rename(folder / file)


def test_given_certificates_are_read_again_while_it_works(user, hook, tmp_path):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-subj", "/CN=ca", "-days", "2", "-keyout", str(tmp_path / "ca.key"), "-out",
            str(tmp_path / "ca.crt"))  # fmt: skip
    given_pair(tmp_path, 17)
    one = hook(f"--tls-cert-file={tmp_path}/tls.crt", f"--tls-private-key-file={tmp_path}/tls.key",
               f"--ca-cert-file={tmp_path}/ca.crt")  # fmt: skip
    context = one.trust((tmp_path / "ca.crt").read_text())

    def serial() -> int:
        with socket.create_connection(("127.0.0.1", one.port), 10) as raw:
            with context.wrap_socket(raw, server_hostname="127.0.0.1") as wrapped:
                return int(wrapped.getpeercert()["serialNumber"], 16)

    assert serial() == 17
    with Steady(user) as steady:
        given_pair(tmp_path, 18)
        eventually(lambda: serial() == 18)
        (tmp_path / "tls.crt").write_text("no certificate")
        eventually(lambda: serial() == 18 and records(one.daemon, "tls_certificate_kept"))
    assert steady.troubles == []
    with pytest.raises(ApiError):
        user.plane.api.get(*SECRET)


def test_the_manifests_are_taken_as_they_are(plane):
    done = plane.kubectl("apply", "--dry-run=server", "-f", str(DEPLOY / "webhook"))
    assert done.stderr == ""
    for name in ("hopwise-webhook", "hopwise-webhook-pods"):
        assert f"mutatingwebhookconfiguration.admissionregistration.k8s.io/{name} " in done.stdout


# --- what is no question --------------------------------------------------------------------------


def review(**request) -> bytes:
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                       "request": request}).encode()  # fmt: skip


GOOD = review(uid="u", operation="CREATE", namespace="x", name="q",
              resource={"group": "scheduling.volcano.sh", "version": "v1beta1",
                        "resource": "queues"},
              object={"metadata": {"name": "q"}})  # fmt: skip


def plain(port: int, request: bytes) -> str:
    with socket.create_connection(("127.0.0.1", port), 10) as wire:
        wire.sendall(request)
        wire.settimeout(20)
        text = b""
        while piece := wire.recv(4096):
            text += piece
        return text.decode(errors="replace")


def test_bad_requests_get_a_clear_answer_and_hurt_nothing(user, hook):
    one = hook()
    assert one.ask("/queues/mutate", GOOD)[0] == 200
    for path, body, method, status, words in [
        ("/queues/mutate", b"", "POST", 400, "is not JSON"),
        ("/queues/mutate", b"<xml/>", "POST", 400, "is not JSON"),
        ("/queues/mutate", b"{}", "POST", 400, "no AdmissionReview"),
        ("/queues/mutate", b"[" * 100_000, "POST", 400, "levels deep"),
        ("/jobs/validate", GOOD, "POST", 400, "judges jobs.batch.volcano.sh, and the request is"),
        ("/queues/mutate", b"", "GET", 405, "by POST"),
        ("/queues", GOOD, "POST", 404, "Nothing is served"),
        ("/queues/mutate", GOOD, "DELETE", 405, "GET, HEAD and POST only"),
    ]:
        found = one.ask(path, body, method)
        assert found[0] == status and words in found[1], (path, found)
    said = plain(one.port, b"POST /queues/mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    assert said.startswith("HTTP/1.1 400 ") and "HTTPS only" in said
    assert one.ask("/queues/mutate", GOOD)[0] == 200
    assert one.daemon.running


def test_a_huge_body_is_refused_before_it_is_sent(user, hook):
    one = hook()
    connection = one.connect()
    connection.putrequest("POST", "/queues/mutate")
    connection.putheader("Content-Length", str(100 << 20))
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 413 and b"at most" in answer.read()
    assert one.ask("/queues/mutate", GOOD)[0] == 200


def test_slow_clients_are_left_and_do_not_delay_others(user, hook):
    one = hook()
    silent = [socket.create_connection(("127.0.0.1", one.port), 10) for _ in range(60)]
    context = one.trust()
    slow = []
    for _ in range(20):
        raw = socket.create_connection(("127.0.0.1", one.port), 10)
        wrapped = context.wrap_socket(raw, server_hostname="127.0.0.1")
        wrapped.sendall(b"POST /queues/mutate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
        slow.append(wrapped)
    started = time.monotonic()
    for number in range(20):
        user.plane.api.request("POST", f"/apis/{VOLCANO}/queues?dryRun=All", queue(f"q{number}"))
    assert time.monotonic() - started < 5
    for each in (*silent, *slow):
        each.settimeout(30)
        try:
            while each.recv(4096):
                pass
        except (ConnectionError, ssl.SSLError):
            pass
        each.close()


# --- what it refuses to begin with ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--enabled-admission=/jobs/create"], "/jobs/create is none of /cronjobs/validate"),
        (["--certificate-validity=1s"], "--certificate-validity: must be at least 10s"),
        (["--ca-cert-file=x"], "--ca-cert-file goes with --tls-cert-file"),
        (["--hypernode-faults=maybe"], "--hypernode-faults"),
        (["--tls-cert-file=x"], "--tls-cert-file and --tls-private-key-file go together"),
        (["--feature-gates=A"], "--feature-gates: A is not <name>=true"),
    ],
)
def test_wrong_use_is_named(flags, words):
    done = subprocess.run([HOPWISE, "webhook", *flags], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_configuration_that_cannot_be_used_is_named(tmp_path):
    conf = tmp_path / "admission.conf"
    conf.write_text("resourceGroups: [{labels: {a: b}}]\n")
    done = subprocess.run([HOPWISE, "webhook", f"--admission-conf={conf}"], capture_output=True,
                          text=True, timeout=20)  # fmt: skip
    assert done.returncode == 2
    assert "admission.conf: resourceGroups[0].resourceGroup: is missing" in done.stderr


def test_missing_rights_are_named_with_the_manifest_that_grants_them(plane):
    binding = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
               "metadata": {"name": "hopwise-webhook", "namespace": "hopwise-system"}}  # fmt: skip
    kept = plane.api.get("rbac.authorization.k8s.io/v1", "RoleBinding", "hopwise-webhook",
                         "hopwise-system")  # fmt: skip
    plane.api.delete(binding)
    try:
        account = "system:serviceaccount:hopwise-system:hopwise-webhook"
        may = ("auth", "can-i", "create", "secrets", "-n", "hopwise-system", "--as", account)
        eventually(lambda: "no" in plane.kubectl(*may, check=False).stdout)
        daemon = plane.hopwise(HOPWISE, f"--port={free_port()}", name="webhook-denied",
                               command="webhook")  # fmt: skip
        daemon.start()
        assert daemon.wait(30) == 1
        assert "create secrets in namespace hopwise-system" in daemon.log()
        assert "deploy/rbac/webhook.yaml grants it all" in daemon.log()
        plane.daemons.remove(daemon)
    finally:
        fresh = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
                 "metadata": binding["metadata"], "roleRef": kept["roleRef"],
                 "subjects": kept["subjects"]}  # fmt: skip
        plane.api.create(fresh)
