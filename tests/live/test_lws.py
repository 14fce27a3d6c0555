"""LeaderWorkerSets with their own controller, sigs.k8s.io/lws, beside Hopwise's: groups that are
gangs by its own doing, and sets that share a PodGroup made by hand.

Its CRD and its webhooks are those of the module that it is built from; they are registered at an
address of this machine, since nothing here resolves a Service."""

from __future__ import annotations

import base64
import itertools
import os

import pytest
import yaml
from fault_proxy import make_certificates
from hopcluster import binaries
from hopcluster.api import ApiError
from hopcluster.objects import pod
from hopcluster.ports import free_port
from hopcluster.process import Process
from support import (
    GPUS,
    GROUP,
    VOLCANO,
    annotation_of,
    condition_of,
    eventually,
    for_a_while,
    hard,
    index_of,
    name_of,
    node_of,
    pod_group,
    queue,
    uid_of,
)

LWS = "leaderworkerset.x-k8s.io/v1"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition",
       "leaderworkersets.leaderworkerset.x-k8s.io")  # fmt: skip
PREFIX = "leaderworkerset.sigs.k8s.io/"
IN_A_LEAF = {"volcano.sh/network-topology-mode": "hard",
             "volcano.sh/network-topology-highest-tier": "1"}  # fmt: skip
# Their controller takes the pods of a group away one by one; so long it may be half there.
HALF_S = 5.0
_numbers = itertools.count(1)


# --- their controller -----------------------------------------------------------------------------


def reference(api_version: str, kind: str, name: str) -> dict:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}


@pytest.fixture(scope="module")
def sources():
    """The folder of the module's sources; the controller is built when this is asked for."""
    binaries.build(programs=(binaries.LWS,))
    return binaries.sources_of(binaries.LWS, "sigs.k8s.io/lws")


@pytest.fixture(scope="module")
def served(plane, sources):
    """The kind LeaderWorkerSet, while the tests of this file run."""
    (path,) = (sources / "config" / "crd" / "bases").glob("*.yaml")
    plane.api.apply_file(path)
    yield
    plane.api.delete(reference(*CRD))


class Manager:
    """Their controller, and the webhooks without which it does nothing right."""

    def __init__(self, plane, sources, folder, gangs: bool) -> None:
        self.plane = plane
        self._webhook_port, self._health_port = free_port(), free_port()
        ca, certificate, key = make_certificates(folder / "pair")
        certificate.rename(folder / "pair" / "tls.crt")
        key.rename(folder / "pair" / "tls.key")
        config = folder / "lws.yaml"
        config.write_text(yaml.safe_dump(self._config(folder / "pair", gangs)), encoding="utf-8")
        self.process = Process(
            f"lws-{next(_numbers)}",
            [binaries.path_of("lws"), f"--config={config}", f"--kubeconfig={plane.kubeconfig}"],
            plane.folder,
            dict(os.environ),
        )
        bundle = base64.b64encode(ca.read_bytes()).decode()
        self._hooks = list(self._registrations(sources, bundle))

    def _config(self, certificates, gangs: bool) -> dict:
        config = {
            "apiVersion": "config.lws.x-k8s.io/v1alpha1",
            "kind": "Configuration",
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "metrics": {"bindAddress": "0"},
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self._health_port}"},
            "webhook": {
                "host": "127.0.0.1",
                "port": self._webhook_port,
                "certDir": str(certificates),
            },
        }
        if gangs:
            config["gangSchedulingManagement"] = {"schedulerProvider": "volcano"}
        return config

    def _registrations(self, sources, bundle: str):
        """As the module's own installation has them: of pods, only those of its sets."""
        text = (sources / "config" / "webhook" / "manifests.yaml").read_text(encoding="utf-8")
        own = {"matchExpressions": [{"key": f"{PREFIX}name", "operator": "Exists"}]}
        for item in yaml.safe_load_all(text):
            item["metadata"]["name"] = f"lws-{item['metadata']['name']}"
            for webhook in item["webhooks"]:
                path = webhook["clientConfig"].pop("service")["path"]
                url = f"https://127.0.0.1:{self._webhook_port}{path}"
                webhook["clientConfig"] = {"url": url, "caBundle": bundle}
                if webhook["rules"][0]["resources"] == ["pods"]:
                    webhook["objectSelector"] = own
            yield item

    def start(self) -> None:
        self.process.start()
        for item in self._hooks:
            self.plane.api.create(item)
        self.process.wait_until(self._serves, "answering", 30.0)

    def _serves(self) -> bool:
        """Asked about a set, it fills in what the CRD leaves open."""
        probe = reference(LWS, "LeaderWorkerSet", "probe")
        template = {"spec": {"containers": [{"name": "main", "image": "x"}]}}
        probe["spec"] = {"leaderWorkerTemplate": {"workerTemplate": template}}
        path = f"/apis/{LWS}/namespaces/default/leaderworkersets?dryRun=All"
        try:
            made = self.plane.api.request("POST", path, probe)
        except ApiError:
            return False
        return made["spec"].get("networkConfig", {}).get("subdomainPolicy") == "Shared"

    def stop(self) -> None:
        for item in self._hooks:
            self.plane.api.delete(item)
        self.process.kill()


