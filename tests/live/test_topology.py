"""`hopwise controller`: HyperNodes from node labels, and the status of all HyperNodes."""

from __future__ import annotations

import itertools
import random
import time

import pytest
from hopcluster import HopwiseDaemon
from hopcluster.objects import hypernode, node
from support import (
    LONG,
    SHORT_LEASE,
    TOPOLOGY,
    await_record,
    condition_of,
    eventually,
    for_a_while,
    free_lease,
    hard,
    name_of,
    records,
    uid_of,
)

SOURCE = "volcano.sh/network-topology-source"
ZONE, RACK = "example.com/zone", "example.com/rack"
LEASES = "coordination.k8s.io/v1"


def conf(types: dict[str, list[str]] | None = None, enabled: bool = True, **more: object) -> str:
    """A volcano-controller.conf with the source `label`; without types: zones of racks."""
    lines = ["networkTopologyDiscovery:", "- source: label", f"  enabled: {str(enabled).lower()}"]
    lines += ["  config:"]
    lines += [f"    {key}: {value}" for key, value in more.items()]
    lines += ["    networkTopologyTypes:"]
    for name, labels in (types or {"fabric": [ZONE, RACK]}).items():
        lines += [f"      {name}:"]
        lines += [f"      - nodeLabel: {label}" for label in [*labels, "kubernetes.io/hostname"]]
    return "\n".join(lines) + "\n"


def add_nodes(user, racks: dict[str, list[str]]) -> None:
    """Nodes by "zone/rack"; a node is labelled with as much of it as there is."""
    for place, names in racks.items():
        zone, _, rack = place.partition("/")
        labels = {ZONE: zone} | ({RACK: rack} if rack else {}) if zone else {}
        user.create_all(node(name, labels, ready=True) for name in names)


def relabel(user, name: str, **labels: str | None) -> None:
    keys = {"zone": ZONE, "rack": RACK}
    change = {"metadata": {"labels": {keys[key]: value for key, value in labels.items()}}}
    user.patch("v1", "Node", name, change)


def hypernodes(user) -> list[dict]:
    return user.plane.api.list(TOPOLOGY, "HyperNode")


def members_of(item: dict) -> list[str]:
    return sorted(m["selector"]["exactMatch"]["name"] for m in item["spec"].get("members", []))


def tree(user) -> dict[str, list[str]]:
    """"z1", "z1/r1": nodes or racks of each domain that the labels told, by their values."""
    found = {name_of(item): item for item in hypernodes(user) if SOURCE in labels_of(item)}
    parent = {m: item for item in found.values() for m in members_of(item)}

    def value(item: dict) -> str:
        own = labels_of(item).get(RACK) or labels_of(item).get(ZONE) or "?"
        above = parent.get(name_of(item))
        return f"{value(above)}/{own}" if above else own

    return {
        value(item): sorted(value(found[m]) if m in found else m for m in members_of(item))
        for item in found.values()
    }


def labels_of(item: dict) -> dict[str, str]:
    return item["metadata"].get("labels") or {}


def await_tree(user, wanted: dict[str, list[str]], within: float = 20.0) -> None:
    def right() -> bool:
        found = tree(user)
        assert found == wanted, found
        return True

    eventually(right, within, "the tree")


def versions(user) -> dict[str, str]:
    return {name_of(item): item["metadata"]["resourceVersion"] for item in hypernodes(user)}


def ready_of(user, name: str) -> tuple[str, str]:
    condition = condition_of(user.plane.api.get(TOPOLOGY, "HyperNode", name), "Ready") or {}
    return condition.get("status", ""), condition.get("reason", "")


def await_settled(user) -> None:
    """Every HyperNode has a status, and nothing is written any more."""
    eventually(lambda: all(condition_of(i, "Ready") for i in hypernodes(user)), what="statuses")
    before = versions(user)
    time.sleep(0.5)
    assert versions(user) == before


def await_lease_event(user, reason: str, words: str = "") -> dict:
    return user.await_event(reason, words, namespace="hopwise-system")


#        z1          z2
#      r1   r2       r1
#     a b    c       d
FLOOR = {"z1/r1": ["a", "b"], "z1/r2": ["c"], "z2/r1": ["d"]}
TREE = {
    "z1": ["z1/r1", "z1/r2"],
    "z2": ["z2/r1"],
    "z1/r1": ["a", "b"],
    "z1/r2": ["c"],
    "z2/r1": ["d"],
}


# --- what labels tell -----------------------------------------------------------------------------


