#!/usr/bin/env python3
"""Random and nasty small clusters with a pod to be judged on them, a JSON case a line.

    generate.py --seed 7                          one case, the same each time
    generate.py --seed 1 --count 1000             the cases of the seeds 1 to 1000
    generate.py --seed 1 --features taints,ports  its features drawn from these
    generate.py --seed 1 --exactly taints,ports   made of these and no others
    generate.py --list                            the features

A case has the objects that an API server would hold, by kind, and what it was made of: `id`, its
seed, and `features`. Seed and features make the case.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence

import generate_nodes
import generate_pods
import generate_storage
from ingredients import Case, Draw, Object

FEATURES: dict[str, Callable[[Case], None]] = (
    generate_nodes.FEATURES | generate_pods.FEATURES | generate_storage.FEATURES
)
# Of each group a case has one at most: they write the same fields, or the one hides the other.
EXCLUSIVE = (
    {"gates", "node_name"},
    {"ports", "declared_features"},
    {"node_affinity", "match_fields", "spread", "spread_preferences"},
    {"allocated_devices", "unallocated_devices"},
    {
        "ephemeral_storage",
        "extended_resources",
        "fractions",
        "full_requests",
        "init_containers",
        "passing_pods",
        "pod_level_resources",
        "resize",
        "resources",
    },
)
MOST_FEATURES = 4


def draw_features(seed: int, allowed: Sequence[str] = tuple(FEATURES)) -> list[str]:
    draw = Draw(f"features of {seed}")
    chosen: list[str] = []
    for name in draw.sample(sorted(allowed), min(draw.randint(1, MOST_FEATURES), len(allowed))):
        if not any(name in group and group.intersection(chosen) for group in EXCLUSIVE):
            chosen.append(name)
    return chosen


def make(seed: int, features: Sequence[str]) -> Object:
    case = Case(Draw(seed))
    for name in features:
        FEATURES[name](case)
    return {"id": seed, "features": list(features)} | case.result()


def parse_features(text: str) -> list[str]:
    names = [name for name in text.split(",") if name]
    unknown = sorted(set(names) - set(FEATURES))
    if unknown or not names:
        raise argparse.ArgumentTypeError(
            f"no such feature: {', '.join(unknown) or repr(text)}; generate.py --list names them"
        )
    return names


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which cases: the arguments that whoever makes cases has in common."""
    parser.add_argument("--seed", type=int, default=1, help="of the first case")
    parser.add_argument("--count", type=int, default=1, help="how many cases")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--features", type=parse_features, metavar="A,B", help="to draw from")
    group.add_argument("--exactly", type=parse_features, metavar="A,B", help="to be made of")


def chosen_cases(
    arguments: argparse.Namespace, otherwise: Sequence[str] = tuple(FEATURES)
) -> list[tuple[int, list[str]]]:
    """Seed and features of each case; drawn from `otherwise` where none are named."""
    return [
        (seed, arguments.exactly or draw_features(seed, arguments.features or otherwise))
        for seed in range(arguments.seed, arguments.seed + arguments.count)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add_arguments(parser)
    parser.add_argument("--list", action="store_true", help="print the features and exit")
    arguments = parser.parse_args()
    if arguments.list:
        print("\n".join(FEATURES))
        return
    for seed, features in chosen_cases(arguments):
        json.dump(make(seed, features), sys.stdout)
        sys.stdout.write("\n")


if __name__ == "__main__":
    main()