@pytest.fixture(scope="module")
def manage(plane, sources, served, tmp_path_factory):
    """manage(gangs=…): their controller so configured runs from then on, and no other."""
    running: dict[bool, Manager] = {}

    def run(gangs: bool) -> Manager:
        if gangs not in running:
            end()
            running[gangs] = Manager(plane, sources, tmp_path_factory.mktemp("lws"), gangs)
            running[gangs].start()
        return running[gangs]

    def end() -> None:
        while running:
            running.popitem()[1].stop()

    yield run
    end()


# --- sets -----------------------------------------------------------------------------------------


class Sets:
    """Makes LeaderWorkerSets in a namespace and looks at what their controller makes of them."""

    def __init__(self, user) -> None:
        self.user = user
        self.api = user.plane.api

    def make(self, name: str, replicas: int, size: int, *, marks: dict | None = None,
             annotations: dict | None = None, gpus: int = GPUS, scheduler: str = "volcano",
             **spec) -> None:  # fmt: skip
        """Pods of the template carry `marks`; the set itself, `annotations`."""
        inner = pod("x", scheduler=scheduler, gpus=gpus)["spec"]
        template = {"metadata": {"annotations": marks or {}}, "spec": inner}
        made = reference(LWS, "LeaderWorkerSet", name)
        made["metadata"] |= {"namespace": self.user.namespace, "annotations": annotations or {}}
        group = {"size": size, "workerTemplate": template}
        made["spec"] = {"replicas": replicas, "leaderWorkerTemplate": group, **spec}
        self.api.create(made)

    def restart(self, pod_name: str) -> None:
        """What a kubelet reports whose container came back: its controller ends the whole group."""
        container = {"name": "main", "image": "x", "imageID": "", "ready": True,
                     "restartCount": 1}  # fmt: skip
        status = {"status": {"containerStatuses": [container]}}
        self.user.patch("v1", "Pod", pod_name, status, "status")

    def change(self, name: str, change: dict) -> None:
        self.api.patch(self._named(name), change)

    def scale(self, name: str, replicas: int) -> None:
        self.change(name, {"spec": {"replicas": replicas}})

    def delete(self, name: str) -> None:
        self.api.delete(self._named(name))

    def _named(self, name: str) -> dict:
        found = reference(LWS, "LeaderWorkerSet", name)
        found["metadata"]["namespace"] = self.user.namespace
        return found

    def groups(self) -> dict[str, list[dict]]:
        """Pods by the number of their group, the leader first."""
        found: dict[str, list[dict]] = {}
        for one in self.user.list("v1", "Pod", label_selector=f"{PREFIX}name"):
            found.setdefault(one["metadata"]["labels"][f"{PREFIX}group-index"], []).append(one)
        for members in found.values():
            members.sort(key=lambda p: int(p["metadata"]["labels"][f"{PREFIX}worker-index"]))
        return found

    def pod_groups(self) -> list[dict]:
        return self.user.list(VOLCANO, "PodGroup")

    def expect_whole(self, witness, size: int) -> None:
        """From now on the groups that there are run whole or not at all."""
        for group in self.pod_groups():
            witness.expect(f"{self.user.namespace}/{name_of(group)}", size)

    def await_running(self, replicas: int, size: int) -> dict[str, list[dict]]:
        """So many groups exist, each whole and with a node for every pod."""

        def whole() -> bool:
            found = self.groups()
            have = {number: sum(1 for p in members if node_of(p))
                    for number, members in found.items()}  # fmt: skip
            assert have == {str(i): size for i in range(replicas)}, f"{have}: {self.user.why('')}"
            assert all(len(members) == size for members in found.values())
            return True

        eventually(whole, what=f"{replicas} groups of {size} run")
        return self.groups()

    def await_settled(self, replicas: int, size: int) -> dict[str, list[dict]]:
        """Every group runs, and has the one PodGroup that its present leader owns."""
        self.await_running(replicas, size)

        def one_each() -> bool:
            found = self.groups()
            leaders = sorted(uid_of(members[0]) for members in found.values())
            owners = sorted(g["metadata"]["ownerReferences"][0]["uid"] for g in self.pod_groups())
            assert owners == leaders, [name_of(g) for g in self.pod_groups()]
            return True

        eventually(one_each, what="one PodGroup for each group")
        return self.groups()