def test_labels_become_hypernodes(user, control):
    add_nodes(user, FLOOR)
    control(conf())
    await_tree(user, TREE)
    await_settled(user)
    for item in hypernodes(user):
        labels = labels_of(item)
        tier = item["spec"]["tier"]
        assert name_of(item).startswith(f"hypernode-fabric-tier{tier}-")
        assert labels[SOURCE] == "label"
        assert item["spec"]["tierName"] == (RACK if tier == 1 else ZONE)
        assert item["status"]["nodeCount"] == len(members_of(item))
        assert condition_of(item, "Ready")["status"] == "True"
        kinds = {m["type"] for m in item["spec"]["members"]}
        assert kinds == {"Node"} if tier == 1 else {"HyperNode"}


def test_columns_are_as_kubectl_users_know_them(user, control):
    add_nodes(user, {"z1/r1": ["a", "b"]})
    control(conf())
    await_tree(user, {"z1": ["z1/r1"], "z1/r1": ["a", "b"]})
    await_settled(user)
    lines = user.plane.kubectl("get", "hypernodes", "-o", "wide").stdout.splitlines()
    assert lines[0].split() == ["NAME", "TIER", "TIERNAME", "NODECOUNT", "AGE"]
    rack = next(line.split() for line in lines[1:] if RACK in line)
    assert rack[1:4] == ["1", RACK, "2"]


def test_names_are_the_same_on_a_cluster_that_was_wiped(user, control):
    add_nodes(user, FLOOR)
    one = control(conf())
    await_tree(user, TREE)
    names = set(versions(user))
    one.stop()
    for item in hypernodes(user):
        user.delete(TOPOLOGY, "HyperNode", name_of(item))
    one.start()
    await_tree(user, TREE)
    assert set(versions(user)) == names


def test_a_node_that_moves_touches_its_two_racks(user, control):
    add_nodes(user, FLOOR)
    control(conf())
    await_tree(user, TREE)
    await_settled(user)
    before = versions(user)
    started = time.monotonic()
    relabel(user, "b", rack="r2")
    await_tree(user, {**TREE, "z1/r1": ["a"], "z1/r2": ["b", "c"]})
    took = time.monotonic() - started
    await_settled(user)
    after = versions(user)
    assert sum(before[name] != after[name] for name in before) == 2
    assert took < 2.0  # within 100 ms on an idle machine: bench/live.py


def test_a_rack_comes_and_goes_with_its_nodes(user, control):
    add_nodes(user, FLOOR)
    control(conf())
    await_tree(user, TREE)
    add_nodes(user, {"z2/r2": ["e"]})
    await_tree(user, {**TREE, "z2": ["z2/r1", "z2/r2"], "z2/r2": ["e"]})
    user.delete("v1", "Node", "e")
    await_tree(user, TREE)


def test_a_node_that_loses_its_label_leaves_at_once(user, control):
    add_nodes(user, FLOOR)
    control(conf())
    await_tree(user, TREE)
    relabel(user, "a", rack=None)
    await_tree(user, {**TREE, "z1/r1": ["b"]}, within=5.0)
    relabel(user, "a", rack="r1")
    await_tree(user, TREE, within=5.0)


def test_nodes_that_are_not_labelled_are_in_no_domain(user, control):
    add_nodes(user, {**FLOOR, "": ["loose"]})
    control(conf())
    await_tree(user, TREE)


def test_types_are_fabrics_of_their_own(user, control):
    """NVLink domains that cross the racks do not clash with them."""
    clique = "example.com/clique"
    for name, rack, link in (("a", "r1", "q1"), ("b", "r1", "q2"), ("c", "r2", "q1")):
        user.create_all([node(name, {RACK: rack, clique: link}, ready=True)])
    control(conf({"fabric": [RACK], "nvlink": [clique]}))
    eventually(lambda: len(hypernodes(user)) == 4, what="two racks and two cliques")
    await_settled(user)
    for item in hypernodes(user):
        assert condition_of(item, "Ready")["status"] == "True", condition_of(item, "Ready")
        fabric = labels_of(item).get("hopwise.dev/fabric")
        assert fabric == ("nvlink" if clique in labels_of(item) else None)


