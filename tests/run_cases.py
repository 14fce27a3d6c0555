#!/usr/bin/env python3
"""Runs the cases of tests/cases and judges them. tests/cases/README.md describes their form.

Usage: tests/run_cases.py --hopwise BIN [case.yaml ...]   default: every case of tests/cases
       tests/run_cases.py --hopwise BIN --shared DIR NUMBER ...
                                          cases kept in another checkout, by their own judge

Needs nothing beyond the standard library: objects are read from what `hopwise simulate` writes.
Exit status: 0 all as expected, 1 some not, 2 wrong use, 77 --shared DIR is not there.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
CASES = ROOT / "tests" / "cases"
TIMEOUT_S = 60
SKIPPED = 77


class BadCase(Exception):
    """The case itself cannot be understood."""


# --- the form of a case ---------------------------------------------------------------------------


@dataclasses.dataclass
class Case:
    name: str
    promise: str
    expectations: list[tuple[int, str]]  # line, text
    steps: list[str]  # manifests
    config: str
    flags: list[str]
    exit_status: int


_MARK = re.compile(r"#\s*(PROMISE|EXPECT|CONFIG|FLAGS|EXIT):\s?(.*)$")


def read_case(path: pathlib.Path) -> Case:
    case = Case(path.stem, "", [], [""], "", [], 0)
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if re.match(r"#\s*STEP\b", line):
            case.steps.append("")
            continue
        case.steps[-1] += line + "\n"
        mark = _MARK.match(line)
        if not mark:
            continue
        key, value = mark.groups()
        if key == "PROMISE":
            case.promise = value.strip()
        elif key == "EXPECT":
            case.expectations.append((number, value.strip()))
        elif key == "CONFIG":
            case.config += value + "\n"
        elif key == "FLAGS":
            case.flags += shlex.split(value)
        else:
            case.exit_status = int(value)
    if not case.promise or not case.expectations:
        raise BadCase("a case has a PROMISE and at least one EXPECT")
    return case


# --- what a run left behind -----------------------------------------------------------------------


_SUFFIXES = {
    "": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60,
}  # fmt: skip


def amount(text: object) -> float:
    match = re.fullmatch(r"([-+]?[0-9.]+(?:[eE][-+]?\d+)?)([a-zA-Z]*)", str(text))
    if not match or match.group(2) not in _SUFFIXES:
        raise BadCase(f"no quantity: {text}")
    return float(match.group(1)) * _SUFFIXES[match.group(2)]


class Snapshot:
    """The objects of one step, with the reading of them that expectations need."""

    def __init__(self, objects: list[dict], report: dict):
        self.objects = objects
        self.report = report
        self.pods = self.of_kind("Pod")
        self.nodes = {n["metadata"]["name"]: n for n in self.of_kind("Node")}
        self.hypernodes = {h["metadata"]["name"]: h for h in self.of_kind("HyperNode")}

    def of_kind(self, kind: str) -> list[dict]:
        return [item for item in self.objects if item.get("kind") == kind]

    # Nodes of a HyperNode as its members say: read apart from the program's own tree.
    def nodes_in(self, hypernode: str, above: tuple[str, ...] = ()) -> set[str]:
        if hypernode not in self.hypernodes or hypernode in above:
            return set()
        found: set[str] = set()
        for member in self.hypernodes[hypernode]["spec"].get("members", []):
            selector = member.get("selector", {})
            name = selector.get("exactMatch", {}).get("name")
            if member.get("type") == "HyperNode":
                found |= self.nodes_in(name, (*above, hypernode))
            elif name:
                found |= {name} & set(self.nodes)
            elif "regexMatch" in selector:
                pattern = selector["regexMatch"]["pattern"]
                found |= {node for node in self.nodes if re.search(pattern, node)}
            else:
                wanted = selector.get("labelMatch", {}).get("matchLabels", {})
                for node, item in self.nodes.items():
                    labels = item["metadata"].get("labels", {})
                    if wanted and wanted.items() <= labels.items():
                        found.add(node)
        return found

    def gangs(self, name: str) -> list[dict]:
        """Gangs called so: by their own name, their workload's, or by a pattern with *."""
        pattern = re.compile(re.escape(name).replace(r"\*", ".*"))
        found = []
        for gang in self.report["gangs"]:
            names = {gang["name"], gang["workload"].split("/")[-1]}
            names |= {f"{gang['namespace']}/{each}" for each in names}
            if any(pattern.fullmatch(each) for each in names if each):
                found.append(gang)
        return found

    def placed_pods(self, name: str) -> list[tuple[str, str]]:
        """(pod, node) of the placed pods of the gangs called so, or of the pods of that name."""
        gangs = self.gangs(name)
        pods = [(p["name"], p["node"]) for gang in gangs for p in gang["pods"] if p["node"]]
        if gangs:
            return pods
        return [
            (pod["metadata"]["name"], pod["spec"]["nodeName"])
            for pod in self.pods
            if pod["metadata"]["name"] == name and pod["spec"].get("nodeName")
        ]

    def waiting(self, name: str) -> int:
        gangs = self.gangs(name)
        if gangs:
            return sum(gang["wanted"] - gang["placed"] for gang in gangs)
        return sum(
            1
            for pod in self.pods
            if pod["metadata"]["name"] == name and not pod["spec"].get("nodeName")
        )

    def words(self, name: str) -> list[str]:
        """What is said about a gang, its pods, or any object of that name."""
        gangs = self.gangs(name)
        names = {name} | {gang["name"] for gang in gangs}
        names |= {pod["name"] for gang in gangs for pod in gang["pods"]}
        texts = [f"{gang['reason']} {gang['message']}" for gang in gangs]
        for item in self.objects:
            if item["metadata"].get("name") in names:
                for condition in item.get("status", {}).get("conditions", []):
                    texts.append(f"{condition.get('reason', '')} {condition.get('message', '')}")
            if item.get("kind") == "Event" and item["involvedObject"].get("name") in names:
                texts.append(f"{item.get('reason', '')} {item.get('message', '')}")
        return texts

    def overfull(self) -> list[str]:
        """Nodes on which more is asked for than there is."""
        faults = []
        for name, node in self.nodes.items():
            held: dict[str, float] = {"pods": 0}
            for pod in self.pods:
                phase = pod.get("status", {}).get("phase")
                if pod["spec"].get("nodeName") != name or phase in ("Succeeded", "Failed"):
                    continue
                held["pods"] += 1
                for container in pod["spec"].get("containers", []):
                    resources = container.get("resources", {})
                    asked = {**resources.get("limits", {}), **resources.get("requests", {})}
                    for resource, text in asked.items():
                        held[resource] = held.get(resource, 0) + amount(text)
            status = node.get("status", {})
            room = status.get("allocatable") or status.get("capacity", {})
            for resource, much in held.items():
                if much > amount(room.get(resource, 0)) * (1 + 1e-9):
                    faults.append(f"node {name} is overfull: {much:g} {resource}")
        return faults


