#!/usr/bin/env python3
"""Tests of tidy.py: each rule has trees that trip it and trees that do not."""

from __future__ import annotations

import unittest

import tidy


def body(lines: int) -> str:
    return "".join(f"  Call({number});\n" for number in range(lines))


def header(code: str) -> str:
    return "// What it is for.\n#pragma once\n" + code


class TidyTest(unittest.TestCase):
    def messages(self, rule: tidy.Rule, tree: tidy.Tree) -> list[str]:
        return [str(finding) for finding in sorted(rule(tree))]

    def assert_trips(self, rule: tidy.Rule, path: str, text: str, expected: str) -> None:
        found = self.messages(rule, {path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def assert_passes(self, rule: tidy.Rule, path: str, text: str) -> None:
        self.assertEqual(self.messages(rule, {path: text}), [])


class CodeOfTest(unittest.TestCase):
    def test_blanks_comments_and_literals_but_keeps_lines(self) -> None:
        code = tidy.code_of("a; // throw\n/* throw\n throw */ b; \"throw\" 'x' c;\n")
        self.assertNotIn("throw", code)
        self.assertEqual(code.count("\n"), 3)
        self.assertIn(" c;", code)

    def test_digit_separators_begin_no_literal(self) -> None:
        self.assertIn("throw", tidy.code_of("int a = 1'000; throw 2'000;"))

    def test_raw_strings_are_blanked_as_a_whole(self) -> None:
        code = tidy.code_of('auto s = R"yaml(\n{ "throw" \n)yaml"; int after;\n')
        self.assertNotIn("{", code)
        self.assertNotIn("throw", code)
        self.assertIn("int after;", code)


class FunctionsOfTest(unittest.TestCase):
    def names(self, text: str) -> list[tuple[str, int]]:
        return [(function.name, function.lines) for function in tidy.functions_of(text)]

    def test_free_functions_and_methods(self) -> None:
        text = (
            "namespace hopwise {\n"
            "int Free(int a) {\n  return a;\n}\n"
            "class Tree : public Base {\n public:\n"
            "  int size() const { return size_; }\n"
            "  void Grow(Options options = {}) {\n    if (a) {\n      b();\n    }\n  }\n"
            " private:\n  int size_ = 0;\n};\n"
            "bool Tree::operator==(const Tree& o) const {\n  return true;\n}\n"
            "}  // namespace hopwise\n"
        )
        self.assertEqual(
            self.names(text),
            [("Free", 3), ("size", 1), ("Grow", 5), ("Tree::operator==", 3)],
        )

    def test_member_initialisers_with_braces_belong_to_the_constructor(self) -> None:
        text = (
            "Tree::Tree(int a)\n    : a_{a},\n      b_(a), c_{} {\n  Build();\n}\n"
            "int F() { return 1; }\n"
        )
        self.assertEqual(self.names(text), [("Tree::Tree", 5), ("F", 1)])

    def test_values_and_types_are_no_functions(self) -> None:
        text = (
            "constexpr std::array<int, 2> kTable = {\n  1,\n  2,\n};\n"
            "const std::function<int(int)> kCall = {\n  Other};\n"
            "enum class Mode : std::uint8_t { kA, kB };\n"
            "template <typename T>\nstruct Pair {\n  T a{};\n  T b{1};\n};\n"
            "const auto kMade = Make([](int a) {\n  return a;\n});\n"
        )
        self.assertEqual(self.names(text), [])

    def test_preprocessor_lines_do_not_count_as_braces(self) -> None:
        text = "#define BEGIN() \\\n  do {\nint F() {\n  return 1;\n}\n"
        self.assertEqual(self.names(text), [("F", 3)])

    def test_gtest_cases_are_functions(self) -> None:
        self.assertEqual(self.names("TEST(Tree, Grows) {\n  Run();\n}\n"), [("TEST", 3)])


class SizeTest(TidyTest):
    def test_line_length(self) -> None:
        rule = tidy.rule_line_length
        self.assert_trips(rule, "src/base/a.cc", "x" * 101, "src/base/a.cc:1: 101 columns")
        self.assert_trips(rule, "dev", "#\n#" + "x" * 100, "dev:2: 101 columns")
        self.assert_passes(rule, "src/base/a.cc", "x" * 100)
        self.assert_passes(rule, "docs/a.md", "x" * 300)

    def test_function_length(self) -> None:
        rule = tidy.rule_function_length
        long = "int A() { return 1; }\nvoid Long() {\n" + body(69) + "}\n"
        self.assert_trips(rule, "src/base/a.cc", long, "src/base/a.cc:2: Long has 71 lines")
        self.assert_passes(rule, "src/base/a.cc", "void Fits() {\n" + body(68) + "}\n")

    def test_file_length(self) -> None:
        rule = tidy.rule_file_length
        self.assert_trips(rule, "src/base/a.h", "//\n" * 251, "header of 251 lines")
        self.assert_trips(rule, "src/base/a.cc", "//\n" * 801, "source of 801 lines")
        self.assert_passes(rule, "src/base/a.h", "//\n" * 250)
        self.assert_passes(rule, "src/base/a.cc", "//\n" * 800)


class BannedTest(TidyTest):
    # path, code that is refused there, the word that the message names
    REFUSED = (
        ("src/kube/a.cc", "co_await x;", "co_await"),
        ("src/kube/a.cc", "  co_return;", "co_return"),
        ("src/base/a.h", "#include <coroutine>", "<coroutine>"),
        ("bench/a.cc", "absl::string_view s;", "absl::"),
        ("src/kube/a.cc", "#include <absl/status/status.h>", "<absl/"),
        ("src/sim/a.cc", "int a = std::rand();", "std::rand"),
        ("src/sim/a.cc", "srand(4);", "srand("),
        ("src/kube/a.cc", "std::random_device device;", "random_device"),
        ("src/cli/a.cc", "auto t = std::chrono::steady_clock::now();", "steady_clock::now"),
        ("src/cli/a.cc", "auto t = std::chrono::system_clock::now();", "system_clock::now"),
        ("src/base/a_test.cc", "using C = std::chrono::high_resolution_clock;", "high_resolution"),
        ("src/kube/a_test.cc", "std::this_thread::sleep_for(1ms);", "sleep_for"),
        ("src/sim/a.cc", "std::unordered_map<int, int> m;", "std::unordered_map"),
        ("src/api/a_test.cc", "std::unordered_set<int> m;", "std::unordered_set"),
        ("src/cli/a.cc", "throw std::runtime_error(what);", "throw"),
        ("src/sched/a.cc", "std::cout << 1;", "std::cout"),
        ("src/sim/a.cc", 'printf("x");', "printf("),
        ("src/api/a.cc", "fmt::print(text);", "fmt::print("),
        ("src/cluster/a.cc", "#include <mutex>", "<mutex>"),
        ("src/topology/a.h", "#include <fstream>", "<fstream>"),
        ("src/sched/a.cc", "double score = 0;", "double"),
        ("src/cluster/a.cc", "const float share = 0;", "float"),
    )
    LET_THROUGH = (
        ("src/kube/a.cc", "// co_await is banned"),
        ("src/kube/a.cc", 'Log("throw absl:: co_await");'),
        ("src/rt/a.cc", "auto t = std::chrono::steady_clock::now(); std::random_device d;"),
        ("bench/a.cc", "auto t = std::chrono::steady_clock::now();"),
        ("tests/quality/a.cc", "auto t = std::chrono::steady_clock::now();"),
        ("src/sim/a.cc", "prng.rand(4); Operand(3); brand(2);"),
        ("src/cli/a.cc", "std::unordered_map<int, int> m;"),
        ("src/api/a.cc", "boost::unordered_flat_map<int, int> m;"),
        ("src/cli/a.cc", "void F() noexcept; int rethrown = 1;"),
        ("src/base/a.cc", "std::snprintf(buffer, size, format); fmt::print(stderr, text);"),
        ("src/api/a_test.cc", "#include <fstream>"),
        ("src/sim/a.cc", "#include <mutex>"),
        ("src/sim/a.cc", "double mean = 0;"),
        ("src/sched/a.cc", "double share = 0;  // not a choice"),
        ("src/sched/a_test.cc", "double share = 0;"),
        ("src/sched/a.cc", "int doubled = 2; // a double"),
    )

    def test_refused(self) -> None:
        for path, code, word in self.REFUSED:
            with self.subTest(path=path, code=code):
                self.assert_trips(tidy.rule_banned, path, "\n" + code, f"{path}:2: '{word}")

    def test_let_through(self) -> None:
        for path, code in self.LET_THROUGH:
            with self.subTest(path=path, code=code):
                self.assert_passes(tidy.rule_banned, path, code)

    def test_every_ban_is_tested(self) -> None:
        for ban in tidy.BANS:
            with self.subTest(pattern=ban.pattern.pattern):
                self.assertTrue(any(ban.pattern.search(code) for _, code, _ in self.REFUSED))

    def test_open_ends(self) -> None:
        word = "TO" + "DO"
        rule = tidy.rule_open_ends
        self.assert_trips(rule, "src/base/a.cc", f"// {word}: later", "without an issue")
        self.assert_trips(rule, "dev", f"# {word}(me) later", "without an issue")
        self.assert_passes(rule, "src/base/a.cc", f"// {word}(#12): later")
        self.assert_passes(rule, "src/base/a.cc", "// kTodoList")


class StructureTest(TidyTest):
    def test_include_direction(self) -> None:
        rule = tidy.rule_includes
        self.assert_trips(
            rule, "src/base/a.cc", '#include "api/a.h"', "base may include nothing but not api"
        )
        self.assert_trips(
            rule, "src/control/a.h", '#include "sched/a.h"', "control may include base, api, "
        )
        self.assert_trips(rule, "src/sched/a.h", '#include "sim/a.h"', "but not sim")
        self.assert_trips(rule, "src/cli/a.h", '#include "agent/a.h"', "but not agent")
        self.assert_passes(rule, "src/sched/a.h", '#include "cluster/a.h"\n#include "sched/b.h"')
        self.assert_passes(rule, "src/cli/a.cc", '#include "sim/a.h"\n#include <CLI/CLI.hpp>')
        self.assert_passes(rule, "src/cluster/a_test.cc", '#include "sim/a.h"')

    def test_a_source_includes_its_own_header_first(self) -> None:
        def told(source: str) -> list[str]:
            tree = {"src/base/a.h": "// a\n", "src/base/a.cc": source}
            return self.messages(tidy.rule_own_header_first, tree)

        self.assertEqual(told('#include "base/a.h"\n\n#include <map>\n'), [])
        self.assertIn("a.cc:2", told('// a\n#include <map>\n#include "base/a.h"\n')[0])
        self.assertEqual(len(told("")), 1)
        self.assert_passes(tidy.rule_own_header_first, "src/base/main.cc", "#include <map>\n")

    def test_a_module_has_one_constant_of_a_name(self) -> None:
        def told(second: str) -> list[str]:
            text = "// x\ninline constexpr Duration kMost = Seconds(1);\n"
            return self.messages(tidy.rule_one_constant_of_a_name, {"src/base/a.h": text, **{
                second: "// y\n\ninline constexpr int kMost{2};\n"
            }})  # fmt: skip

        self.assertIn("b.h:3", told("src/base/b.h")[0])
        self.assertEqual(told("src/api/b.h"), [])
        self.assertEqual(told("src/base/b.cc"), [])

    def test_includes_name_a_module(self) -> None:
        rule = tidy.rule_includes
        self.assert_trips(rule, "src/base/a.cc", '#include "b.h"', 'the module too: "base/b.h"')
        self.assert_trips(rule, "src/base/a.cc", '#include "fmt/core.h"', "'fmt' is no module")
        self.assert_trips(rule, "src/new/a.cc", "", "'new' is no known module")

    def test_the_include_table_has_no_cycle(self) -> None:
        order = list(tidy.ALLOWED_INCLUDES)
        for module, allowed in tidy.ALLOWED_INCLUDES.items():
            for other in allowed:
                self.assertLess(order.index(other), order.index(module), (module, other))

    def test_headers(self) -> None:
        rule = tidy.rule_headers
        self.assert_trips(rule, "src/base/a.h", "#pragma once\n", "begin the header with a comment")
        self.assert_trips(rule, "src/base/a.h", "// What it is for.\n", "'#pragma once' is missing")
        self.assert_passes(rule, "src/base/a.h", header("int a;\n"))

    def test_files_are_listed(self) -> None:
        rule = tidy.rule_listed
        lists = "hopwise_add_module(NAME base HEADERS a.h SOURCES aa.cc sub/b.cc)"
        tree = {"src/base/CMakeLists.txt": lists, "src/base/a.cc": "", "src/base/sub/c.h": ""}
        found = self.messages(rule, tree)
        self.assertEqual(len(found), 2, found)
        self.assertIn("src/base/a.cc:1: name it in src/base/CMakeLists.txt", found[0])
        self.assertIn("src/base/sub/c.h:1: name it", found[1])
        listed = {"src/base/a.h": "", "src/base/aa.cc": "", "src/base/sub/b.cc": ""}
        self.assertEqual(self.messages(rule, {"src/base/CMakeLists.txt": lists, **listed}), [])

    def test_cases(self) -> None:
        rule = tidy.rule_cases
        self.assert_trips(rule, "tests/cases/001-a.yml", "", "a case is a *.yaml file")
        for name in ("001-a.yaml", "README.md", "CMakeLists.txt", "cases_test.cc"):
            self.assert_passes(rule, f"tests/cases/{name}", "")


class DocumentTest(TidyTest):
    def test_titles(self) -> None:
        rule = tidy.rule_documents
        self.assert_trips(rule, "docs/a.md", "Text\n", "docs/a.md:1: 0 titles")
        self.assert_trips(rule, "docs/a.md", "# A\n\n# B\n", "docs/a.md:3: 2 titles")
        self.assert_passes(rule, "docs/a.md", "# A\n\n## B\n\n```\n# a comment\n```\n")

    def test_links(self) -> None:
        rule = tidy.rule_documents
        self.assert_trips(rule, "docs/a.md", "# A\n[b](b.md)\n", "docs/a.md:2: the link leads")
        tree = {
            "docs/a.md": "# A\n[b](b.md#part) [up](../src/) [self](#a) [web](https://x.y/z)\n"
            "`[code](no.md)`\n",
            "docs/b.md": "# B\n",
            "src/base/a.h": "",
        }
        self.assertEqual(self.messages(rule, tree), [])

    def test_forbidden_words(self) -> None:
        rule = tidy.rule_forbidden_words
        for word in (*tidy.FORBIDDEN_WORDS, "/" + "work/main"):
            with self.subTest(word=word):
                self.assert_trips(rule, "README.md", f"text\nsee {word.upper()}", "README.md:2: '")
        self.assert_passes(rule, "README.md", "hopwise-agent, src/network/a, a/work/b, ~/work/")


class WholeTest(TidyTest):
    def test_findings_are_sorted_and_complete(self) -> None:
        tree = {"src/base/b.h": "int a;\n", "src/base/a.cc": "throw 1;\n"}
        found = [(finding.path, finding.line) for finding in tidy.check(tree)]
        self.assertEqual(found, sorted(found))
        self.assertEqual(len(found), 5)

    def test_a_clean_tree_passes(self) -> None:
        tree = {
            "src/base/CMakeLists.txt": "hopwise_add_module(NAME base HEADERS a.h SOURCES a.cc)",
            "src/base/a.h": header("int A();\n"),
            "src/base/a.cc": '#include "base/a.h"\n\nint A() { return 1; }\n',
            "docs/a.md": "# A\n",
        }
        self.assertEqual(tidy.check(tree), [])


if __name__ == "__main__":
    unittest.main()