def test_the_scheduler_places_on_what_labels_tell(user, control, start):
    pairs = [[f"node{2 * rack}", f"node{2 * rack + 1}"] for rack in range(4)]
    floor = {f"z{rack // 2}/r{rack}": pairs[rack] for rack in range(4)}
    for place, names in floor.items():
        zone, _, rack = place.partition("/")
        for name in names:
            user.add_node(name, {ZONE: zone, RACK: rack})
    control(conf())
    start()
    eventually(lambda: len(hypernodes(user)) == 6, what="four racks in two zones")
    user.gang("pair", 2, topology=hard(1))
    user.gang("four", 4, topology=hard(2))
    pair, four = user.await_bound("pair", 2), user.await_bound("four", 4)
    assert sorted(pair) in pairs
    halves = [[f"node{i}" for i in range(4)], [f"node{i}" for i in range(4, 8)]]
    assert sorted(four) in halves


# --- whose HyperNodes -----------------------------------------------------------------------------


def test_what_a_former_discovery_left_is_adopted(user, control):
    add_nodes(user, {"z1/r1": ["a", "b"]})
    old = hypernode("hypernode-fabric-tier1-x7k2p", 1, RACK, nodes=["a"])
    old["metadata"]["labels"] = {SOURCE: "label", RACK: "r1"}
    uid = uid_of(user.create(old))
    control(conf())
    await_tree(user, {"z1": ["z1/r1"], "z1/r1": ["a", "b"]})
    kept = user.plane.api.get(TOPOLOGY, "HyperNode", "hypernode-fabric-tier1-x7k2p")
    assert uid_of(kept) == uid


def test_what_a_person_made_is_never_touched(user, control):
    add_nodes(user, {**FLOOR, "": ["loose"]})
    user.create(hypernode("mine", 1, nodes=["loose"]))
    control(conf())
    await_tree(user, TREE)
    await_settled(user)
    mine = user.plane.api.get(TOPOLOGY, "HyperNode", "mine")
    assert mine["metadata"]["generation"] == 1
    assert labels_of(mine) == {}
    assert mine["status"]["nodeCount"] == 1


def test_what_somebody_bends_is_put_right(user, control):
    add_nodes(user, FLOOR)
    control(conf())
    await_tree(user, TREE)
    await_settled(user)
    rack = next(name_of(i) for i in hypernodes(user) if labels_of(i).get(RACK) == "r2")
    user.delete(TOPOLOGY, "HyperNode", rack)
    await_tree(user, TREE)
    spec = hypernode(rack, 1, "other", nodes=["a"])["spec"]
    user.patch(TOPOLOGY, "HyperNode", rack, {"spec": spec})
    await_tree(user, TREE)


def test_a_source_that_is_switched_off_keeps_its_hypernodes(user, control):
    add_nodes(user, FLOOR)
    one = control(conf())
    await_tree(user, TREE)
    control.conf.write_text(conf(enabled=False), encoding="utf-8")
    await_record(one, "configuration_loaded", at_least=2)
    relabel(user, "b", rack="r2")
    for_a_while(lambda: None if tree(user) == TREE else pytest.fail(str(tree(user))))


# --- a source that went blind ---------------------------------------------------------------------


def unlabel_all(user) -> None:
    for name in ("a", "b", "c", "d"):
        relabel(user, name, zone=None, rack=None)


def test_a_source_that_finds_nothing_is_held_until_it_is_confirmed(user, control):
    add_nodes(user, FLOOR)
    one = control(conf())
    await_tree(user, TREE)
    unlabel_all(user)
    event = await_lease_event(user, "DiscoveryHeld", "delete 5 of 5 HyperNodes")
    assert one.metric("hopwise_discovery_held", source="label") == 1
    assert len(hypernodes(user)) == 5
    token = event["message"].rpartition("confirm: ")[2].strip("`")
    text = conf().replace("  config:", f"  confirm: {token}\n  config:")
    control.conf.write_text(text, encoding="utf-8")
    await_tree(user, {})
    assert one.metric("hopwise_discovery_held", source="label") == 0


def test_a_source_that_says_so_long_enough_is_believed(user, control):
    add_nodes(user, FLOOR)
    # Long enough for the Event to be seen while the hold lasts, on a slow machine too.
    one = control(conf().replace("  config:", "  believedAfter: 10s\n  config:"))
    await_tree(user, TREE)
    unlabel_all(user)
    eventually(lambda: one.metric("hopwise_discovery_held", source="label") == 1)
    assert len(hypernodes(user)) == 5
    await_lease_event(user, "DiscoveryHeld")
    await_tree(user, {})


def test_labels_that_come_back_end_the_hold(user, control):
    add_nodes(user, FLOOR)
    one = control(conf())
    await_tree(user, TREE)
    unlabel_all(user)
    await_lease_event(user, "DiscoveryHeld")
    for place, names in FLOOR.items():
        zone, _, rack = place.partition("/")
        for name in names:
            relabel(user, name, zone=zone, rack=rack)
    eventually(lambda: one.metric("hopwise_discovery_held", source="label") == 0)
    await_tree(user, TREE)


