"""Free ports on the loopback interface."""

from __future__ import annotations

import os
import random
import socket

from hopcluster.errors import ClusterError

# Below the ports that Linux gives to outgoing connections (ip_local_port_range begins at 32768), so
# that a port is still free when the program that is to listen there has started.
_FIRST, _LAST = 14000, 31999
# Tests that run side by side each take ports of their own part of the range.
_PARTS = 4
_PART = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % _PARTS
_SIZE = (_LAST + 1 - _FIRST) // _PARTS
_given: set[int] = set()


def free_port() -> int:
    """One that nobody listens on, and that was not handed out by this process before."""
    for _ in range(1000):
        port = _FIRST + _PART * _SIZE + random.randrange(_SIZE)
        if port not in _given and _is_free(port):
            _given.add(port)
            return port
    raise ClusterError("no free port on 127.0.0.1")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