@dataclasses.dataclass
class Run:
    exit_status: int
    out: str
    err: str
    files: dict[str, str]

    def snapshots(self) -> list[Snapshot]:
        reports = json.loads(self.out)["steps"] if self.out.lstrip().startswith("{") else []
        return [
            Snapshot(json.loads(self.files[f"step-{report['step']}.json"])["items"], report)
            for report in reports
        ]


def run_case(case: Case, hopwise: str) -> Run:
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        command = [hopwise, "simulate"]
        for number, text in enumerate(case.steps, 1):
            (folder / f"in-{number}.yaml").write_text(text, encoding="utf-8")
            command.append(f"in-{number}.yaml")
        command += ["--output", "json", "--snapshot-dir", "out", *case.flags]
        if case.config:
            (folder / "scheduler.conf").write_text(case.config, encoding="utf-8")
            command += ["--config", "scheduler.conf"]
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
        files = {path.name: path.read_text("utf-8") for path in sorted(folder.glob("out/*"))}
        return Run(done.returncode, done.stdout, done.stderr, files)


# --- expectations ---------------------------------------------------------------------------------
# Each takes the snapshot, the run and the groups of its pattern, and tells what it found instead:
# "" when all is as expected.

Judge = Callable[..., str]


def unless(right: bool, found: object) -> str:
    return "" if right else f"found {found}"


def says_all(texts: list[str], wanted: str) -> bool:
    # A number must stand alone: the 2 of rack-2 or of 12 is no 2.
    def has(word: str, text: str) -> bool:
        edge = r"(?<![\w.-]){}(?![\w]|\.\d)" if word.isdigit() else "{}"
        return re.search(edge.format(re.escape(word)), text) is not None

    return any(all(has(word, text) for word in wanted.split()) for text in texts)


def runs(snap: Snapshot, _run: Run, name: str, count: str) -> str:
    return unless(len(snap.placed_pods(name)) == int(count), f"{len(snap.placed_pods(name))}")