# --- status ---------------------------------------------------------------------------------------


def test_each_fault_is_the_reason_of_its_condition(user, control):
    """loop1 and loop2 hold each other; under stands above first, but at a lower tier."""
    user.create_all(node(name, ready=True) for name in ("a", "b", "c"))
    made = [
        hypernode("leaf", 1, nodes=["a"]),
        hypernode("first", 2, children=["leaf"]),
        hypernode("loop1", 2, children=["loop2"]),
        hypernode("loop2", 2, children=["loop1"]),
        hypernode("under", 1, children=["first"]),
        hypernode("lacking", 2, children=["nowhere"]),
        hypernode("over1", 1, nodes=["b"]),
        hypernode("void", 1, nodes=["gone"]),
    ]
    for each in made:
        user.create(each)
    time.sleep(1.1)  # the younger of two claims loses, and ages count whole seconds
    user.create(hypernode("second", 3, children=["leaf"]))
    user.create(hypernode("over2", 1, nodes=["b", "c"]))
    pattern = hypernode("pattern", 1)
    pattern["spec"]["members"] = [{"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}]
    user.create(pattern)
    control(None)
    wanted = {
        "lacking": ("False", "Empty"),
        "leaf": ("True", "Ready"),
        "first": ("True", "Ready"),
        "loop1": ("False", "Cycle"),
        "loop2": ("False", "Cycle"),
        "under": ("False", "TierOrder"),
        "over1": ("True", "Ready"),
        "over2": ("False", "Overlap"),
        "second": ("False", "TwoParents"),
        "pattern": ("False", "BadPattern"),
        "void": ("False", "Empty"),
    }

    def told() -> bool:
        found = {name: ready_of(user, name) for name in wanted}
        assert found == wanted
        return True

    eventually(told, what="conditions")
    assert "nowhere" in condition_of(
        user.plane.api.get(TOPOLOGY, "HyperNode", "lacking"), "Ready")["message"]  # fmt: skip
    about = user.plane.api.get(TOPOLOGY, "HyperNode", "loop1")
    user.await_event("Cycle", about=about, namespace="default")


def test_a_fault_that_is_mended_is_ready_again(user, control):
    user.create_all([node("a", ready=True)])
    user.create(hypernode("void", 1, nodes=["late"]))
    control(None)
    eventually(lambda: ready_of(user, "void") == ("False", "Empty"))
    user.create_all([node("late", ready=True)])
    eventually(lambda: ready_of(user, "void") == ("True", "Ready"))
    void = user.plane.api.get(TOPOLOGY, "HyperNode", "void")
    assert void["status"]["nodeCount"] == 1


# --- configuration --------------------------------------------------------------------------------


def test_another_content_is_another_configuration(user, control):
    add_nodes(user, FLOOR)
    one = control(conf({"racks": [RACK]}))
    await_tree(user, {"r1": ["a", "b", "d"], "r2": ["c"]})
    beside = control.conf.with_name("beside")
    beside.write_text("x", encoding="utf-8")
    time.sleep(1.5)
    assert len(records(one, "configuration_loaded")) == 1
    control.conf.write_text(conf({"racks": [RACK], "zones": [ZONE]}), encoding="utf-8")
    await_tree(user, {"r1": ["a", "b", "d"], "r2": ["c"], "z1": ["a", "b", "c"], "z2": ["d"]})


def test_a_configuration_that_would_replace_all_is_held_too(user, control):
    add_nodes(user, FLOOR)
    control(conf())
    await_tree(user, TREE)
    wrong = conf({"fabric": ["example.com/zoen", "example.com/rakc"]})
    control.conf.write_text(wrong, encoding="utf-8")
    await_lease_event(user, "DiscoveryHeld", "delete 5 of 5 HyperNodes")
    assert tree(user) == TREE


def test_a_bad_configuration_keeps_the_one_before(user, control):
    add_nodes(user, FLOOR)
    one = control(conf())
    await_tree(user, TREE)
    control.conf.write_text("networkTopologyDiscovery:\n- source: nobody\n  enabled: true\n")
    record = await_record(one, "configuration_refused")
    assert "networkTopologyDiscovery[0].source" in record["error"]
    await_lease_event(user, "ConfigurationRefused", "the one before is kept")
    assert one.metric("hopwise_config_reloads_total", result="refused") == 1
    relabel(user, "b", rack="r2")
    await_tree(user, {**TREE, "z1/r1": ["a"], "z1/r2": ["b", "c"]})


def test_a_bad_configuration_at_the_start_is_refused(user, control):
    one = control("networkTopologyDiscovery: 7\n", ready=False)
    assert one.wait(20) == 2
    assert "networkTopologyDiscovery" in records(one, "configuration_refused")[0]["error"]


def test_the_configuration_may_be_a_configmap(user, control):
    add_nodes(user, FLOOR)
    user.namespace, own = "hopwise-system", user.namespace
    name = "volcano-controller-configmap"
    try:
        one = control(None, f"--controller-configmap=hopwise-system/{name}")
        await_record(one, "configuration_refused")
        data = {"volcano-controller.conf": conf({"zones": [ZONE]})}
        user.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
                     "data": data})  # fmt: skip
        await_tree(user, {"z1": ["a", "b", "c"], "z2": ["d"]})
        # A label or another key of the map is no change.
        user.patch("v1", "ConfigMap", name, {"data": {"other": "x"}})
        time.sleep(0.5)
        assert len(records(one, "configuration_loaded")) == 1
        both = conf({"racks": [RACK], "zones": [ZONE]})
        user.patch("v1", "ConfigMap", name, {"data": {"volcano-controller.conf": both}})
        eventually(lambda: len(hypernodes(user)) == 4, what="racks, too")
    finally:
        user.delete("v1", "ConfigMap", name)
        user.namespace = own


