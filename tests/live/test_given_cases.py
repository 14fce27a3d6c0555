"""Cases that lie beside the repository, judged by their own program on the live scheduler.

Skipped where they are not there. HOPWISE_LONG=1 runs all that are meant for this version, else a
sample.
"""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hopcluster.binaries import path_of
from support import LONG, ROOT

FOLDER = ROOT.parent / "shared" / "cases"
JUDGE = FOLDER / "check.py"
# Named by the promise of the scheduling core; 1?? are all of them.
MEANT = re.compile(r"(001|002|003|005|006|008|011|013|015|017|019|020|029|1\d\d)-")
DAILY = re.compile(r"(001|005|011|015|020|104|109|113)-")

pytestmark = [
    pytest.mark.skipif(not JUDGE.exists(), reason=f"no cases at {FOLDER}"),
    pytest.mark.usefixtures("scheduler", "workloads"),
]


def chosen():
    meant = [path for path in sorted(FOLDER.glob("*.yaml")) if MEANT.match(path.name)]
    return [path for path in meant if LONG or DAILY.match(path.name)]


@pytest.mark.parametrize("path", [pytest.param(path, id=path.stem) for path in chosen()])
def test_given_case(plane, scheduler, path):
    command = [sys.executable, str(JUDGE), "live", "--kubeconfig", str(plane.kubeconfig),
               "--kubectl", path_of("kubectl"), "--pid", str(scheduler.pid),
               "--quiet-for", "1.5", str(path)]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
