"""`hopwise controller` with the source `ufm`: a server that speaks TLS, fails and lies."""

from __future__ import annotations

import base64

import pytest
from hopcluster.objects import hypernode, node
from support import TOPOLOGY, condition_of, eventually, for_a_while, name_of
from ufm_server import PASSWORD, USERNAME, UfmServer

SOURCE = "volcano.sh/network-topology-source"
SECRET = ("hopwise-system", "ufm-reader")


@pytest.fixture
def ufm(tmp_path):
    """Two units of two rails each, under one spine: a, b in the first, c, d in the second."""
    server = UfmServer(tmp_path / "ufm")
    for unit, machines in (("u1", "ab"), ("u2", "cd")):
        for rail in ("r1", "r2"):
            for machine in machines:
                server.cables.plug(machine, f"{unit}{rail}")
            server.cables.link(f"{unit}{rail}", "spine")
    yield server
    server.close()


@pytest.fixture
def secret(user):
    def write(password: str = PASSWORD) -> None:
        encoded = {"username": USERNAME, "password": password}
        data = {key: base64.b64encode(text.encode()).decode() for key, text in encoded.items()}
        body = {"apiVersion": "v1", "kind": "Secret",
                "metadata": {"namespace": SECRET[0], "name": SECRET[1]}, "data": data}  # fmt: skip
        user.plane.api.apply(body)

    write()
    yield write
    meta = {"namespace": SECRET[0], "name": SECRET[1]}
    user.plane.api.delete({"apiVersion": "v1", "kind": "Secret", "metadata": meta})


def conf(server: UfmServer, trust: str | None = None, interval: str = "1s") -> str:
    trust = f"caFile: {server.ca_file}" if trust is None else trust
    return f"""
networkTopologyDiscovery:
- source: ufm
  enabled: true
  interval: {interval}
  credentials:
    secretRef:
      namespace: {SECRET[0]}
      name: {SECRET[1]}
  config:
    endpoint: {server.endpoint}
    {trust}
"""


def add_nodes(user, names: str = "abcd") -> None:
    user.create_all(node(name, ready=True) for name in names)


def domains(user) -> list[tuple[int, str]]:
    """(1, "ab"), (2, "2 domains") of each HyperNode that UFM told of."""
    found = []
    for item in user.plane.api.list(TOPOLOGY, "HyperNode"):
        if (item["metadata"].get("labels") or {}).get(SOURCE) == "ufm":
            names = sorted(m["selector"]["exactMatch"]["name"] for m in item["spec"]["members"])
            below = item["spec"]["members"][0]["type"] == "HyperNode"
            found.append((item["spec"]["tier"],
                          f"{len(names)} domains" if below else "".join(names)))  # fmt: skip
    return sorted(found)


FABRIC = [(1, "ab"), (1, "cd"), (2, "2 domains")]


def await_domains(user, wanted: list[tuple[int, str]]) -> None:
    def right() -> bool:
        found = domains(user)
        assert found == wanted, found
        return True

    eventually(right, what="domains")


def top(user) -> dict:
    items = user.plane.api.list(TOPOLOGY, "HyperNode")
    return max(items, key=lambda item: item["spec"]["tier"])


def test_rails_become_units_and_spines_tiers(user, ufm, secret, control):
    add_nodes(user)
    control(conf(ufm))
    await_domains(user, FABRIC)
    eventually(lambda: condition_of(top(user), "Ready"), what="status")
    assert condition_of(top(user), "Discovered") is None, "nothing failed yet"


def test_a_cable_that_moves_is_seen_at_the_next_look(user, ufm, secret, control):
    add_nodes(user, "abcde")
    control(conf(ufm))
    await_domains(user, FABRIC)
    names = {name_of(i) for i in user.plane.api.list(TOPOLOGY, "HyperNode")}
    for rail in ("r1", "r2"):
        ufm.cables.plug("e", f"u2{rail}")
    await_domains(user, [(1, "ab"), (1, "cde"), (2, "2 domains")])
    assert {name_of(i) for i in user.plane.api.list(TOPOLOGY, "HyperNode")} == names