@pytest.fixture
def sets(user, scheduler, workloads, manage):
    made = Sets(user)
    yield made
    # What owns the pods goes first, or they come again.
    for item in made.api.list(LWS, "LeaderWorkerSet", user.namespace):
        made.delete(name_of(item))


@pytest.fixture
def gangs(sets, manage):
    """Sets whose groups their controller makes gangs of."""
    manage(gangs=True)
    return sets


@pytest.fixture
def plain(sets, manage):
    """Sets whose groups their controller leaves as they are."""
    manage(gangs=False)
    return sets


def leaves(members: list[dict]) -> set[int]:
    """Leaves of two nodes each."""
    return {index_of(node_of(p)) // 2 for p in members}


# --- a PodGroup made by hand ----------------------------------------------------------------------


def shared_group(name: str, groups: int, size: int) -> dict:
    """All groups in one spine, each in one leaf."""
    policy = {"name": "group", "subGroupSize": size, "minSubGroups": groups,
              "labelSelector": {"matchLabels": {f"{PREFIX}name": name}},
              "matchLabelKeys": [f"{PREFIX}group-index"],
              "networkTopology": hard(1)}  # fmt: skip
    return pod_group(name, groups * size, networkTopology=hard(2), subGroupPolicy=[policy])


def test_a_set_that_shares_a_pod_group_is_placed_whole(user, plain):
    user.floor(8)
    user.create(shared_group("answer", 2, 2))
    plain.make("answer", 2, 2, marks={GROUP: "answer"})
    found = plain.await_running(2, 2)
    assert all(len(leaves(members)) == 1 for members in found.values())
    spines = {leaf // 2 for members in found.values() for leaf in leaves(members)}
    assert len(spines) == 1
    assert [name_of(g) for g in plain.pod_groups()] == ["answer"], "a second PodGroup"


def test_a_set_that_shares_a_pod_group_waits_whole_and_starts_when_there_is_room(user, plain):
    user.floor(8)
    # A node of each spine is taken: there is a leaf of two in both, but no spine with two of them.
    for node in ("node0", "node4"):
        user.create(pod(f"other-{node}", gpus=GPUS, nodeName=node))
    user.create(shared_group("answer", 2, 2))
    plain.make("answer", 2, 2, marks={GROUP: "answer"})
    for one in user.await_told("answer"):
        assert "2" in condition_of(one, "PodScheduled")["message"]
    eventually(lambda: len(user.pods("answer")) == 4)
    user.stays_whole_unbound("answer")
    user.delete("v1", "Pod", "other-node4")
    user.await_bound("answer", 4)
    assert {index_of(n) // 4 for n in user.nodes_of("answer")} == {1}


def test_pods_of_a_plain_set_get_a_group_for_each_stateful_set(user, plain):
    """Their controller makes no gang and nobody names one: the rules for StatefulSets hold."""
    user.floor(4)
    plain.make("web", 2, 2)
    plain.await_running(2, 2)
    owners = {g["metadata"]["ownerReferences"][0]["kind"] for g in plain.pod_groups()}
    assert owners == {"StatefulSet"}
    assert len(plain.pod_groups()) == 3, "the leaders' and one for the workers of each group"


# --- gangs of its controller ----------------------------------------------------------------------


def test_each_group_of_a_set_is_a_gang_in_a_leaf_of_its_own(user, gangs):
    user.create(queue("chats"))
    user.floor(8)
    gangs.make("chat", 3, 2, marks=IN_A_LEAF,
               annotations={"scheduling.volcano.sh/queue-name": "chats"})  # fmt: skip
    found = gangs.await_settled(3, 2)
    assert all(len(leaves(members)) == 1 for members in found.values())
    for group in gangs.pod_groups():
        assert group["spec"]["minMember"] == 2
        assert group["spec"]["queue"] == "chats"
        assert "networkTopology" not in group["spec"], "their controller writes no rule"
        eventually(lambda g=group: user.group(name_of(g))["status"]["phase"] == "Running")
    for members in found.values():
        assert len({annotation_of(p, GROUP) for p in members}) == 1


def test_a_group_that_finds_no_leaf_waits_whole_while_the_others_run(user, gangs):
    user.floor(6)
    user.create(pod("other", gpus=GPUS, nodeName="node3"))
    gangs.make("chat", 3, 2, marks=IN_A_LEAF)

    def two_of_three() -> str:
        held = {number: sum(1 for p in members if node_of(p))
                for number, members in gangs.groups().items()}  # fmt: skip
        assert sorted(held.values()) == [0, 2, 2], f"{held}: {user.why('')}"
        return next(number for number, count in held.items() if count == 0)

    waiting = eventually(two_of_three)
    for one in user.await_told(f"chat-{waiting}"):
        assert "tier 1" in condition_of(one, "PodScheduled")["message"]
    for_a_while(lambda: two_of_three() and None)
    user.delete("v1", "Pod", "other")
    found = gangs.await_settled(3, 2)
    assert all(len(leaves(members)) == 1 for members in found.values())


def test_workers_that_wait_for_their_leader_come_beside_it(user, gangs):
    """LeaderReady: the minimum is the leader, and the rule of the template still binds the rest.
    One group after the other: nobody knows of workers that do not exist, and two leaders at once
    may take one leaf."""
    user.floor(4)
    for replicas in (1, 2):
        if replicas == 1:
            gangs.make("chat", 1, 2, marks=IN_A_LEAF, startupPolicy="LeaderReady")
        else:
            gangs.scale("chat", replicas)
        found = gangs.await_settled(replicas, 2)
        assert all(len(leaves(members)) == 1 for members in found.values())
    assert [g["spec"]["minMember"] for g in gangs.pod_groups()] == [1, 1]


def test_members_are_placed_in_the_order_of_their_numbers(user, gangs):
    """A leader is its group's first, whichever number the group has."""
    user.floor(8)
    gangs.make("chat", 4, 2, marks=IN_A_LEAF)
    for members in gangs.await_settled(4, 2).values():
        leader, worker = (index_of(node_of(p)) for p in members)
        assert worker == leader + 1


def test_scaled_up_and_down_a_set_keeps_one_pod_group_for_each_group(user, gangs, witness):
    user.floor(8)
    gangs.make("chat", 2, 2, marks=IN_A_LEAF)
    first = gangs.await_settled(2, 2)
    gangs.expect_whole(witness, 2)
    for replicas in (4, 1, 0, 3):
        gangs.scale("chat", replicas)
        found = gangs.await_settled(replicas, 2)
        assert all(len(leaves(members)) == 1 for members in found.values())
        if replicas == 1:
            assert [uid_of(p) for p in found["0"]] == [uid_of(p) for p in first["0"]]
    witness.audit(half_bound_limit=HALF_S)


def test_a_group_that_restarts_comes_back_whole_and_leaves_the_others_alone(user, gangs, witness):
    user.floor(8)
    gangs.make("chat", 3, 2, marks=IN_A_LEAF)
    before = gangs.await_settled(3, 2)
    gangs.expect_whole(witness, 2)
    gangs.restart("chat-1-1")
    gone = {uid_of(p) for p in before["1"]}
    eventually(lambda: not gone & {uid_of(p) for p in user.pods()}, what="the old pods are gone")
    after = gangs.await_settled(3, 2)
    for number in ("0", "2"):
        assert [uid_of(p) for p in after[number]] == [uid_of(p) for p in before[number]]
    assert leaves(after["1"]) == leaves(before["1"]), "the others' leaves are full"
    for group in gangs.pod_groups():
        eventually(lambda g=group: user.group(name_of(g))["status"]["phase"] == "Running")
    witness.audit(half_bound_limit=HALF_S)


def test_a_group_that_restarts_without_room_waits_whole(user, gangs):
    user.floor(4)
    gangs.make("chat", 2, 2, marks=IN_A_LEAF)
    before = gangs.await_settled(2, 2)
    node = node_of(before["1"][0])
    user.patch("v1", "Node", node, {"spec": {"unschedulable": True}})
    gangs.restart("chat-1")
    gone = {uid_of(p) for p in before["1"]}

    def made_anew() -> bool:
        members = gangs.groups().get("1", [])
        assert len(members) == 2
        return not gone & {uid_of(p) for p in members}

    eventually(made_anew)
    user.await_told("chat-1")
    user.stays_whole_unbound("chat-1")
    user.patch("v1", "Node", node, {"spec": {"unschedulable": None}})
    gangs.await_settled(2, 2)


def test_a_template_that_changes_gives_every_group_a_new_gang(user, gangs):
    user.floor(8)
    gangs.make("chat", 2, 2, marks=IN_A_LEAF)
    gangs.await_settled(2, 2)
    before = {name_of(g) for g in gangs.pod_groups()}
    template = {"metadata": {"annotations": {**IN_A_LEAF, "version": "2"}}}
    change = {"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}}
    gangs.change("chat", change)
    eventually(lambda: not before & {name_of(g) for g in gangs.pod_groups()}, what="new groups")
    found = gangs.await_settled(2, 2)
    assert all(len(leaves(members)) == 1 for members in found.values())
    assert len({name_of(g) for g in gangs.pod_groups()}) == 2


def test_a_deleted_set_leaves_nothing(user, gangs):
    user.floor(4)
    gangs.make("chat", 2, 2, marks=IN_A_LEAF)
    gangs.await_settled(2, 2)
    gangs.delete("chat")
    # The garbage collector looks for new kinds of owners every half minute.
    eventually(lambda: user.pods() == [] and gangs.pod_groups() == [], 60.0, "nothing is left")
