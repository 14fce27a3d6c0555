"""A real Kubernetes control plane on this machine, for tests and for people; see ../README.md."""

from hopcluster.cluster import Cluster, Options
from hopcluster.errors import ClusterError
from hopcluster.daemon import HopwiseDaemon

__all__ = ["Cluster", "ClusterError", "HopwiseDaemon", "Options"]