def waits(snap: Snapshot, _run: Run, name: str, count: str) -> str:
    placed = len(snap.placed_pods(name))
    return unless(snap.waiting(name) == int(count), f"{snap.waiting(name)}, {placed} placed")


def uses(snap: Snapshot, _run: Run, name: str, nodes: str) -> str:
    found = sorted({node for _, node in snap.placed_pods(name)})
    return unless(found == sorted(nodes.split()), " ".join(found) or "nothing")


def lies_in(snap: Snapshot, _run: Run, name: str, domain: str) -> str:
    if domain not in snap.hypernodes:
        raise BadCase(f"no HyperNode {domain}")
    found = {node for _, node in snap.placed_pods(name)}
    return unless(bool(found) and found <= snap.nodes_in(domain), sorted(found) or "nothing")


def has_in(snap: Snapshot, _run: Run, name: str, count: str, domain: str) -> str:
    inside = snap.nodes_in(domain)
    found = sum(1 for _, node in snap.placed_pods(name) if node in inside)
    return unless(found == int(count), found)


def domains_of(snap: Snapshot, nodes: set[str], tier: int) -> list[str]:
    return [
        name
        for name, item in snap.hypernodes.items()
        if item["spec"].get("tier") == tier and snap.nodes_in(name) & nodes
    ]


def spans(snap: Snapshot, _run: Run, name: str, count: str, tier: str) -> str:
    found = domains_of(snap, {node for _, node in snap.placed_pods(name)}, int(tier))
    return unless(len(found) == int(count), found)


def together(snap: Snapshot, _run: Run, pods: str, tier: str) -> str:
    nodes: set[str] = set()
    for pod in pods.split():
        placed = snap.placed_pods(pod)
        if not placed:
            return f"found {pod} without a node"
        nodes |= {node for _, node in placed}
    for domain in domains_of(snap, nodes, int(tier)):
        if nodes <= snap.nodes_in(domain):
            return ""
    return f"found {sorted(nodes)}"


def in_runs(snap: Snapshot, _run: Run, name: str, tier: str) -> str:
    """Each domain of the tier holds a run of consecutive pod numbers."""
    numbered = []
    for pod, node in snap.placed_pods(name):
        numbered.append((int(re.search(r"(\d+)$", pod).group(1)), node))
    order = []
    for _, node in sorted(numbered):
        domain = domains_of(snap, {node}, int(tier))[0]
        if not order or order[-1] != domain:
            order.append(domain)
    return unless(len(order) == len(set(order)) and bool(order), order)


def verdict_is(snap: Snapshot, _run: Run, name: str, verdict: str) -> str:
    found = [gang["verdict"] for gang in snap.gangs(name)]
    return unless(bool(found) and set(found) == {verdict}, found)


def phase_is(snap: Snapshot, _run: Run, name: str, phase: str) -> str:
    found = [gang["phase"] for gang in snap.gangs(name)]
    return unless(bool(found) and set(found) == {phase}, found)


def says(snap: Snapshot, _run: Run, name: str, words: str) -> str:
    texts = snap.words(name)
    return unless(says_all(texts, words), texts)


def silent(snap: Snapshot, _run: Run, name: str, words: str) -> str:
    texts = snap.words(name)
    return unless(not says_all(texts, words), texts)


def counts_nodes(snap: Snapshot, _run: Run, name: str, count: str) -> str:
    found = snap.hypernodes[name].get("status", {}).get("nodeCount", 0)
    return unless(found == int(count), found)


def is_sound(snap: Snapshot, _run: Run, name: str, wanted: str) -> str:
    for condition in snap.hypernodes[name].get("status", {}).get("conditions", []):
        if condition.get("type") == "Ready":
            found = "sound" if condition.get("status") == "True" else "out"
            return unless(found == wanted, f"{found}: {condition.get('message')}")
    return "found no condition"


def pods_exist(snap: Snapshot, _run: Run, name: str, count: str) -> str:
    found = [pod for gang in snap.gangs(name) for pod in gang["pods"]]
    return unless(len(found) == int(count), len(found))


def no_gang(snap: Snapshot, _run: Run, name: str) -> str:
    return unless(not snap.gangs(name), "it is there")


def clock_at(snap: Snapshot, _run: Run, seconds: str) -> str:
    start = datetime.datetime.fromisoformat("2026-01-01T00:00:00+00:00")
    now = datetime.datetime.fromisoformat(snap.report["time"].replace("Z", "+00:00"))
    found = int((now - start).total_seconds())
    return unless(found == int(seconds), found)


