"""What is passed over by tools/clang_tidy.py, and what is not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = Path(__file__).resolve().with_name("clang_tidy.py")

NINJA = """\
rule cxx
  command = clang++-19 -MD -MF $out.d -o $out -c $in
  depfile = $out.d
  deps = gcc
build a.o: cxx {root}/src/a.cc
build b.o: cxx {root}/src/b.cc
"""
COMMANDS = """\
[{{"directory": "{build}", "file": "{root}/src/a.cc",
  "command": "clang++-19 -o a.o -c {root}/src/a.cc"}},
{{"directory": "{build}", "file": "{root}/src/b.cc",
  "command": "clang++-19 -o b.o -c {root}/src/b.cc"}}]
"""


class Tree:
    def __init__(self, root: Path, cache: Path) -> None:
        self.root, self.build, self.cache = root, root / "build", cache
        for folder in ("tools", "src", "build"):
            (root / folder).mkdir(parents=True)
        shutil.copy(TOOL, root / "tools")
        self.write(".clang-tidy", "Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\n")
        self.write("src/a.h", "#pragma once\ninline int* Nothing() { return nullptr; }\n")
        self.write("src/a.cc", '#include "a.h"\nint* a = Nothing();\n')
        self.write("src/b.cc", "int b = 1;\n")
        self.write("build/build.ninja", NINJA.format(root=root))
        self.write("build/compile_commands.json", COMMANDS.format(root=root, build=self.build))

    def write(self, path: str, text: str) -> None:
        (self.root / path).write_text(text)

    def look(self) -> tuple[int, str]:
        subprocess.run(["ninja", "-C", self.build], check=True, capture_output=True)
        run = subprocess.run(
            [sys.executable, self.root / "tools/clang_tidy.py", self.build, "^src/"],
            env={**os.environ, "XDG_CACHE_HOME": str(self.cache)},
            capture_output=True,
            text=True,
            check=False,
        )
        return run.returncode, run.stdout + run.stderr


class ClangTidyTest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.tree = Tree(self.folder / "one", self.folder / "cache")

    def test_what_passed_is_not_looked_at_again_until_something_it_reads_changes(self) -> None:
        clean = "2 sources, 0 of them as they passed before, 0 faulty\n"
        self.assertEqual(self.tree.look(), (0, clean))
        self.assertIn("2 of them", self.tree.look()[1])
        self.tree.write("src/a.h", "#pragma once\ninline int* Nothing() { return 0; }\n")
        status, text = self.tree.look()
        self.assertEqual(status, 1)
        self.assertIn("modernize-use-nullptr", text)
        self.assertIn("2 sources, 1 of them as they passed before, 1 faulty", text)

    def test_what_failed_fails_again(self) -> None:
        self.tree.write("src/b.cc", "int* b = 0;\n")
        for _ in range(2):
            status, text = self.tree.look()
            self.assertEqual(status, 1)
            self.assertIn("b.cc:1:10", text)

    def test_other_checks_are_another_run(self) -> None:
        self.tree.look()
        self.tree.write(".clang-tidy", "Checks: '-*,modernize-use-nullptr,modernize-use-using'\n")
        self.assertIn("0 of them", self.tree.look()[1])

    def test_another_clone_has_it_too(self) -> None:
        self.tree.look()
        self.assertIn("2 of them", Tree(self.folder / "two", self.folder / "cache").look()[1])

    def test_a_pattern_that_meets_nothing_is_an_error(self) -> None:
        run = subprocess.run(
            [sys.executable, self.tree.root / "tools/clang_tidy.py", self.tree.build, "^nowhere/"],
            env={**os.environ, "XDG_CACHE_HOME": str(self.tree.cache)},
            check=False,
            capture_output=True,
        )
        self.assertEqual(run.returncode, 2)


if __name__ == "__main__":
    unittest.main()
