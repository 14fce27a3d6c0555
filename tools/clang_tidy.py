#!/usr/bin/env python3
"""Runs clang-tidy on the sources of a build, but not where it has passed before.

usage: clang_tidy.py BUILD_DIR PATTERN [JOBS]

PATTERN is a regular expression, searched in each path of compile_commands.json as seen from the
root of the repository. What a file's verdict depends on is the tool's version, its configuration,
the compile command, and the content of all files that the compilation read (as Ninja noted them,
so BUILD_DIR has to be built). When the digest of all that is that of a run that passed, the file
is passed over. Digests lie in $XDG_CACHE_HOME/hopwise/clang-tidy and hold for every clone.

Exit status: 0 all clean, 1 something was found (it is printed), 2 usage.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TOOL = "clang-tidy-19"
ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hopwise/clang-tidy"
# What was not used for so long is of sources that nobody has any more.
KEEP_S = 60 * 24 * 3600


def dependencies(build: Path) -> dict[str, list[str]]:
    """By object file, as Ninja writes it: "<object>: #deps <n>, …", then a path a line."""
    text = subprocess.run(
        ["ninja", "-C", str(build), "-t", "deps"], check=True, capture_output=True, text=True
    ).stdout
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            current.append(line.strip())
        elif ": #deps" in line:
            current = found.setdefault(line.split(": #deps")[0], [])
    return found


class Digests:
    def __init__(self, build: Path) -> None:
        self._build = build
        self._dependencies = dependencies(build)
        self._contents: dict[str, str] = {}
        version = subprocess.run([TOOL, "--version"], check=True, capture_output=True).stdout
        self._common = version + (ROOT / ".clang-tidy").read_bytes()

    def of(self, entry: dict[str, str]) -> str | None:
        """None when it is not known what the file depends on: then it is looked at."""
        found = re.search(r" -o (\S+)", entry["command"])
        read = self._dependencies.get(found[1], []) if found else []
        if entry["file"] not in (str(self._absolute(path)) for path in read):
            return None
        digest = hashlib.sha256(self._common)
        # Clones differ in their root alone.
        digest.update(entry["command"].replace(str(ROOT), "").encode())
        for path in sorted(read):
            digest.update(f"\n{path.replace(str(ROOT), '')} {self._content(path)}".encode())
        return digest.hexdigest()

    def _absolute(self, path: str) -> Path:
        return Path(os.path.normpath(self._build / path))

    def _content(self, path: str) -> str:
        if path not in self._contents:
            file = self._absolute(path)
            content = file.read_bytes() if file.exists() else b"absent"
            self._contents[path] = hashlib.sha256(content).hexdigest()
        return self._contents[path]


def findings(build: Path, entry: dict[str, str]) -> str:
    run = subprocess.run(
        [TOOL, "--quiet", "-p", str(build), entry["file"]],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if run.returncode == 0 else run.stdout + run.stderr


def forget_old() -> None:
    for stamp in CACHE.iterdir():
        if stamp.stat().st_mtime < time.time() - KEEP_S:
            stamp.unlink(missing_ok=True)


def chosen(build: Path, pattern: str) -> Iterator[dict[str, str]]:
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in sorted(entries, key=lambda entry: entry["file"]):
        if re.search(pattern, os.path.relpath(entry["file"], ROOT)):
            yield entry


def main(arguments: list[str]) -> int:
    if len(arguments) not in (2, 3):
        print(__doc__, file=sys.stderr)
        return 2
    build = Path(arguments[0]).resolve()
    jobs = int(arguments[2]) if len(arguments) == 3 else os.cpu_count()
    CACHE.mkdir(parents=True, exist_ok=True)
    forget_old()
    digests = Digests(build)
    entries = list(chosen(build, arguments[1]))
    if not entries:
        print(f"no source of {build} matches {arguments[1]}", file=sys.stderr)
        return 2

    def look(entry: dict[str, str]) -> str | None:
        """What was found; None: it passed before."""
        digest = digests.of(entry)
        stamp = CACHE / digest if digest else None
        if stamp and stamp.exists():
            stamp.touch()
            return None
        text = findings(build, entry)
        if stamp and not text:
            stamp.touch()
        return text

    passed_before = failed = 0
    with ThreadPoolExecutor(jobs) as pool:
        for text in pool.map(look, entries):
            passed_before += text is None
            failed += bool(text)
            if text:
                print(text, flush=True)
    print(f"{len(entries)} sources, {passed_before} of them as they passed before, {failed} faulty")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
