"""`hopwise controller` as a process: killed, beside another, with too few rights, in peace."""

from __future__ import annotations

import random
import time

import pytest
from support import (
    LONG,
    SHORT_LEASE,
    VOLCANO,
    eventually,
    for_a_while,
    free_lease,
    name_of,
    node_of,
    uid_of,
)
from test_jobs import BATCH, Jobs, job, task, workload


def test_killed_at_any_moment_it_makes_nothing_twice(user, plane, scheduler, control):
    """Jobs come, scale and go while the controller dies again and again."""
    seed = time.time_ns() % 1_000_000
    print(f"seed {seed}")
    chance = random.Random(seed)
    user.floor(8)
    jobs = Jobs(user)
    one = control(None, *SHORT_LEASE)
    wanted = {}
    for round_ in range(30 if LONG else 8):
        name = f"j{round_}"
        wanted[name] = chance.randint(1, 4)
        user.create(job(name, task("w", wanted[name]), plugins={"svc": []}))
        if round_ > 2 and chance.random() < 0.4:
            gone = chance.choice(sorted(wanted))
            del wanted[gone]
            user.delete(BATCH, "Job", gone)
        time.sleep(chance.uniform(0.0, 0.5))
        one.kill()
        free_lease(plane, "controller")
        one.start()
    for name, replicas in wanted.items():
        jobs.await_pods(*(f"{name}-w-{i}" for i in range(replicas)), job_name=name)

    def settled() -> bool:
        groups = sorted(name_of(g) for g in user.list(VOLCANO, "PodGroup"))
        assert groups == sorted(f"{n}-{uid_of(jobs.get(n))}" for n in wanted)
        services = sorted(name_of(s) for s in user.list("v1", "Service"))
        assert services == sorted(wanted)
        assert len(user.pods()) == sum(wanted.values())
        return True

    eventually(settled)
    for name in wanted:
        assert jobs.status(name).get("retryCount", 0) == 0, "a kill is no failure of the job"


def test_a_settled_cluster_is_left_in_peace(user, scheduler, control, proxy):
    """Of the controller nothing is heard but renewals of its Lease."""
    user.floor(2)
    jobs = Jobs(user)
    control(None, via=proxy)
    jobs.start(job("j", task("w", 2), plugins={"svc": [], "env": []}))
    user.create(workload("Deployment", 2))
    eventually(lambda: len(user.pods()) == 4 and all(node_of(p) for p in user.pods()))
    time.sleep(2.0)  # Events
    before = len(proxy.exchanges())
    time.sleep(5.0)
    heard = [e for e in proxy.exchanges()[before:] if "/leases/" not in e.path]
    assert heard == [], [f"{e.method} {e.path}" for e in heard]


def test_rights_that_lack_are_named(user, plane, control):
    role = plane.api.get("rbac.authorization.k8s.io/v1", "ClusterRole", "hopwise-controller")
    rules = [r for r in role["rules"] if "podgroups" not in r["resources"]]
    plane.api.patch(role, {"rules": rules})
    try:
        one = control(None, ready=False)
        assert one.wait(20) == 1
        assert "podgroups.scheduling.volcano.sh" in one.log()
        assert "deploy/rbac/controller.yaml" in one.log()
    finally:
        plane.api.patch(role, {"rules": role["rules"]})


# (verb, group, resource)
MAY = [
    ("list", "", "nodes"),
    ("create", "", "pods"),
    ("delete", "", "pods"),
    ("create", "topology.volcano.sh", "hypernodes"),
    ("patch", "topology.volcano.sh", "hypernodes/status"),
    ("create", "scheduling.volcano.sh", "podgroups"),
    ("patch", "batch.volcano.sh", "jobs/status"),
    ("delete", "bus.volcano.sh", "commands"),
    ("create", "", "secrets"),
    ("create", "", "events"),
]
MAY_NOT = [
    ("patch", "", "nodes"),
    ("delete", "", "nodes"),
    ("get", "", "secrets"),
    ("list", "", "secrets"),
    ("create", "", "pods/binding"),
    ("create", "", "pods/exec"),
    ("create", "batch.volcano.sh", "jobs"),
    ("delete", "scheduling.volcano.sh", "queues"),
    ("create", "rbac.authorization.k8s.io", "clusterrolebindings"),
    ("delete", "", "namespaces"),
    ("patch", "admissionregistration.k8s.io", "validatingwebhookconfigurations"),
]


def test_its_account_may_do_what_it_must_and_no_more(plane):
    def may(verb: str, group: str, resource: str) -> bool:
        resource, _, part = resource.partition("/")
        about = {"verb": verb, "group": group, "resource": resource, "subresource": part,
                 "namespace": "default"}  # fmt: skip
        asked = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
                 "spec": {"user": "system:serviceaccount:hopwise-system:hopwise-controller",
                          "resourceAttributes": about}}  # fmt: skip
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return plane.api.request("POST", path, asked)["status"]["allowed"]

    assert [right for right in MAY if not may(*right)] == []
    assert [right for right in MAY_NOT if may(*right)] == []


def test_switched_off_controllers_do_nothing(user, scheduler, control):
    user.floor(2)
    control(None, "--controllers=*,-job-controller")
    user.create(job("j", task("w")))
    for_a_while(lambda: None if not user.list(VOLCANO, "PodGroup") else pytest.fail("a group"))
