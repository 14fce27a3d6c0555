"""What goes wrong with the cluster itself, as opposed to what runs on it."""


class ClusterError(Exception):
    """Says what did not work and what the user sees of it; shown without a traceback."""
