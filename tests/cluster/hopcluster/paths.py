"""Where things lie in the repository."""

import pathlib

TESTS = pathlib.Path(__file__).resolve().parent.parent
ROOT = TESTS.parent.parent
GO_MODULES = TESTS / "go"
DEPLOY = ROOT / "deploy"
BUILD = ROOT / "build" / "cluster"
BINARIES = BUILD / "bin"
# The cluster of `up`; the ones of tests have a folder each in SCRATCH.
RUN = BUILD / "run"
SCRATCH = BUILD / "scratch"
