"""What cannot work is refused with words that say what to do, an exit code, and no busy loop."""

from __future__ import annotations

import base64
import copy
import json
import os
import re
import subprocess
import time

import pytest
from fault_proxy import make_kubeconfig
from hopcluster.api import documents_of
from hopcluster.objects import pod
from hopcluster.paths import DEPLOY
from hopcluster.ports import free_port
from support import (
    GPUS,
    HOPWISE,
    LEASE,
    await_record,
    cpu_seconds,
    eventually,
    for_a_while,
    node_of,
    records,
)

QUICKLY_S = 20

GOOD_CONFIG = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
- plugins:
  - name: predicates
  - name: nodeorder
  - name: binpack
"""


def refused(one, code=1, event="cannot_start"):
    """It ended with this code; returns what it said."""
    assert one.wait(QUICKLY_S) == code, one.log()
    (record,) = records(one, event)
    return record["error"]


def write_kubeconfig(path, server, plane, token):
    path.write_text(json.dumps(make_kubeconfig(server, str(plane.credentials.ca_file), token)))
    return path


# --- credentials ----------------------------------------------------------------------------------


def signed_token(plane, claims: dict) -> str:
    """A token of the API server's own key: what it would have issued with these claims."""

    def encode(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    head = encode(json.dumps({"alg": "ES256", "typ": "JWT"}).encode())
    text = f"{head}.{encode(json.dumps(claims).encode())}"
    signature = subprocess.run(
        ["openssl", "dgst", "-sha256", "-sign", str(plane.credentials.account_key)],
        input=text.encode(), capture_output=True, check=True, timeout=30,
    ).stdout  # fmt: skip
    # DER: SEQUENCE of two INTEGERs; JWT wants both as 32 bytes.
    numbers, at = b"", 2
    for _ in range(2):
        length = signature[at + 1]
        numbers += signature[at + 2 : at + 2 + length].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + length
    return f"{text}.{encode(numbers)}"


def account_claims(plane, lifetime_s: int) -> dict:
    account = plane.api.get("v1", "ServiceAccount", "hopwise-scheduler", "hopwise-system")
    now = int(time.time())
    issuer = "https://kubernetes.default.svc"
    return {
        "iss": issuer,
        "aud": [issuer],
        "iat": now - 7200,
        "nbf": now - 7200,
        "exp": now + lifetime_s,
        "sub": "system:serviceaccount:hopwise-system:hopwise-scheduler",
        "kubernetes.io": {
            "namespace": "hopwise-system",
            "serviceaccount": {"name": "hopwise-scheduler", "uid": account["metadata"]["uid"]},
        },
    }


def test_wrong_credentials(plane, start, tmp_path):
    path = write_kubeconfig(tmp_path / "k", plane.server, plane, "sesame-open")
    one = start(kubeconfig=path, ready=False)
    words = refused(one)
    assert "401" in words or "Unauthorized" in words
    assert "sesame-open" not in one.log()


@pytest.mark.parametrize(("lifetime_s", "works"), [(3600, True), (-60, False)])
def test_an_expired_token(plane, start, tmp_path, lifetime_s, works):
    """The one that is not expired shows that the other is refused for its age alone."""
    token = signed_token(plane, account_claims(plane, lifetime_s))
    path = write_kubeconfig(tmp_path / "k", plane.server, plane, token)
    one = start(kubeconfig=path, ready=False)
    if works:
        one.wait_ready()
    else:
        words = refused(one)
        assert "401" in words or "Unauthorized" in words
    assert token not in one.log()


def test_a_kubeconfig_that_is_not_there(start, tmp_path):
    one = start(kubeconfig=tmp_path / "nowhere", ready=False)
    assert str(tmp_path / "nowhere") in refused(one)


def test_a_kubeconfig_that_cannot_be_read_does_not_show_its_secrets(start, tmp_path):
    path = tmp_path / "k"
    path.write_text("users:\n- name: u\n  user: {token: sesame-open\nclusters: [\n")
    one = start(kubeconfig=path, ready=False)
    assert str(path) in refused(one)
    assert "sesame" not in one.log()


def test_a_server_whose_certificate_nobody_vouches_for(plane, start, tmp_path, proxy):
    # The proxy's certificate, with the API server's CA.
    path = write_kubeconfig(tmp_path / "k", proxy.url, plane, "sesame-open")
    one = start("--startup-timeout=2s", kubeconfig=path, ready=False)
    words = refused(one)
    assert re.search("certificate|SSL|TLS", words)


# --- permissions ----------------------------------------------------------------------------------

# The right that is taken away, and how the message names it.
RIGHTS = {
    "binding": (("", "pods/binding", "create"), "create pods/binding"),
    "eviction": (("", "pods/eviction", "create"), "create pods/eviction"),
    "nodes": (("", "nodes", "watch"), "watch nodes"),
    "pod groups": (
        ("scheduling.volcano.sh", "podgroups", "list"),
        "list podgroups.scheduling.volcano.sh",
    ),
    "pod groups' status": (
        ("scheduling.volcano.sh", "podgroups", "patch"),
        "patch podgroups.scheduling.volcano.sh",
    ),
    "events": (("", "events", "create"), "create events"),
    "lease": (
        ("coordination.k8s.io", "leases", "update"),
        "update leases.coordination.k8s.io in namespace hopwise-system",
    ),
}


def without(rules: list[dict], right: tuple[str, str, str]) -> list[dict]:
    """The rules that grant the same but for one verb on one resource."""
    group, resource, verb = right
    kept = []
    for rule in rules:
        for g in rule["apiGroups"]:
            for r in rule["resources"]:
                verbs = [v for v in rule["verbs"] if (g, r, v) != (group, resource, verb)]
                if verbs:
                    kept.append({"apiGroups": [g], "resources": [r], "verbs": verbs})
    return kept


@pytest.fixture
def poor_account(plane):
    """poor_account(right): a kubeconfig of an account that has all of deploy/rbac but this."""
    made = []

    def make(right):
        for document in documents_of(DEPLOY / "rbac" / "scheduler.yaml"):
            item = copy.deepcopy(document)
            if item["kind"] == "Namespace":
                continue
            for place in (item["metadata"], item.get("roleRef", {}), *item.get("subjects", [])):
                if place.get("name") == "hopwise-scheduler":
                    place["name"] = "poor-scheduler"
            if "rules" in item:
                item["rules"] = without(item["rules"], right)
            plane.api.apply(item)
            made.append(item)
        return plane.kubeconfig_for_account("hopwise-system", "poor-scheduler", static=False)

    yield make
    for item in reversed(made):
        plane.api.delete(item)


@pytest.mark.parametrize(("right", "words"), RIGHTS.values(), ids=RIGHTS.keys())
def test_a_missing_right_is_named(start, poor_account, right, words):
    one = start(kubeconfig=poor_account(right), ready=False)
    said = refused(one)
    assert words in said
    assert "deploy/rbac" in said


def test_the_rights_of_deploy_are_enough(start, poor_account):
    """The same account with nothing taken away, so that the refusals above mean something."""
    start(kubeconfig=poor_account(("", "nothing", "")))


# --- a server that is not there -------------------------------------------------------------------


def test_an_unreachable_server_is_given_up_after_the_time_out(plane, start, tmp_path):
    server = f"https://127.0.0.1:{free_port()}"
    path = write_kubeconfig(tmp_path / "k", server, plane, "sesame-open")
    started = time.monotonic()
    one = start("--startup-timeout=3s", kubeconfig=path, ready=False)
    await_record(one, "api_server_not_reached")
    eventually(lambda: time.monotonic() - started > 2)
    assert one.running, "it tries for as long as it was told"
    assert cpu_seconds(one.pid) < 0.5, "it tries without haste"
    words = refused(one)
    assert 3 <= time.monotonic() - started < 13
    assert server.removeprefix("https://") in words
    assert "--startup-timeout" in words and "3s" in words


def test_a_silent_server_is_given_up_too(start, proxy):
    proxy.silence()
    started = time.monotonic()
    one = start("--startup-timeout=2s", via=proxy, ready=False)
    assert "--startup-timeout" in refused(one)
    assert time.monotonic() - started < 17
    assert proxy.accepted < 20


def test_a_server_that_comes_in_time_is_waited_for(start, proxy):
    proxy.refuse()
    one = start("--startup-timeout=30s", via=proxy, ready=False)
    await_record(one, "api_server_not_reached")
    proxy.restore()
    one.wait_ready()


def test_a_server_that_goes_away_later_never_ends_it(user, start, proxy):
    one = start("--startup-timeout=1s", via=proxy)
    proxy.refuse()
    proxy.drop_all()
    eventually(lambda: one.fetch("/readyz")[0] == 503, what="readyz turns false")
    before, tried = cpu_seconds(one.pid), time.monotonic()
    for_a_while(lambda: _alive(one), 3)
    share = (cpu_seconds(one.pid) - before) / (time.monotonic() - tried)
    assert share < 0.2, f"it is busy with {share:.0%} of a processor"
    assert one.fetch("/healthz")[0] == 200, "it is alive, there is just nothing to do"
    proxy.restore()
    one.wait_ready(60)
    user.floor(2)
    user.gang("band", 2)
    user.await_bound("band", 2)


def _alive(one):
    assert one.running, one.with_tail("ended")


# --- configuration --------------------------------------------------------------------------------

BAD_CONFIGS = {
    "not YAML": ("actions: \"enqueue\"\ntiers:\n- plugins: [\n  - name: gang\n", r"line \d"),
    "unknown action": (
        GOOD_CONFIG.replace("backfill", "backfil"),
        r'unknown action "backfil".*allocate',
    ),
    "unknown plugin": (
        GOOD_CONFIG.replace("binpack", "binpak"),
        r'tiers\[1\]\.plugins\[2\]\.name: unknown plugin "binpak".*binpack',
    ),
    "a list for a text": ("actions: [enqueue]\ntiers: []\n", "actions: must be one text"),
}


@pytest.mark.parametrize(("text", "words"), BAD_CONFIGS.values(), ids=BAD_CONFIGS.keys())
def test_a_bad_configuration_is_refused(start, tmp_path, text, words):
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(text)
    one = start(f"--scheduler-conf={path}", ready=False)
    said = refused(one, 2, "configuration_refused")
    assert said.startswith(str(path))
    assert re.search(words, said), said


def test_a_configuration_that_is_not_there_is_refused(start, tmp_path):
    path = tmp_path / "nowhere.conf"
    one = start(f"--scheduler-conf={path}", ready=False)
    assert str(path) in refused(one, 2, "configuration_refused")


def about_us(user, reason, words=""):
    """An Event on the scheduler's Lease."""
    return user.await_event(reason, words, namespace=LEASE[3])


# What is kept, and the words of the warning.
WARNINGS = {
    "unknown key": ("surprise: 1\n" + GOOD_CONFIG, "surprise: unknown key"),
    "unknown argument": (
        GOOD_CONFIG + "    arguments: {binpack.cpuu: 3}\n",
        "binpack.cpuu: unknown argument",
    ),
    "wrong type": (GOOD_CONFIG + '    arguments: {binpack.cpu: "5"}\n', 'binpack.cpu: "5"'),
    "plugin of later": (GOOD_CONFIG + "  - name: sla\n", 'plugin "sla" is not implemented yet'),
}


@pytest.mark.parametrize(("text", "words"), WARNINGS.values(), ids=WARNINGS.keys())
def test_what_has_no_effect_is_warned_of(user, start, tmp_path, text, words):
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(text)
    one = start(f"--scheduler-conf={path}")
    assert words in await_record(one, "configuration_warning")["warning"]
    assert one.metric("hopwise_config_warnings") == 1
    event = about_us(user, "ConfigurationWarning", words)
    assert event["type"] == "Warning"


@pytest.fixture
def configured(start, tmp_path):
    """A scheduler with a configuration file in a folder of its own."""
    folder = tmp_path / "conf"
    folder.mkdir()
    path = folder / "volcano-scheduler.conf"
    path.write_text(GOOD_CONFIG)
    return start(f"--scheduler-conf={path}"), path


def reloads(one, result):
    return one.metric("hopwise_config_reloads_total", result=result) or 0


def test_a_changed_configuration_is_taken_up(user, configured):
    one, path = configured
    path.write_text(GOOD_CONFIG.replace("  - name: binpack\n", ""))
    await_record(one, "configuration_loaded")
    assert reloads(one, "loaded") == 1
    about_us(user, "ConfigurationLoaded")
    user.floor(2)
    user.gang("band", 2)
    user.await_bound("band", 2)


def test_a_config_maps_way_of_changing_is_understood(configured):
    """Kubelets put a new folder beside the old one and turn a symbolic link."""
    one, path = configured
    folder = path.parent
    path.unlink()
    for number, text in enumerate([GOOD_CONFIG, GOOD_CONFIG + "  - name: drf\n"]):
        version = folder / f"..version-{number}"
        version.mkdir()
        (version / path.name).write_text(text)
        fresh = folder / "..data_tmp"
        os.symlink(version.name, fresh)
        os.replace(fresh, folder / "..data")
        if number == 0:
            os.symlink(f"..data/{path.name}", path)
    await_record(one, "configuration_loaded")
    assert reloads(one, "loaded") == 1


def test_what_else_happens_in_the_folder_changes_nothing(configured):
    one, path = configured
    before = cpu_seconds(one.pid)
    started = time.monotonic()
    while time.monotonic() - started < 3:
        os.utime(path)
        (path.parent / "neighbour").write_text(str(time.monotonic()))
        path.with_suffix(".new").write_text(GOOD_CONFIG)
        path.with_suffix(".new").replace(path)
        time.sleep(0.02)
    assert records(one, "configuration_loaded") == []
    assert reloads(one, "loaded") == reloads(one, "refused") == 0
    assert cpu_seconds(one.pid) - before < 0.3


def test_a_bad_file_keeps_the_old_configuration(user, configured):
    one, path = configured
    path.write_text(GOOD_CONFIG.replace("gang", "gong"))
    record = await_record(one, "configuration_refused")
    assert 'unknown plugin "gong"' in record["error"]
    assert reloads(one, "refused") == 1
    event = about_us(user, "ConfigurationRefused", "gong")
    assert event["type"] == "Warning"
    # It is said once, and work goes on.
    user.floor(2)
    user.gang("band", 2)
    user.await_bound("band", 2)
    assert len(records(one, "configuration_refused")) == 1
    path.write_text(GOOD_CONFIG + "  - name: drf\n")
    await_record(one, "configuration_loaded")
    assert reloads(one, "loaded") == 1


CONTROLLER_CONFIG = """
networkTopologyDiscovery:
- source: label
  enabled: true
  config:
    networkTopologyTypes:
      fabric:
      - nodeLabel: example.com/rack
"""


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        (GOOD_CONFIG, 0, ""),
        (CONTROLLER_CONFIG, 0, ""),
        (CONTROLLER_CONFIG.replace("enabled", "enable"), 1, "networkTopologyDiscovery[0].enable"),
        (CONTROLLER_CONFIG.replace("label", "roce", 1), 2, "networkTopologyDiscovery[0].source"),
        ("surprise: 1\n" + GOOD_CONFIG, 1, "surprise"),
        (GOOD_CONFIG.replace("gang", "gong"), 2, "gong"),
        ("actions: [\n", 2, "line"),
    ],
    ids=["good", "controller", "controller warned of", "controller refused", "warned of",
         "unknown plugin", "not YAML"],  # fmt: skip
)
def test_config_check_says_it_without_a_cluster(tmp_path, text, code, words):
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(text)
    done = subprocess.run([HOPWISE, "config", "check", path], capture_output=True, text=True,
                          timeout=20, check=False)  # fmt: skip
    assert done.returncode == code, done.stderr
    assert words in done.stdout + done.stderr


