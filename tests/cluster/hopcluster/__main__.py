"""python -m hopcluster build | up | status | down: the cluster for people. See ../README.md."""

from __future__ import annotations

import argparse
import pathlib
import sys

from hopcluster import binaries, person
from hopcluster.errors import ClusterError
from hopcluster.paths import ROOT, RUN


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="hopcluster", description=__doc__)
    top.add_argument(
        "--run-dir", type=pathlib.Path, default=RUN, help="where the cluster keeps its files"
    )
    commands = top.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build the programs of the control plane and the tests")
    for name, text in (("up", "start the cluster in the background"), ("serve", None)):
        up = commands.add_parser(name, **({"help": text} if text else {}))
        up.add_argument("--nodes", type=int, default=8, help="how many (default 8)")
        up.add_argument("--per-leaf", type=int, default=2, help="nodes under a leaf (default 2)")
        up.add_argument(
            "--leaves-per-spine", type=int, default=2, help="leaves under a spine (default 2)"
        )
        up.add_argument("--no-scheduler", action="store_true", help="without Hopwise")
        up.add_argument(
            "--hopwise",
            type=pathlib.Path,
            default=ROOT / "build" / "release" / "bin" / "hopwise",
            help="the program (default build/release/bin/hopwise)",
        )
        up.add_argument(
            "--scheduler-flag",
            action="append",
            default=[],
            metavar="FLAG",
            help="for hopwise scheduler, as in --scheduler-flag=--log-level=debug; repeatable",
        )
        up.add_argument(
            "--controller-flag",
            action="append",
            default=[],
            metavar="FLAG",
            help="for hopwise controller, likewise",
        )
        up.add_argument(
            "--kube-scheduler", action="store_true", help="with kube-scheduler beside Hopwise"
        )
        up.add_argument("--old-etcd", action="store_true", help="with Debian's etcd 3.4")
    commands.add_parser("status", help="say what runs; exit code 1 when nothing does")
    commands.add_parser("down", help="end everything and remove its files")
    return top


def main() -> int:
    arguments = parser().parse_args()
    try:
        match arguments.command:
            case "build":
                binaries.build(programs=binaries.EVERY_PROGRAM)
            case "up":
                person.up(arguments.run_dir, arguments)
            case "serve":
                person.serve(arguments.run_dir, arguments)
            case "status":
                return 0 if person.status(arguments.run_dir) else 1
            case "down":
                person.down(arguments.run_dir)
    except ClusterError as error:
        print(f"hopcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
