#!/usr/bin/env python3
"""Asks kube-scheduler's plugins and Hopwise about the same cases, and shows where they differ.

    compare.py --seed 7                       the case of a seed
    compare.py --seed 1 --count 1000          as many, until they first differ
    compare.py --seed 7 --exactly taints,ports
    compare.py --seed 1 --count 1000 --all    every kind of difference, with an example of each
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cluster")]

import generate  # noqa: E402
from hopcluster import binaries  # noqa: E402
from ingredients import Object  # noqa: E402

ORACLE = binaries.Program(
    "oracle", str(HERE / "go"), ".", binaries.KUBERNETES_FLAGS, sources=("*.go",)
)
ANSWER = pathlib.Path(
    os.environ.get("HOPWISE_ORACLE_ANSWER", ROOT / "build/release/test/hopwise_oracle_answer")
)
BATCH = 2000
# sched::kPoint: our scores are in parts of a point.
POINT = 1_000_000

# What a term of ours may be above kube-scheduler's, in points. It scores in whole points and drops
# what is over: once for each resource and once for their mean, or once for the balance.
TERMS = {
    "NodeResourcesFit": 2,
    "nodeorder/NodeResourcesFit": 2,
    "nodeorder/NodeResourcesBalancedAllocation": 1,
}
# Sums of floating point numbers, which it drops from, may have lost a bit.
FLOAT_SLACK = 1e-6


def everyone_asks(case: Object) -> bool:
    """Whether every container asks for cpu and memory, so that no scheduler assumes amounts."""
    for pod in [*case["pods"], case["pod"]]:
        spec = pod["spec"]
        if "resources" in spec:
            return False
        for container in [*spec["containers"], *spec.get("initContainers", ())]:
            resources = container.get("resources", {})
            asked = resources.get("limits", {}) | resources.get("requests", {})
            for name in ("cpu", "memory"):
                if not any(digit in "123456789" for digit in str(asked.get(name, 0))):
                    return False
    return True


@dataclasses.dataclass(frozen=True)
class Judged:
    """A case with both answers."""

    case: Object
    theirs: Object
    ours: Object

    @property
    def seed(self) -> int:
        return self.case["id"]

    @property
    def blocker(self) -> str:
        return self.ours["blocker"]

    @property
    def command(self) -> str:
        features = ",".join(self.case["features"])
        return f".venv/bin/python tests/oracle/compare.py --seed {self.seed} --exactly {features}"

    def faults(self) -> list[str]:
        """What went wrong in a program, which makes its answer worthless."""
        told = {"oracle": self.theirs.get("error"), "hopwise": self.ours.get("error")}
        return [f"{program}: {error}" for program, error in told.items() if error]

    def filter_differences(self) -> list[tuple[str, str]]:
        """Node, and who takes it while the other does not, and why."""
        found = []
        for node in self.case["nodes"]:
            name = node["metadata"]["name"]
            they, we = name in self.theirs["passes"], name in self.ours["passes"]
            if they and not we:
                why = self.blocker or self.ours["reasons"].get(name, "not judged")
                found.append((name, f"kube-scheduler takes it, Hopwise does not: {why}"))
            elif we and not they:
                why = self.theirs["reasons"].get(name, "?")
                found.append((name, f"Hopwise takes it, kube-scheduler does not: {why}"))
        return found

    def score_differences(self, term: str) -> list[tuple[str, str]]:
        """The same for a term that both score, on the nodes that pass."""
        found = []
        for name in self.theirs["passes"]:
            # A plugin that has nothing to say of a pod is passed over.
            theirs = self.theirs["scores"].get(term, {}).get(name, 0)
            ours = self.ours["scores"].get(term, {}).get(name, 0) / POINT
            if not theirs - FLOAT_SLACK <= ours < theirs + TERMS[term] + FLOAT_SLACK:
                found.append((name, f"{term}: kube-scheduler {theirs}, Hopwise {ours:g}"))
        return found

    def describe(self, differences: Sequence[tuple[str, str]]) -> str:
        parts = [f"seed {self.seed}, made of {', '.join(self.case['features'])}"]
        parts += [f"  {name}: {text}" for name, text in differences]
        for title, value in (("case", self.case), ("kube-scheduler", self.theirs),
                             ("Hopwise", self.ours)):  # fmt: skip
            parts.append(f"{title}:\n{json.dumps(value, indent=1)}")
        return "\n".join([*parts, f"again: {self.command}"])


def build(say=print) -> None:
    binaries.build(say, (ORACLE,))


def _answers(program: pathlib.Path, given: pathlib.Path, out: pathlib.Path) -> subprocess.Popen:
    with open(given, "rb") as cases, open(out, "wb") as answers:
        return subprocess.Popen([program], stdin=cases, stdout=answers, stderr=subprocess.PIPE)


def _ask(cases: list[str]) -> Iterator[Judged]:
    """Both programs at once, each with all cases."""
    with tempfile.TemporaryDirectory(prefix="hopwise-oracle-") as folder:
        given = pathlib.Path(folder) / "cases"
        given.write_text("".join(f"{case}\n" for case in cases), encoding="utf-8")
        outs = []
        started = []
        for program in (ORACLE.path, ANSWER):
            outs.append(given.with_name(program.name))
            started.append(_answers(program, given, outs[-1]))
        lines = []
        for process, program, out in zip(started, (ORACLE.path, ANSWER), outs, strict=True):
            _, errors = process.communicate()
            lines.append(out.read_text(encoding="utf-8").splitlines())
            if process.returncode != 0 or len(lines[-1]) != len(cases):
                case = json.loads(cases[min(len(lines[-1]), len(cases) - 1)])
                features = ",".join(case["features"])
                raise RuntimeError(
                    f"{program} ended with {process.returncode} at seed {case['id']} "
                    f"--exactly {features}: {errors.decode(errors='replace')[-2000:]}"
                )
    for case, theirs, ours in zip(cases, *lines, strict=True):
        yield Judged(json.loads(case), json.loads(theirs), json.loads(ours))


def judge(chosen: Sequence[tuple[int, Sequence[str]]]) -> Iterator[Judged]:
    """Both answers to each case, given by its seed and its features."""
    for start in range(0, len(chosen), BATCH):
        batch = chosen[start : start + BATCH]
        yield from _ask([json.dumps(generate.make(*case)) for case in batch])


def kinds(judged: Judged) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each difference by what it is, whatever the node."""
    for fault in judged.faults():
        yield fault.split("\n")[0], ("", fault)
    for name, text in judged.filter_differences():
        yield text, (name, text)
    if not judged.blocker:
        for term in TERMS:
            for name, text in judged.score_differences(term):
                yield f"score of {term}", (name, text)


def show_all(chosen: Sequence[tuple[int, Sequence[str]]]) -> int:
    """Counts the kinds of differences; of each the case with the fewest features is named."""
    counts: collections.Counter[str] = collections.Counter()
    examples: dict[str, Judged] = {}
    for judged in judge(chosen):
        for kind, _ in kinds(judged):
            counts[kind] += 1
            kept = examples.get(kind)
            if kept is None or len(kept.case["features"]) > len(judged.case["features"]):
                examples[kind] = judged
    for kind, count in counts.most_common():
        print(f"{count:6} {kind}\n       {examples[kind].command}")
    print(f"{len(chosen)} cases, {len(counts)} kinds of differences")
    return 1 if counts else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    generate.add_arguments(parser)
    parser.add_argument("--all", action="store_true", help="count the kinds of differences")
    arguments = parser.parse_args()
    build()
    chosen = generate.chosen_cases(arguments)
    if arguments.all:
        return show_all(chosen)
    for judged in judge(chosen):
        differences = [difference for _, difference in kinds(judged)]
        if differences or len(chosen) == 1:
            print(judged.describe(differences))
        if differences:
            return 1
    print(f"{len(chosen)} cases, no difference")
    return 0


if __name__ == "__main__":
    sys.exit(main())