# --- processes ------------------------------------------------------------------------------------


def test_a_settled_cluster_is_left_in_peace(user, control, proxy):
    """Of the controller nothing is heard but renewals of its Lease."""
    add_nodes(user, FLOOR)
    control(conf(), via=proxy)
    await_tree(user, TREE)
    await_settled(user)
    time.sleep(1.0)  # Events
    before = len(proxy.exchanges())
    time.sleep(5.0)
    heard = [e for e in proxy.exchanges()[before:] if "/leases/" not in e.path]
    assert heard == [], [f"{e.method} {e.path}" for e in heard]


def test_a_standby_takes_over(user, control):
    add_nodes(user, FLOOR)
    one = control(conf(), *SHORT_LEASE)
    await_tree(user, TREE)
    other = control(conf(), *SHORT_LEASE)
    before = versions(user)
    one.kill()
    relabel(user, "b", rack="r2")
    await_tree(user, {**TREE, "z1/r1": ["a"], "z1/r2": ["b", "c"]})
    assert set(versions(user)) == set(before)
    assert records(other, "leading")


def test_killed_at_any_moment_it_leaves_no_double_and_no_orphan(user, plane, control):
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    add_nodes(user, {f"z{i % 3}/r{i % 7}": [f"n{i}"] for i in range(21)})
    one = control(conf(), *SHORT_LEASE)
    for _ in range(30 if LONG else 8):
        time.sleep(chance.uniform(0.0, 0.5))
        one.kill()
        free_lease(plane, "controller")
        for name in chance.sample([f"n{i}" for i in range(21)], 4):
            relabel(user, name, rack=f"r{chance.randrange(7)}")
        one.start()
    nodes = user.plane.api.list("v1", "Node")
    wanted: dict[str, set[str]] = {}
    for each in nodes:
        zone, rack = labels_of(each)[ZONE], labels_of(each)[RACK]
        wanted.setdefault(f"{zone}/{rack}", set()).add(name_of(each))
        wanted.setdefault(zone, set()).add(f"{zone}/{rack}")
    await_tree(user, {place: sorted(names) for place, names in wanted.items()}, within=30.0)
    claims = list(itertools.chain.from_iterable(members_of(i) for i in hypernodes(user)))
    assert len(claims) == len(set(claims)), "a node or a rack in two domains"


def test_rights_that_lack_are_named(user, plane, control):
    role = plane.api.get("rbac.authorization.k8s.io/v1", "ClusterRole", "hopwise-controller")
    rules = [r for r in role["rules"] if "hypernodes" not in r["resources"]]
    plane.api.patch(role, {"rules": rules})
    try:
        one: HopwiseDaemon = control(None, ready=False)
        assert one.wait(20) == 1
        said = records(one, "cannot_start")[0]["error"]
        assert "create hypernodes.topology.volcano.sh" in said
        assert "deploy/rbac/controller.yaml" in said
    finally:
        plane.api.patch(role, {"rules": role["rules"]})
