"""One control plane for all tests of a run; an empty cluster and a namespace of its own for each
test; schedulers that end with the test or the file that started them."""

from __future__ import annotations

import itertools
import pathlib
import sys

import pytest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "cluster")]

from fault_proxy import FaultProxy  # noqa: E402
from hopcluster import Cluster, HopwiseDaemon, Options  # noqa: E402
from hopcluster import binaries  # noqa: E402
from hopcluster.cluster import CONTROLLER_ACCOUNT, SCHEDULER_ACCOUNT  # noqa: E402
from hopcluster.credentials import User as Account  # noqa: E402
from support import HOPWISE, USUAL_FLAGS, User, client_of, eventually, free_lease  # noqa: E402
from witness import Witness  # noqa: E402

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def plane():
    """API server, controllers, KWOK, and kube-scheduler for pods of "default-scheduler"."""
    binaries.build()
    with Cluster(Options(kube_scheduler=True)) as made:
        yield made


@pytest.fixture(scope="session")
def client(plane):
    return client_of(plane)


@pytest.fixture
def user(plane, client):
    namespace = f"t{next(_numbers)}"
    plane.api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    made = User(plane, client, namespace)
    # Pods are refused until the controller has made the account.
    eventually(lambda: plane.api.list("v1", "ServiceAccount", namespace), what="account")
    yield made
    made.clean()


@pytest.fixture(scope="module")
def scheduler(plane):
    """One scheduler for all tests of the file."""
    free_lease(plane)
    made = plane.hopwise(HOPWISE, *USUAL_FLAGS, name=f"hopwise-{next(_numbers)}")
    made.start()
    made.wait_ready()
    yield made
    assert made.running, made.with_tail("did not live to the end")
    assert made.stop() == 0, made.with_tail("did not end well")


@pytest.fixture(scope="module")
def workloads(plane):
    """One controller for all tests of the file: jobs, PodGroups, queues."""
    free_lease(plane, "controller")
    made = plane.hopwise(HOPWISE, *USUAL_FLAGS, name=f"controller-{next(_numbers)}",
                         command="controller")  # fmt: skip
    made.start()
    made.wait_ready()
    yield made
    assert made.running, made.with_tail("did not live to the end")
    assert made.stop() == 0, made.with_tail("did not end well")


@pytest.fixture
def start(plane, tmp_path):
    """start(*flags, via=proxy, kubeconfig=…, ready=False): starts a scheduler for this test."""
    free_lease(plane)
    made: list[HopwiseDaemon] = []

    def run(*flags: str, via: FaultProxy | None = None, kubeconfig: pathlib.Path | None = None,
            ready: bool = True) -> HopwiseDaemon:  # fmt: skip
        number = next(_numbers)
        if via is not None:
            kubeconfig = via.kubeconfig(tmp_path / f"{number}.kubeconfig", scheduler_token(plane))
        one = plane.hopwise(HOPWISE, *USUAL_FLAGS, *flags, name=f"hopwise-{number}",
                            kubeconfig=kubeconfig)  # fmt: skip
        made.append(one)
        one.start()
        if ready:
            one.wait_ready()
        return one

    yield run
    for one in made:
        one.stop()
        if one in plane.daemons:
            plane.daemons.remove(one)
    free_lease(plane)


@pytest.fixture
def control(plane, tmp_path):
    """control(conf, *flags, via=proxy, ready=False): starts a controller for this test; `conf` is
    written to the file `control.conf`, where the test may change it."""
    free_lease(plane, "controller")
    made: list[HopwiseDaemon] = []
    path = tmp_path / "controller.conf"

    def run(conf: str | None, *flags: str, via: FaultProxy | None = None,
            ready: bool = True) -> HopwiseDaemon:  # fmt: skip
        number = next(_numbers)
        kubeconfig = None
        if via is not None:
            token = plane.credentials.token(Account.service_account(*CONTROLLER_ACCOUNT))
            kubeconfig = via.kubeconfig(tmp_path / f"{number}.kubeconfig", token)
        if conf is not None:
            path.write_text(conf, encoding="utf-8")
            flags = (f"--controller-conf={path}", *flags)
        one = plane.hopwise(HOPWISE, *USUAL_FLAGS, *flags, name=f"controller-{number}",
                            kubeconfig=kubeconfig, command="controller")  # fmt: skip
        made.append(one)
        one.start()
        if ready:
            one.wait_ready()
        return one

    run.conf = path
    yield run
    for one in made:
        one.stop()
        if one in plane.daemons:
            plane.daemons.remove(one)
    free_lease(plane, "controller")


def scheduler_token(plane: Cluster) -> str:
    return plane.credentials.token(Account.service_account(*SCHEDULER_ACCOUNT))


@pytest.fixture
def make_proxy(plane, tmp_path):
    made: list[FaultProxy] = []

    def make() -> FaultProxy:
        folder = tmp_path / f"proxy-{len(made)}"
        made.append(FaultProxy(plane.server, folder, str(plane.credentials.ca_file)))
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def proxy(make_proxy):
    return make_proxy()


@pytest.fixture
def witness(plane):
    with Witness(plane) as made:
        yield made


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    """A failed test shows the last lines of the schedulers' logs."""
    report = (yield).get_result()
    planes = [each for each in item.funcargs.values() if isinstance(each, Cluster)]
    if report.when == "call" and report.failed:
        for each in [one for plane in planes for one in plane.daemons[-2:]]:
            tail = "\n".join(each.log().splitlines()[-20:])
            report.sections.append((f"log of {each.name}", tail))
