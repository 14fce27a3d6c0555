"""A real Kubernetes control plane on this machine, for tests and for people; see ../README.md."""

from hopcluster.cluster import Cluster, Options
from hopcluster.errors import ClusterError
from hopcluster.scheduler import HopwiseScheduler

__all__ = ["Cluster", "ClusterError", "HopwiseScheduler", "Options"]