def complains(_snap: Snapshot, run: Run, words: str) -> str:
    return unless(says_all(run.err.splitlines(), words), run.err or "nothing")


def nothing_wrong(_snap: Snapshot, run: Run) -> str:
    return unless(run.err == "", run.err)


_NAME = r"([\w.*/-]+)"
JUDGES: list[tuple[re.Pattern[str], Judge]] = [
    (re.compile(pattern), judge)
    for pattern, judge in (
        (rf"{_NAME} runs (\d+)", runs),
        (rf"{_NAME} waits (\d+)", waits),
        (rf"{_NAME} uses (.+)", uses),
        (rf"{_NAME} lies in {_NAME}", lies_in),
        (rf"{_NAME} has (\d+) in {_NAME}", has_in),
        (rf"{_NAME} spans (\d+) of tier (\d+)", spans),
        (r"together at tier (\d+): (.+)", lambda s, r, tier, pods: together(s, r, pods, tier)),
        (rf"{_NAME} in runs at tier (\d+)", in_runs),
        (rf"{_NAME} verdict ([\w-]+)", verdict_is),
        (rf"{_NAME} phase (\w+)", phase_is),
        (rf"{_NAME} says (.+)", says),
        (rf"{_NAME} never says (.+)", silent),
        (rf"{_NAME} counts (\d+) nodes", counts_nodes),
        (rf"{_NAME} is (sound|out)", is_sound),
        (rf"{_NAME} has (\d+) pods", pods_exist),
        (rf"no gang {_NAME}", no_gang),
        (r"clock (\d+)", clock_at),
        (r"complains (.+)", complains),
        (r"no complaint", nothing_wrong),
    )
]  # fmt: skip


def judge(case: Case, run: Run) -> list[str]:
    if run.exit_status != case.exit_status:
        return [f"exit status {run.exit_status}, not {case.exit_status}: {run.err.strip()[-400:]}"]
    snapshots = run.snapshots()
    if not snapshots:
        snapshots = [Snapshot([], {"gangs": [], "time": ""})]
    problems = []
    for line, text in case.expectations:
        at = re.match(r"@(\d+)\s+", text)
        snap = snapshots[int(at.group(1)) - 1 if at else -1]
        clause = text[at.end() :] if at else text
        for pattern, function in JUDGES:
            match = pattern.fullmatch(clause)
            if match:
                found = function(snap, run, *match.groups())
                if found:
                    problems.append(f"line {line}: {text}: {found}")
                break
        else:
            raise BadCase(f"line {line}: not understood: {text}")
    for number, snap in enumerate(snapshots, 1):
        problems += [f"step {number}: {fault}" for fault in snap.overfull()]
    return problems


# --- running --------------------------------------------------------------------------------------


def check_case(path: pathlib.Path, hopwise: str) -> list[str]:
    try:
        case = read_case(path)
        first = run_case(case, hopwise)
        second = run_case(case, hopwise)
        problems = judge(case, first)
    except BadCase as error:
        return [str(error)]
    except subprocess.TimeoutExpired:
        return [f"no end within {TIMEOUT_S} s"]
    if first != second:
        parts = [p for p in ("out", "err", "files") if getattr(first, p) != getattr(second, p)]
        problems.append(f"a second run differs in {', '.join(parts)}")
    return problems


def run_shared(folder: pathlib.Path, hopwise: str, numbers: list[str]) -> int:
    judge_program = folder / "check.py"
    if not judge_program.is_file():
        print(f"skipped: there is no {judge_program}")
        return SKIPPED
    files = [str(path) for number in numbers for path in sorted(folder.glob(f"{number}-*.yaml"))]
    command = [sys.executable, str(judge_program), "run", "--hopwise", hopwise, *files]
    return subprocess.run(command, check=False).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hopwise", required=True, help="the program")
    parser.add_argument("--shared", help="a folder of cases with a check.py of its own")
    parser.add_argument("cases", nargs="*")
    options = parser.parse_args()
    hopwise = str(pathlib.Path(options.hopwise).resolve())
    if options.shared:
        return run_shared(pathlib.Path(options.shared), hopwise, options.cases)
    paths = [pathlib.Path(path) for path in options.cases] or sorted(CASES.glob("*.yaml"))
    failed = 0
    for path in paths:
        problems = check_case(path, hopwise)
        failed += bool(problems)
        if problems:
            print(f"FAIL {path.stem}")
            for problem in problems:
                print(f"     {problem}")
        else:
            print(f"PASS {path.stem}")
    print(f"{len(paths) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
