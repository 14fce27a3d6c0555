#!/usr/bin/env python3
"""Compares the scheduler's placements with the best possible ones on random small clusters.

    run.py --driver build/release/test/quality_driver --cases 2000 --seed 1

The claim: the scheduler never breaks a rule, never leaves out a gang that fits, never finds higher
tiers than the best placement has, and opens more domains in at most 1 % of the cases. A failing
case is shown with the command that replays it.
"""

from __future__ import annotations

import argparse
import collections
import json
import subprocess
import sys
import time

import cases
import reference

# What may happen in so many of a thousand cases; everything else never.
ALLOWED_PER_MILLE = {"more domains": 10}
MOST_SHOWN = 5


def classify(case: cases.Case, answer: dict) -> tuple[str, str]:
    """The kind of mismatch ("" for none) and its numbers."""
    problem = reference.Problem(case)
    best = reference.best(problem)
    if answer["audit"]:
        return "state is inconsistent", answer["audit"]
    if not problem.waiting:
        return "", ""
    if not answer["binds"]:
        if best is not None:
            return f"fits, but verdict {answer['verdict']}", f"best {best}; {answer['message']}"
        alone = reference.Problem(case | {"fillers": []})
        if answer["verdict"] == "never" and reference.best(alone) is not None:
            return "verdict never, but fits once others are gone", answer["message"]
        return "", ""
    vector, broken = reference.judge(problem, answer["binds"])
    if vector is None:
        return "breaks a rule", broken
    if best is None or vector < best:
        return "better than the reference", f"found {vector}, reference {best}"
    if vector == best:
        return "", ""
    difference = f"found {vector}, best {best}"
    if vector[0] != best[0]:
        return "higher tier of a sub-group", difference
    if vector[1] != best[1]:
        return "higher tier of the gang", difference
    return "more domains", difference


def check_reference(seed: int, count: int) -> int:
    """Tries every placement of the smallest cases: how many the reference was compared on."""
    compared = 0
    for number in range(seed, seed + 40 * count):
        problem = reference.Problem(cases.make(number))
        done, best = reference.brute_force(problem, 2_000)
        if done and problem.waiting:
            compared += 1
            found = reference.best(problem)
            assert found == best, f"reference wrong on seed {number}: {found}, best {best}"
        if compared == count:
            break
    return compared


def run_driver(driver: str, batch: list[cases.Case]) -> list[dict]:
    text = "".join(json.dumps(case) + "\n" for case in batch)
    done = subprocess.run([driver], input=text, capture_output=True, text=True, check=False)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode != 0 or len(answers) != len(batch):
        sys.exit(f"{driver} failed on seed {batch[len(answers)]['id']}: {done.stderr}")
    return answers


def draw(case: cases.Case) -> str:
    """The fabric as one line: tier(name: nodes with what is free)."""
    problem = reference.Problem(case)
    inside = {m[1:] for h in case["hypernodes"] for m in h["members"] if m[0] == "/"}
    by_name = {h["name"]: h for h in case["hypernodes"]}

    def node(name: str) -> str:
        free = problem.free[name]
        return f"{name}[{free['gpu']}g {free['cpu']}c {free['pods']}p]"

    def one(name: str) -> str:
        h = by_name[name]
        parts = [one(m[1:]) if m[0] == "/" else node(m) for m in h["members"]]
        return f"{name}@{h['tier']}({' '.join(parts)})"

    lone = [node(n) for n, d in problem.fabric.leaf_of.items() if d == 0]
    return " ".join([one(h["name"]) for h in case["hypernodes"] if h["name"] not in inside] + lone)


def show(case: cases.Case, answer: dict, kind: str, detail: str, driver: str) -> None:
    pods = []
    for pod in case["pods"]:
        place = "@" + pod["node"] if pod.get("node") else ""
        pods.append(f"{pod['name']}{pod['asks']}{pod.get('role', '')}{pod.get('part', '')}{place}")
    print(f"\n{kind}: {detail}")
    print(f"  fabric  {draw(case)}")
    print(f"  gang    {case['gang']}")
    print(f"  pods    {' '.join(pods)}")
    print(f"  binds   {answer['binds']}")
    print(f"  replay: {sys.argv[0]} --driver {driver} --cases 1 --seed {case['id']}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--driver", required=True)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=MOST_SHOWN, help="cases shown of each kind")
    parser.add_argument("--allow", action="append", default=[], metavar="KIND=PER_MILLE",
                        help="let a kind of mismatch pass so often, to guard what is reached today")
    args = parser.parse_args()
    limits = dict(ALLOWED_PER_MILLE)
    for item in args.allow:
        kind, _, per_mille = item.partition("=")
        limits[kind] = int(per_mille)
    start = time.monotonic()
    batch = [cases.make(seed) for seed in range(args.seed, args.seed + args.cases)]
    answers = run_driver(args.driver, batch)
    decided = time.monotonic()
    found: dict[str, list[int]] = collections.defaultdict(list)
    by_kind: dict[str, collections.Counter] = collections.defaultdict(collections.Counter)
    for case, answer in zip(batch, answers):
        kind, detail = classify(case, answer)
        by_kind[case["kind"]][kind] += 1
        if kind:
            found[kind].append(case["id"])
            if len(found[kind]) <= args.show:
                show(case, answer, kind, detail, args.driver)
    compared = check_reference(args.seed, min(100, args.cases)) if args.cases > 1 else 0
    placed = sum(1 for answer in answers if answer["binds"])
    print(f"\nseed {args.seed}, {args.cases} cases: {placed} placed; "
          f"driver {decided - start:.1f} s, reference {time.monotonic() - decided:.1f} s; "
          f"{compared} small cases agree with brute force")
    for kind, counter in sorted(by_kind.items()):
        wrong = ", ".join(f"{n} {name}" for name, n in sorted(counter.items()) if name)
        print(f"  {kind}: {counter.total()} cases, {wrong or 'all as good as the best'}")
    failed = False
    for kind, seeds in sorted(found.items()):
        allowed = args.cases * limits.get(kind, 0) // 1000
        failed |= len(seeds) > allowed
        print(f"{kind}: {len(seeds)} (allowed {allowed}), seeds {seeds[:20]}")
    print("FAILED" if failed else "as good as the best" + (" within the limits" if found else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
