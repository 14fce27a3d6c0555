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


def test_switched_off_controllers_do_nothing(user, scheduler, control):
    user.floor(2)
    control(None, "--controllers=*,-job-controller")
    user.create(job("j", task("w")))
    for_a_while(lambda: None if not user.list(VOLCANO, "PodGroup") else pytest.fail("a group"))
