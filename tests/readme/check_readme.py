#!/usr/bin/env python3
"""Whether the ```console blocks of README.md and of the pages in docs/ print what they say.

A line that begins with "$ " is run by bash with hopwise on the PATH; a line that ends in "\\" goes
on in the next one. What follows it, up to the next "$ " or the end of the block, must equal what it
prints, standard output and standard error together. README.md's commands run in the repository
root, those of another page in a folder that holds the eight nodes of the examples as cluster.yaml
and each of the page's blocks whose first line is a comment with nothing but a file's name.

Usage: tests/readme/check_readme.py --hopwise BIN [--update] [file.md ...]
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TIMEOUT_S = 60


@dataclasses.dataclass
class Command:
    line: int  # 0-based, of its first "$ "
    shown: list[str]  # its lines as written
    expected: list[str]

    @property
    def text(self) -> str:
        return "\n".join([self.shown[0][2:], *self.shown[1:]])


def commands_of(lines: list[str]) -> list[Command]:
    found: list[Command] = []
    inside = False
    continued = False
    for number, line in enumerate(lines):
        if line.startswith("```"):
            inside = line.strip() == "```console"
            continued = False
        elif not inside:
            continue
        elif continued:
            found[-1].shown.append(line)
            continued = line.endswith("\\")
        elif line.startswith("$ "):
            found.append(Command(number, [line], []))
            continued = line.endswith("\\")
        elif found:
            found[-1].expected.append(line)
    return found


def write_files(lines: list[str], folder: pathlib.Path) -> None:
    """The files that a page shows."""
    shutil.copy(ROOT / "examples" / "eight-nodes" / "cluster.yaml", folder)
    block: list[str] | None = None
    for line in lines:
        if not line.startswith("```"):
            if block is not None:
                block.append(line)
            continue
        if block:
            name = re.fullmatch(r"# ([\w.-]+\.(?:yaml|conf))", block[0])
            if name:
                (folder / name.group(1)).write_text("\n".join(block) + "\n", encoding="utf-8")
        block = [] if block is None else None


def output_of(
    command: Command, environment: dict[str, str], folder: pathlib.Path
) -> list[str]:
    done = subprocess.run(
        ["bash", "-c", command.text],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    # Markdown in this repository has no blanks at the ends of lines.
    return [line.rstrip() for line in done.stdout.splitlines()]


def check(path: pathlib.Path, environment: dict[str, str], update: bool) -> int:
    if path.resolve().parent == ROOT:
        return check_in(ROOT, path, environment, update)
    with tempfile.TemporaryDirectory() as folder:
        write_files(path.read_text(encoding="utf-8").splitlines(), pathlib.Path(folder))
        return check_in(pathlib.Path(folder), path, environment, update)


def check_in(
    folder: pathlib.Path, path: pathlib.Path, environment: dict[str, str], update: bool
) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    commands = commands_of(lines)
    if not commands:
        print(f"{path.name}: no console block with a command")
        return 1
    wrong = 0
    # In order, as later commands may use what earlier ones wrote; changed from the end.
    outputs = [output_of(command, environment, folder) for command in commands]
    for command, printed in reversed(list(zip(commands, outputs))):
        if printed == command.expected:
            continue
        first = command.line + len(command.shown)
        if update:
            lines[first : first + len(command.expected)] = printed
            continue
        wrong += 1
        print(f"{path.name}:{command.line + 1}: {command.shown[0]}")
        for line in difflib.unified_diff(
            command.expected, printed, "written", "printed", lineterm=""
        ):
            print(f"    {line}")
    if update:
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{path.name}: {len(commands)} commands, {wrong} print something else")
    return wrong


def pages() -> list[str]:
    """README.md, and the pages in docs/ that show commands."""
    found = [ROOT / "README.md"]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if commands_of(page.read_text(encoding="utf-8").splitlines()):
            found.append(page)
    return [str(page) for page in found]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--hopwise", required=True, help="the program")
    parser.add_argument("--update", action="store_true", help="write what is printed into the file")
    parser.add_argument("files", nargs="*", default=pages())
    options = parser.parse_args()
    folder = pathlib.Path(options.hopwise).resolve().parent
    environment = dict(os.environ, PATH=f"{folder}:{os.environ['PATH']}", LC_ALL="C.UTF-8")
    wrong = [check(pathlib.Path(file), environment, options.update) for file in options.files]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