def test_a_node_that_joins_the_cluster_needs_no_look(user, ufm, secret, control):
    add_nodes(user, "abc")
    control(conf(ufm, interval="1h"))
    await_domains(user, [(1, "ab"), (1, "c"), (2, "2 domains")])
    asked = ufm.asked
    add_nodes(user, "d")
    await_domains(user, FABRIC)
    assert ufm.asked == asked


@pytest.mark.parametrize(
    ("mode", "reason", "words"),
    [
        ("unauthorized", "Unauthorized", "status 401"),
        ("error", "Refused", "status 500"),
        ("html", "BadAnswer", "no list of ports"),
        ("half", "BadAnswer", "cut off"),
        ("cut", "Unreachable", "127.0.0.1"),
        ("empty", "BadAnswer", "none of its 0 ports"),
    ],
)
def test_what_fails_is_told_and_changes_nothing(user, ufm, secret, control, mode, reason, words):
    add_nodes(user)
    one = control(conf(ufm))
    await_domains(user, FABRIC)
    ufm.mode = mode

    def told() -> bool:
        condition = condition_of(top(user), "Discovered") or {}
        assert condition.get("reason") == reason, condition
        assert condition["status"] == "False"
        assert words in condition["message"]
        return True

    eventually(told, what="condition Discovered")
    user.await_event("DiscoveryFailed", words, namespace="hopwise-system")
    assert one.metric("hopwise_discovery_failing", source="ufm") == 1
    assert domains(user) == FABRIC
    ufm.mode = "ok"
    eventually(lambda: condition_of(top(user), "Discovered")["status"] == "True")
    assert one.metric("hopwise_discovery_failing", source="ufm") == 0
    assert PASSWORD not in one.log()


def test_one_who_does_not_answer_holds_up_nothing(user, ufm, secret, control):
    """While UFM is waited for, other HyperNodes get their status."""
    add_nodes(user)
    ufm.mode = "hang"
    one = control(conf(ufm))
    eventually(lambda: ufm.asked > 0)
    user.create(hypernode("mine", 1, nodes=["a"]))
    eventually(lambda: condition_of(user.plane.api.get(TOPOLOGY, "HyperNode", "mine"), "Ready"))
    assert one.stop() == 0


def test_a_certificate_of_nobody_we_know_is_not_trusted(user, ufm, secret, control):
    add_nodes(user)
    control(conf(ufm, trust=""))
    user.await_event("DiscoveryFailed", "Untrusted", namespace="hopwise-system")
    assert domains(user) == []


def test_a_certificate_may_be_taken_unseen(user, ufm, secret, control):
    add_nodes(user)
    control(conf(ufm, trust="insecureSkipVerify: true"))
    await_domains(user, FABRIC)


def test_a_password_that_is_exchanged_is_found(user, ufm, secret, control):
    add_nodes(user)
    secret("wrong")
    control(conf(ufm))
    user.await_event("DiscoveryFailed", "status 401", namespace="hopwise-system")
    secret()
    await_domains(user, FABRIC)


def test_a_secret_that_is_not_there_is_told(user, ufm, control):
    add_nodes(user)
    control(conf(ufm))
    user.await_event("DiscoveryFailed", "hopwise-system/ufm-reader", namespace="hopwise-system")


def test_a_fabric_that_loses_most_of_its_nodes_is_not_believed(user, ufm, secret, control):
    add_nodes(user)
    control(conf(ufm))
    await_domains(user, FABRIC)
    left = [p for p in ufm.cables.ports if "a" in (p["system_name"], p["peer_node_name"])]
    ufm.cables.ports = left
    user.await_event("DiscoveryFailed", "3 of 4 nodes", namespace="hopwise-system")
    for_a_while(lambda: None if domains(user) == FABRIC else pytest.fail(str(domains(user))))
