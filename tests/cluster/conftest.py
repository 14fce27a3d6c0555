"""Makes the package hopcluster and a running cluster known to the tests."""

import pathlib
import sys
from typing import Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from hopcluster import Cluster, binaries  # noqa: E402


@pytest.fixture(scope="session")
def programs() -> None:
    """The control plane's programs, built if need be."""
    binaries.build()


@pytest.fixture(scope="module")
def cluster(programs: None) -> Iterator[Cluster]:
    """A control plane with controllers and KWOK, without nodes and without any scheduler."""
    with Cluster() as running:
        yield running
