"""README's section "On a real cluster", done as it says by somebody who copies its commands."""

from __future__ import annotations

import json
import os
import re
import subprocess

import pytest
from support import HOPWISE, ROOT, condition_of, eventually, node_of

UP_S = 120


def commands() -> list[str]:
    """Of the section's first block, without comments."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("## On a real cluster\n")[2].partition("\n## ")[0]
    block = section.partition("```sh\n")[2].partition("```")[0]
    return [line.partition("#")[0].strip() for line in block.splitlines() if line.strip()]


class Person:
    """Somebody with a shell in the repository."""

    def __init__(self, folder) -> None:
        self.folder = folder
        self.environment = dict(os.environ)

    def dev_cluster(self, *words: str) -> str:
        """./dev cluster, of a place of its own and with the Hopwise under test."""
        return self.run(["./dev", "cluster", "--run-dir", str(self.folder), *words])

    def export(self, printed: str) -> None:
        for name, value in re.findall(r"^export (\w+)=(.*)$", printed, re.MULTILINE):
            self.environment[name] = os.path.expandvars(value)

    def run(self, command: list[str]) -> str:
        done = subprocess.run(command, cwd=ROOT, env=self.environment, text=True,
                              capture_output=True, timeout=UP_S, check=False)  # fmt: skip
        assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
        return done.stdout

    def get(self, *words: str) -> dict:
        return json.loads(self.run(["kubectl", "get", "-o", "json", *words]))


@pytest.fixture
def person(tmp_path):
    made = Person(tmp_path / "cluster")
    yield made
    made.dev_cluster("down")


def leaf_pair(nodes: list[str]) -> int:
    """Which of the two spines holds them all."""
    spines = {int(name.removeprefix("node")) // 4 for name in nodes}
    assert len(spines) == 1, nodes
    return spines.pop()


def test_what_readme_says_works(person):
    said = commands()
    assert said[0] == "./dev cluster up" and said[-1] == "./dev cluster down"
    person.export(person.dev_cluster("up", "--hopwise", str(HOPWISE)))
    kubectl = [line for line in said if line.startswith("kubectl")]
    assert sum("apply" in line for line in kubectl) == 4
    for line in kubectl:
        if "podgroups" in line or "wide" in line:
            eventually(lambda: settled(person), what="gangs placed or told why they wait")
        person.run(line.split())
    nodes = nodes_of(person, "ring")
    assert len(set(nodes)) == 4
    leaf_pair(nodes)
    assert len(nodes_of(person, "serving")) == 2
    eventually(lambda: job_phase(person) == "Running", what="the Job runs")
    workers = [node_of(p) for p in person.get("pods", "-l", "volcano.sh/job-name=train")["items"]]
    assert len({int(name.removeprefix("node")) // 2 for name in workers}) == 1, workers
    group = person.get("podgroups.scheduling.volcano.sh", "too-wide")
    why = condition_of(group, "Unschedulable")
    assert why["reason"] == "NeverFits" and "3 pods in one leaf" in why["message"]
    described = person.run(["kubectl", "describe", "podgroup", "too-wide"])
    assert why["message"] in described


def nodes_of(person: Person, app: str) -> list[str]:
    return [node_of(pod) for pod in person.get("pods", "-l", f"app={app}")["items"]]


def job_phase(person: Person) -> str:
    return person.get("vcjob", "train")["status"].get("state", {}).get("phase", "")


def settled(person: Person) -> bool:
    pods = person.get("pods")["items"]
    return bool(pods) and all(node_of(p) or condition_of(p, "PodScheduled") for p in pods)