# --- the command line -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flags",
    [
        ("--no-such-flag",),
        ("--log-level=loud",),
        ("--log-format=xml",),
        ("--startup-timeout=soon",),
        ("--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=3s"),
        ("--kube-api-qps=-1",),
    ],
    ids=" ".join,
)
def test_wrong_use_of_flags_is_refused(start, flags):
    one = start(*flags, ready=False)
    assert one.wait(QUICKLY_S) == 2, one.log()
    assert flags[0].partition("=")[0].lstrip("-") in one.log()


@pytest.mark.parametrize("address", ["nonsense", "127.0.0.1:99999", "203.0.113.1:0"])
def test_an_address_that_cannot_be_served_is_refused(start, address):
    one = start(f"--listen-address={address}", ready=False)
    assert one.wait(QUICKLY_S) in (1, 2)
    assert address in one.log()


# --- secrets --------------------------------------------------------------------------------------


def test_secrets_appear_nowhere(user, plane, start, tmp_path):
    """Neither the scheduler's own token nor what stands in pods and Secrets."""
    token = plane.issue_token("hopwise-system", "hopwise-scheduler")
    path = write_kubeconfig(tmp_path / "k", plane.server, plane, token)
    one = start(kubeconfig=path)
    user.floor(2)
    user.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                 "stringData": {"key": "sesame-secret"}})  # fmt: skip
    loud = pod("loud", gpus=3 * GPUS, annotations={"example.com/key": "sesame-annotation"})
    loud["spec"]["containers"][0]["env"] = [{"name": "PASSWORD", "value": "sesame-env"}]
    loud["spec"]["containers"][0]["args"] = ["--password=sesame-argument"]
    user.create(loud)
    user.await_told("loud")
    texts = {each: one.fetch(each)[1] for each in ("/metrics", "/readyz", "/debug/state")}
    assert "loud" in texts["/debug/state"], "the pod itself is in the dump"
    one.stop()
    texts["log"] = one.log()
    for name, text in texts.items():
        assert "sesame" not in text, name
        assert token not in text and token.rpartition(".")[2] not in text, name


# --- idleness -------------------------------------------------------------------------------------


def test_a_scheduler_with_nothing_to_do_does_nothing(user, start):
    one = start()
    user.floor(8)
    user.gang("runs", 4)
    user.await_bound("runs", 4)
    user.gang("waits", 8)
    user.await_told("waits")
    for_a_while(lambda: _alive(one), 2)  # what is written a second late has been
    before, started = cpu_seconds(one.pid), time.monotonic()
    for_a_while(lambda: _alive(one), 4)
    share = (cpu_seconds(one.pid) - before) / (time.monotonic() - started)
    assert share <= 0.03, f"{share:.1%} of a processor"
    assert node_of(user.pods("waits")[0]) == ""
