#!/usr/bin/env python3
"""The house rules that no compiler checks. HACKING.md gives the reasons.

Usage: tools/tidy.py [repository root]. Prints one line per finding, as file:line, and exits 1 if
there is any.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Callable, Iterator

MAX_FUNCTION_LINES = 70
MAX_LINE_COLUMNS = 100
MAX_HEADER_LINES = 250
MAX_SOURCE_LINES = 800

CORE = ("base", "api", "topology", "cluster", "sched", "control")

# What each module may include besides itself.
ALLOWED_INCLUDES = {
    "base": (),
    "rt": ("base",),
    "api": ("base",),
    "topology": ("base", "api"),
    "cluster": ("base", "api", "topology"),
    "sched": ("base", "api", "topology", "cluster"),
    "control": ("base", "api", "topology", "cluster"),
    "sim": CORE,
    "kube": ("base", "rt", "api"),
    "server": ("base", "rt", "api"),
    "daemon": CORE + ("rt", "sim", "kube", "server"),
    "agent": ("base", "rt", "api", "topology", "kube"),
    "cli": CORE + ("rt", "sim", "kube", "server", "daemon"),
}


@dataclasses.dataclass(frozen=True, order=True)
class Finding:
    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


# A repository as the rules see it: the text of each file by its path from the root.
Tree = dict[str, str]
Rule = Callable[[Tree], Iterator[Finding]]


# --- reading C++ ----------------------------------------------------------------------------------

_LEXEME = re.compile(
    r"""(?P<number>\b\d(?:[\w.]|'(?=\w))*)
      | (?P<raw>R"(?P<tag>[^()\s]*)\((?:.*?)\)(?P=tag)")
      | (?P<blank>//[^\n]* | /\*.*?\*/)
      | (?P<quoted>"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+')""",
    re.DOTALL | re.VERBOSE,
)


def code_of(text: str) -> str:
    """The text with comments and the insides of literals blanked; every line keeps its number."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        if match.group("number"):
            return found
        hidden = re.sub(r"[^\n]", " ", found)
        return hidden if match.group("blank") else '"' + hidden[1:-1] + '"'

    return _LEXEME.sub(blank, text)


def line_of(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


@dataclasses.dataclass(frozen=True)
class Function:
    name: str
    first_line: int
    last_line: int

    @property
    def lines(self) -> int:
        return self.last_line - self.first_line + 1


_CONTAINER_HEAD = re.compile(r'\b(?:namespace|class|struct|union|enum)\b[^()]*$|\bextern\s*"')
_ATTRIBUTE_MACRO = re.compile(r"\b[A-Z][A-Z_]+\([^()]*\)")
_MEMBER_INITIALISERS = re.compile(r"\)\s*(?:noexcept\s*(?:\([^()]*\)\s*)?)?:(?!:)")
_CALLED_NAME = re.compile(r"((?:\w+::)*(?:~?\w+|operator\s*[^\s\w(]+))\s*\(")
# What stands before a method without being part of it.
_LEAD = re.compile(r"(?:\s|\b(?:public|protected|private)\s*:(?!:))*")


def _kind_of_brace(head: str) -> str:
    """What an opening brace at namespace or class level begins, from the text before it."""
    if _CONTAINER_HEAD.search(_ATTRIBUTE_MACRO.sub("", head)):
        return "container"
    if "(" not in head or re.search(r"=\s*$", head):
        return "value"
    if _MEMBER_INITIALISERS.search(head) and re.search(r"[\w>]\s*$", head):
        return "member"
    return "function"


def functions_of(text: str) -> list[Function]:
    """The functions of a C++ file in our format; a lambda belongs to the function around it."""
    code = re.sub(
        r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*",
        lambda m: re.sub(r"[^\n]", " ", m.group()),
        code_of(text),
        flags=re.MULTILINE,
    )
    found: list[Function] = []
    head_start = 0
    parens = 0
    inner = 0  # depth of braces inside a function or a value
    kind = "container"
    function_start = 0
    for match in re.finditer(r"[{}();]", code):
        token, at = match.group(), match.start()
        if inner > 0:
            inner += (token == "{") - (token == "}")
            if inner == 0:
                if kind == "function":
                    head = code[function_start:at]
                    name = _CALLED_NAME.search(head)
                    first = function_start + _LEAD.match(head).end()
                    found.append(
                        Function(
                            name.group(1) if name else "function",
                            line_of(code, first),
                            line_of(code, at),
                        )
                    )
                if kind != "member":
                    head_start = at + 1
        elif token in "()":
            parens += 1 if token == "(" else -1
        elif token == "{":
            kind = "member" if parens > 0 else _kind_of_brace(code[head_start:at])
            if kind == "container":
                head_start = at + 1
            else:
                inner = 1
                function_start = head_start
        elif parens == 0:
            head_start = at + 1
    return found


def is_cpp(path: str) -> bool:
    return path.endswith((".cc", ".h"))


def is_script(path: str) -> bool:
    name = os.path.basename(path)
    return path.endswith((".py", ".sh", ".cmake")) or name in ("CMakeLists.txt", "dev", "run")


def is_test(path: str) -> bool:
    return path.endswith("_test.cc") or path.startswith("tests/")


def module_of(path: str) -> str | None:
    parts = path.split("/")
    return parts[1] if parts[0] == "src" and len(parts) > 2 else None


# --- sizes ----------------------------------------------------------------------------------------


def rule_line_length(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        if is_cpp(path) or is_script(path):
            for number, line in enumerate(text.splitlines(), 1):
                if len(line) > MAX_LINE_COLUMNS:
                    yield Finding(
                        path, number, f"{len(line)} columns; break the line at {MAX_LINE_COLUMNS}"
                    )


def rule_function_length(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        if is_cpp(path):
            for function in functions_of(text):
                if function.lines > MAX_FUNCTION_LINES:
                    yield Finding(
                        path,
                        function.first_line,
                        f"{function.name} has {function.lines} lines; "
                        f"split it into parts of at most {MAX_FUNCTION_LINES} that have a name",
                    )


def rule_file_length(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        lines = len(text.splitlines())
        if path.endswith(".h") and lines > MAX_HEADER_LINES:
            yield Finding(
                path, lines, f"header of {lines} lines; split it at {MAX_HEADER_LINES} by purpose"
            )
        if path.endswith(".cc") and lines > MAX_SOURCE_LINES:
            yield Finding(
                path, lines, f"source of {lines} lines; split it at {MAX_SOURCE_LINES} by purpose"
            )


# --- banned words of C++ --------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Ban:
    pattern: re.Pattern[str]
    advice: str
    applies: Callable[[str], bool]
    # A line with this comment is let through; empty: no way around.
    pardon: str = ""


def in_src(path: str) -> bool:
    return path.startswith("src/")


def in_src_but_rt(path: str) -> bool:
    return in_src(path) and module_of(path) != "rt"


def in_product_of(*modules: str) -> Callable[[str], bool]:
    return lambda path: module_of(path) in modules and not is_test(path)


BANS = (
    Ban(
        re.compile(r"\bco_(?:await|yield|return)\b|<coroutine>"),
        "no coroutines: gcc 12 miscompiles them silently; use a callback or a message",
        is_cpp,
    ),
    Ban(re.compile(r"\babsl::|<absl/"), "no abseil: use std, tl::expected or boost", is_cpp),
    Ban(
        re.compile(r"\bstd::s?rand\b|(?<![\w:.>])s?rand\s*\(|\brandom_device\b"),
        "no hidden randomness: take a Prng& so that the run can be replayed",
        in_src_but_rt,
    ),
    Ban(
        re.compile(r"\b(?:system_clock|steady_clock)::now\b|\bhigh_resolution_clock\b"),
        "no clock here: take the time as an argument so that the run can be replayed",
        in_src_but_rt,
    ),
    Ban(
        re.compile(r"\bsleep_(?:for|until)\b"),
        "no sleeping: wait for the event, or advance the time by hand",
        in_src_but_rt,
    ),
    Ban(
        re.compile(r"\bstd::unordered_(?:multi)?(?:map|set)\b"),
        "its order differs between libraries: use a vector by dense id, std::map, or "
        "boost::unordered_flat_map for look-up only",
        lambda path: module_of(path) in CORE + ("sim",),
    ),
    Ban(
        re.compile(r"\bthrow\b"),
        "nothing is thrown: return a Result for the outside world, CHECK for a bug",
        in_src,
    ),
    Ban(
        re.compile(
            r"\bstd::cout\b|\bprintf\s*\(|\bfprintf\s*\(\s*stdout|\bfmt::print\s*\((?!stderr)"
        ),
        "the core prints nothing: return the text, or log through base/log.h",
        in_product_of(*CORE, "sim"),
    ),
    Ban(
        re.compile(r"<(?:thread|mutex|iostream|fstream|filesystem)>"),
        "the core has no threads, locks or files: that belongs to the shell (rt, cli, ...)",
        in_product_of(*CORE),
    ),
    Ban(
        re.compile(r"\b(?:double|float)\b"),
        "choices are made in scaled integers; if no choice depends on it, end the line with "
        "'// not a choice'",
        in_product_of("sched", "cluster"),
        pardon="// not a choice",
    ),
)


def rule_banned(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        bans = [ban for ban in BANS if ban.applies(path)] if is_cpp(path) else []
        if not bans:
            continue
        raw_lines = text.splitlines()
        for number, line in enumerate(code_of(text).splitlines(), 1):
            for ban in bans:
                match = ban.pattern.search(line)
                if match and not (ban.pardon and ban.pardon in raw_lines[number - 1]):
                    yield Finding(path, number, f"'{match.group().strip()}': {ban.advice}")


_OPEN_END = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME)\b(?!\(#\d+\))")


def rule_open_ends(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        if is_cpp(path) or is_script(path):
            for number, line in enumerate(text.splitlines(), 1):
                match = _OPEN_END.search(line)
                if match:
                    word = match.group()
                    yield Finding(path, number, f"{word} without an issue: write {word}(#12)")


# --- structure ------------------------------------------------------------------------------------

_INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def rule_includes(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        module = module_of(path)
        if module is None or not is_cpp(path):
            continue
        if module not in ALLOWED_INCLUDES:
            yield Finding(path, 1, f"'{module}' is no known module; add it to tools/tidy.py")
            continue
        for number, line in enumerate(text.splitlines(), 1):
            match = _INCLUDE.match(line)
            if not match:
                continue
            target = match.group(1).split("/")[0]
            if "/" not in match.group(1):
                yield Finding(path, number, f'write the module too: "{module}/{match.group(1)}"')
            elif target not in ALLOWED_INCLUDES:
                yield Finding(path, number, f"'{target}' is no module; use <> for libraries")
            elif target not in (module, *ALLOWED_INCLUDES[module]) and not is_test(path):
                allowed = ", ".join(ALLOWED_INCLUDES[module]) or "nothing"
                yield Finding(
                    path, number, f"{module} may include {allowed} but not {target}; move the code"
                )


_ANY_INCLUDE = re.compile(r'^\s*#\s*include\s+["<]([^">]+)[">]', re.MULTILINE)


# What proves that the header compiles alone; cmake/Module.cmake compiles only the others by
# themselves.
def rule_own_header_first(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        header = path.removesuffix(".cc") + ".h"
        if not path.startswith("src/") or not path.endswith(".cc") or header not in tree:
            continue
        first = _ANY_INCLUDE.search(text)
        own = header.removeprefix("src/")
        if first is None or first.group(1) != own:
            number = text.count("\n", 0, first.start()) + 1 if first else 1
            yield Finding(path, number, f'include "{own}" before anything else')


_CONSTANT = re.compile(r"^inline constexpr [^=;{]*?\b(k[A-Z]\w*)(?:\[\])?\s*[={]", re.MULTILINE)


# The linker takes either of two constants of one name, for both.
def rule_one_constant_of_a_name(tree: Tree) -> Iterator[Finding]:
    first: dict[tuple[str, str], str] = {}
    for path, text in sorted(tree.items()):
        module = module_of(path)
        if module is None or not path.endswith(".h"):
            continue
        for match in _CONSTANT.finditer(text):
            other = first.setdefault((module, match.group(1)), path)
            if other != path:
                number = text.count("\n", 0, match.start()) + 1
                yield Finding(path, number, f"{match.group(1)} is in {other} too; rename one")


def rule_headers(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        if not path.endswith(".h"):
            continue
        first = text.split("\n", 1)[0]
        if not re.match(r"//+ *\S+ +\S+", first):
            yield Finding(path, 1, "begin the header with a comment that says what it is for")
        if not re.search(r"^#pragma once$", text, re.MULTILINE):
            yield Finding(path, 1, "'#pragma once' is missing")


def rule_listed(tree: Tree) -> Iterator[Finding]:
    for path in tree:
        module = module_of(path)
        if module is None or not is_cpp(path):
            continue
        lists = tree.get(f"src/{module}/CMakeLists.txt", "")
        name = path.removeprefix(f"src/{module}/")
        if not re.search(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])", lists):
            yield Finding(path, 1, f"name it in src/{module}/CMakeLists.txt, or delete it")


def rule_cases(tree: Tree) -> Iterator[Finding]:
    for path in tree:
        if path.startswith("tests/cases/"):
            name = os.path.basename(path)
            if not name.endswith((".yaml", "_test.cc")) and name not in (
                "README.md",
                "CMakeLists.txt",
            ):
                yield Finding(path, 1, "a case is a *.yaml file; nothing else belongs here")


# --- documents ------------------------------------------------------------------------------------

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)[^)]*\)")


def prose_of(text: str) -> list[str]:
    """The lines of a Markdown text, those of code blocks emptied and code spans removed."""
    lines = []
    fenced = False
    for line in text.splitlines():
        if re.match(r"\s*(```|~~~)", line):
            fenced = not fenced
            line = ""
        lines.append("" if fenced else re.sub(r"`[^`]*`", "", line))
    return lines


def rule_documents(tree: Tree) -> Iterator[Finding]:
    folders = {str(parent) for path in tree for parent in pathlib.PurePosixPath(path).parents}
    for path, text in tree.items():
        if not path.endswith(".md"):
            continue
        lines = prose_of(text)
        titles = [number for number, line in enumerate(lines, 1) if re.match(r"# ", line)]
        if len(titles) != 1:
            yield Finding(
                path, titles[1] if titles else 1, f"{len(titles)} titles ('# …'); have exactly one"
            )
        for number, line in enumerate(lines, 1):
            for target in _LINK.findall(line):
                if re.match(r"[a-z]+:|#", target):
                    continue
                place = os.path.normpath(
                    os.path.join(os.path.dirname(path), target.split("#")[0])
                )
                if place not in tree and place not in folders:
                    yield Finding(path, number, f"the link leads nowhere: {target}")


# Each is written in two pieces, so that this file does not trip over itself.
FORBIDDEN_WORDS = (
    "pypi" ".org",
    "pythonhosted" ".org",
    "registry" ".npmjs.org",
    "proxy" ".golang.org",
    "deb" ".debian.org",
    "crates" ".io",
    "ai" " agent",
    "llm" " session",
)
_FORBIDDEN = re.compile(
    r"\b(?:" + "|".join(map(re.escape, FORBIDDEN_WORDS)) + r")\b|(?<![\w.~-])/" r"work/",
    re.IGNORECASE,
)


def rule_forbidden_words(tree: Tree) -> Iterator[Finding]:
    for path, text in tree.items():
        for number, line in enumerate(text.splitlines(), 1):
            match = _FORBIDDEN.search(line)
            if match:
                yield Finding(
                    path,
                    number,
                    f"'{match.group()}' names a place or a tool that the repository must not "
                    "depend on; leave it to the machine's configuration",
                )


RULES: tuple[Rule, ...] = (
    rule_line_length,
    rule_function_length,
    rule_file_length,
    rule_banned,
    rule_open_ends,
    rule_includes,
    rule_own_header_first,
    rule_one_constant_of_a_name,
    rule_headers,
    rule_listed,
    rule_cases,
    rule_documents,
    rule_forbidden_words,
)


# --- running --------------------------------------------------------------------------------------


def check(tree: Tree) -> list[Finding]:
    return sorted(finding for rule in RULES for finding in rule(tree))


def read_tree(root: pathlib.Path) -> Tree:
    """The text files of a checkout, tracked and new, but none that git ignores."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    tree: Tree = {}
    for path in sorted(set(listing.stdout.split("\0")) - {""}):
        if (root / path).is_file():
            try:
                tree[path] = (root / path).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue
    return tree


def main(arguments: list[str]) -> int:
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).parent.parent)
    tree = read_tree(root)
    findings = check(tree)
    for finding in findings:
        print(finding)
    print(f"tidy: {len(tree)} files, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
