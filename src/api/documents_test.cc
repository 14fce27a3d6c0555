// From a file's text to its documents: YAML's meaning, Lists, and what a bad document may cost.
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <rapidcheck/gtest.h>

#include "api/decode.h"
#include "api/yaml_scalar.h"

namespace hopwise::api {
namespace {

// The JSON of the only document, or its error.
std::string Only(std::string_view text) {
  const auto documents = SplitDocuments(text);
  if (documents.size() != 1) return std::to_string(documents.size()) + " documents";
  return documents[0].error.empty() ? documents[0].json : documents[0].error;
}
// One line per document: "line index item json-or-error".
std::vector<std::string> All(std::string_view text) {
  std::vector<std::string> lines;
  for (const Document& d : SplitDocuments(text)) {
    lines.push_back(std::to_string(d.line) + " " + std::to_string(d.index) + " " +
                    std::to_string(d.item) + " " + (d.error.empty() ? d.json : d.error));
  }
  return lines;
}
using Lines = std::vector<std::string>;

using ScalarCase = std::pair<const char*, const char*>;

void ExpectScalars(std::span<const ScalarCase> cases) {
  for (const auto& [text, json] : cases) {
    const Scalar scalar = ResolvePlain(text);
    std::string written = scalar.json;
    if (scalar.type == ScalarType::kString) AppendJsonString(written, text);
    EXPECT_EQ(written, json) << text;
  }
}

TEST(YamlScalarTest, WordsMeanWhatKubectlTakesThemFor) {
  const ScalarCase cases[] = {
      {"~", "null"},
      {"null", "null"},
      {"Null", "null"},
      {"NULL", "null"},
      {"nULL", "\"nULL\""},
      {"", "null"},
      {"true", "true"},
      {"True", "true"},
      {"yes", "true"},
      {"YES", "true"},
      {"on", "true"},
      {"y", "true"},
      {"Y", "true"},
      {"n", "false"},
      {"No", "false"},
      {"Off", "false"},
      {"FALSE", "false"},
      {"yEs", "\"yEs\""},
      {"infinity", "\"infinity\""},
      {"<<", "\"<<\""},
  };
  ExpectScalars(cases);
  EXPECT_EQ(ResolvePlain(".inf").type, ScalarType::kNotFinite);
  EXPECT_EQ(ResolvePlain("-.INF").type, ScalarType::kNotFinite);
  EXPECT_EQ(ResolvePlain(".NaN").type, ScalarType::kNotFinite);
}

TEST(YamlScalarTest, NumbersMeanWhatKubectlTakesThemFor) {
  const ScalarCase cases[] = {
      {"0", "0"},
      {"-0", "0"},
      {"12", "12"},
      {"+12", "12"},
      {"-12", "-12"},
      {"1_000", "1000"},
      {"0x1F", "31"},
      {"0XfF", "255"},
      {"-0x10", "-16"},
      {"0b101", "5"},
      {"-0b101", "-5"},
      {"0o17", "15"},
      {"017", "15"},
      {"08", "8"},
      {"0x", "\"0x\""},
      {"0b2", "\"0b2\""},
      {"9223372036854775807", "9223372036854775807"},
      {"-9223372036854775808", "-9223372036854775808"},
      {"18446744073709551615", "18446744073709551615"},
      {"18446744073709551616", "18446744073709551616"},
      {"1e3", "1000"},
      {"1E+3", "1000"},
      {"1.5", "1.5"},
      {".5", "0.5"},
      {"1.", "1"},
      {"-1.5e-7", "-1.5e-7"},
      {"1e21", "1e+21"},
      {"1e400", "\"1e400\""},
      {"1e-400", "0"},
      {".", "\".\""},
      {"1.2.3", "\"1.2.3\""},
      {"1e", "\"1e\""},
      {"-", "\"-\""},
      {"--1", "\"--1\""},
      {"0x-1", "\"0x-1\""},
      {"500m", "\"500m\""},
      {"1Gi", "\"1Gi\""},
      {"2026-01-02", "\"2026-01-02\""},
      {"2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\""},
      {"12:30:45", "\"12:30:45\""},
      {"10.0.0.1", "\"10.0.0.1\""},
  };
  ExpectScalars(cases);
}

TEST(YamlTest, ValuesAndKeysBecomeJson) {
  const std::pair<const char*, const char*> cases[] = {
      {"a: b", R"({"a":"b"})"},
      {"{a: [1, 'x', \"y\\n\"], b: {}}", R"({"a":[1,"x","y\n"],"b":{}})"},
      {"a:\n- 1\n- b: 2\n  c:\n", R"({"a":[1,{"b":2,"c":null}]})"},
      {"a: |\n  x\n   y\nb: >-\n  p\n  q\n", R"({"a":"x\n y\n","b":"p q"})"},
      {"a: 'true'\nb: \"1\"", R"({"a":"true","b":"1"})"},
      {"true: 1\n1: 2\nx: 3\n0x10: 4\n1.5: 5\n1e6: 6",
       R"({"true":1,"1":2,"x":3,"16":4,"1.5":5,"1e+06":6})"},
      {"yes: 1", R"({"true":1})"},
      {"a: !!str 1\nb: !!int \"2\"\nc: !!float 3\nd: !!bool yes\ne: !!null ~",
       R"({"a":"1","b":2,"c":3,"d":true,"e":null})"},
      {"a: !!timestamp 2026-01-02\nb: !!map {}\nc: !!seq []",
       R"({"a":"2026-01-02","b":{},"c":[]})"},
      {"a: \"\\u0001\\\"\\\\\\t\"", R"({"a":"\u0001\"\\\t"})"},
      {"a: é\nb: \"\\u00e9\"", R"({"a":"é","b":"é"})"},
      {"\xef\xbb\xbf"
       "a: 1",
       R"({"a":1})"},
      {"a: 1\r\nb:\r\n  - x\r\n", R"({"a":1,"b":["x"]})"},
      {"a: 1 # comment\n# another\n", R"({"a":1})"},
      {"a:\t1\nb: [ \t2 ]\n", R"({"a":1,"b":[2]})"},
      {"%YAML 1.1\n--- # first\na: 1\n...\n", R"({"a":1})"},
      {"--- {a: 1}", R"({"a":1})"},
  };
  for (const auto& [yaml, json] : cases) EXPECT_EQ(Only(yaml), json) << yaml;
}

TEST(YamlTest, AnchorsAliasesAndMergeKeys) {
  EXPECT_EQ(Only("a: &x {p: 1}\nb: *x\nc: [*x, *x]"),
            R"({"a":{"p":1},"b":{"p":1},"c":[{"p":1},{"p":1}]})");
  EXPECT_EQ(Only("k: &k name\n*k : 1"), R"({"k":"name","name":1})");
  EXPECT_EQ(Only("a: &x 1\nb: &x 2\nc: *x"), R"({"a":1,"b":2,"c":2})");
  // What stands in the mapping wins, wherever the << stands; earlier sources win over later ones.
  EXPECT_EQ(Only("x: &x {p: 1, q: 2}\nz: &y {q: 3, r: 4}\na: {q: 0, <<: [*x, *y]}"),
            R"({"x":{"p":1,"q":2},"z":{"q":3,"r":4},"a":{"q":0,"p":1,"r":4}})");
  EXPECT_EQ(Only("x: &x {p: 1}\nz: &y {<<: *x, q: 2}\na: {<<: *y, p: 9}"),
            R"({"x":{"p":1},"z":{"q":2,"p":1},"a":{"p":9,"q":2}})");
  EXPECT_EQ(Only("a: {\"<<\": 1}"), R"({"a":{"<<":1}})");
}

TEST(YamlTest, AnErrorNamesItsLine) {
  const std::pair<std::string, const char*> cases[] = {
      {"a: 1\nb: 2\na: 3", "line 3: the key \"a\" stands here a second time, first on line 1"},
      {"a: 1\n\"a\": 3", "line 2: the key \"a\" stands here a second time, first on line 1"},
      {"1: x\n\"1\": y", "line 2: the key \"1\" stands here a second time, first on line 1"},
      {"a:\n  ? [b]\n  : 1", "line 2: expected a string as a key, found a sequence"},
      {"~: 1", "line 1: expected a string as a key, found \"~\" without quotes"},
      {"a: 1\nb: .inf", "line 2: .inf cannot stand in JSON; write a finite number"},
      {"a: !!int x", "line 1: \"x\" is no !!int"},
      {"a: !!bool 1", "line 1: \"1\" is no !!bool"},
      {"a: !mine 1",
       "line 1: the tag !mine is not served; expected !!str, !!int, !!float, !!bool, !!null, "
       "!!timestamp, !!map or !!seq"},
      {"a: !!binary aGk=",
       "line 1: the tag tag:yaml.org,2002:binary is not served; expected !!str, !!int, !!float, "
       "!!bool, !!null, !!timestamp, !!map or !!seq"},
      {"a: !!seq {}", "line 1: the tag does not fit what follows it"},
      {"a: !!map x", "line 1: a scalar cannot be tagged as a mapping or a sequence"},
      {"a: *b", "line 1: there is no anchor &b before this alias"},
      {"a: &a [*a]", "line 1: the anchor &a contains itself"},
      {"x: &x 1\na: {<<: *x}",
       "line 2: expected a mapping or a sequence of mappings to merge with <<"},
      {"- a", "line 1: expected an object with apiVersion and kind, found a sequence"},
      {"\n\nhello", "line 3: expected an object with apiVersion and kind, found a string"},
      {"a: [1,\n2\nb: 3",
       "line 3: did not find expected ',' or ']' while parsing a flow sequence that begins on line "
       "1"},
      {"a:\n\t- b",
       "line 2: found character that cannot start any token while scanning for the next token that "
       "begins on line 2 (a tab cannot indent)"},
      {"a: b\n  c: d", "line 2: mapping values are not allowed in this context"},
      {"a: \"\xff\"", "line 1: no YAML text: invalid leading UTF-8 octet"},
      {std::string("a: 1\nb: \0", 9), "line 2: no YAML text: control characters are not allowed"},
  };
  for (const auto& [yaml, error] : cases) EXPECT_EQ(Only(yaml), error) << yaml;
}

TEST(YamlTest, ABadDocumentHidesNoOther) {
  EXPECT_EQ(
      All("# a file\n---\n---\na: 1\n---\nb: [\n---\nc: 3\n------\nd: 4\n---\n~\n...\n# e\n"
          "---\ne: \"\n--- \nf: |\n  ---\n  ------\n"),
      (Lines{"4 1 0 {\"a\":1}",
             "6 2 0 line 7: did not find expected node content while parsing a flow node that "
             "begins on line 7",
             "8 3 0 {\"c\":3}",
             "9 4 0 line 9: \"------\" does not separate documents; expected exactly \"---\"",
             "10 5 0 {\"d\":4}",
             "16 6 0 line 17: found unexpected end of stream while scanning a quoted scalar "
             "that begins on line 16",
             "18 7 0 {\"f\":\"---\\n------\\n\"}"}));
}

TEST(YamlTest, NothingYieldsNothing) {
  for (const char* text : {"", "\n", " \t\n", "# only\n# comments\n", "---\n---\n", "---", "...\n",
                           "\xef\xbb\xbf", "null\n---\n~\n"}) {
    EXPECT_EQ(All(text), Lines{}) << text;
  }
}

TEST(YamlTest, LimitsHoldBackWhatWouldGrow) {
  const std::string deep = "a: " + std::string(300, '[') + std::string(300, ']');
  EXPECT_EQ(Only(deep), "line 1: nested deeper than 256 levels");

  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  std::string empties = "a0: &a0 {}\n";
  std::string merges = "a0: &a0 {k: v}\n";
  for (int i = 1; i < 30; ++i) {
    const std::string name = "a" + std::to_string(i);
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += name + ": &" + name + " [" + before + "," + before + "," + before + "]\n";
    empties += name + ": &" + name + " [" + before + "," + before + "," + before + "]\n";
    merges += name + ": &" + name + " {<<: [" + before + "," + before + "," + before + "]}\n";
  }
  EXPECT_NE(Only(laughs).find("aliases of the document expand to too much"), std::string::npos);
  EXPECT_NE(Only(empties).find("aliases of the document expand to too much"), std::string::npos);
  EXPECT_NE(Only(merges).find("merge keys bring more than 100000 fields"), std::string::npos);

  std::string many = "a: &a 1\nb: [";
  for (int i = 0; i < 10'001; ++i) many += "*a,";
  EXPECT_EQ(Only(many + "]"), "line 2: more than 10000 aliases in one document");

  // Aliases may not nest deeper than the text may either.
  std::string chain = "a0: &a0 [x]\n";
  for (int i = 1; i < 300; ++i) {
    chain += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
             "]\n";
  }
  EXPECT_NE(Only(chain).find("nested deeper than 256 levels"), std::string::npos);
}

TEST(ListTest, YamlListsAreFlattened) {
  EXPECT_EQ(All("apiVersion: v1\nkind: List\nitems:\n- {a: 1}\n- kind: List\n  items:\n  - {b: 2}\n"
                "- 3\n- {c: 1, c: 2}\n---\nkind: PodList\napiVersion: v1\nitems:\n- metadata: {}\n"
                "- {}\n- {kind: Pod}\n---\nkind: List\nitems:\n---\nkind: List\nitems: {}\n"
                "---\nkind: AllowList\nspec: {}\n"),
            (Lines{"4 1 1 {\"a\":1}", "7 1 3 {\"b\":2}",
                   "8 1 4 line 8, item 4: expected an object, found a number",
                   "9 1 5 line 9, item 5: the key \"c\" stands here a second time, first on line 9",
                   R"(14 2 1 {"apiVersion":"v1","kind":"Pod","metadata":{}})",
                   R"(15 2 2 {"apiVersion":"v1","kind":"Pod"})",
                   R"(16 2 3 {"apiVersion":"v1","kind":"Pod"})",
                   "21 4 0 line 22: items: expected a sequence, found a mapping",
                   "24 5 0 {\"kind\":\"AllowList\",\"spec\":{}}"}));
}

TEST(ListTest, JsonListsAreFlattened) {
  EXPECT_EQ(All("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[{\"x\":\"]}\\\"\"},\n"
                "{ },3,\n {\"kind\":\"List\",\"apiVersion\":\"v1\",\"items\":[{\"b\":2}]}]}\n\n"
                "{\"c\":1} {\"d\":,}\n{\"e\":1"),
            (Lines{R"(1 1 1 {"apiVersion":"v1","kind":"Pod","x":"]}\""})",
                   R"(2 1 2 {"apiVersion":"v1","kind":"Pod" })",
                   "2 1 3 line 2, item 3: expected an object, found something else",
                   R"(3 1 5 {"b":2})", R"(5 2 0 {"c":1})",
                   "5 3 0 line 5: malformed JSON: The JSON document has an improper structure: "
                   "missing or superfluous commas, braces, missing keys, etc.",
                   "6 4 0 line 6: the object that begins here does not end"}));
}

TEST(ListTest, ListsWithinListsEnd) {
  std::string text = "{\"kind\":\"Pod\"}";
  for (int i = 0; i < 20; ++i) text = R"({"kind":"List","apiVersion":"v1","items":[)" + text + "]}";
  EXPECT_NE(Only(text).find("Lists within Lists, deeper than 8 levels"), std::string::npos);
  EXPECT_NE(Only("---\n" + text).find("Lists within Lists, deeper than 8 levels"),
            std::string::npos);
}

TEST(JsonTextTest, DepthIsLimited) {
  const std::string deep = std::string(300, '[') + std::string(300, ']');
  EXPECT_EQ(Only("{\"a\":" + deep + "}"), "line 1: nested deeper than 256 levels");
  EXPECT_FALSE(SplitDocuments(std::string(1'000'000, '{')).empty());
}

TEST(JsonTextTest, YamlInBracesIsYaml) {
  EXPECT_EQ(Only("{a: 1,\n b: [x]}"), R"({"a":1,"b":["x"]})");
  EXPECT_EQ(All("{\"a\": 1}\n---\n{\"b\": 2}\n"), (Lines{"1 1 0 {\"a\":1}", "3 2 0 {\"b\":2}"}));
  EXPECT_EQ(Only("{\"a\": 1,\t\"b\":\t\"x\\u00e9\"}"), "{\"a\": 1,\t\"b\":\t\"x\\u00e9\"}");
}

// A JSON value of strings, numbers, booleans, null, lists and objects.
nlohmann::json AnyJson(int depth) {
  const int kind = *rc::gen::inRange(0, depth > 0 ? 7 : 5);
  const auto text = [] {
    return *rc::gen::container<std::string>(
        rc::gen::elementOf(std::string("ab01 -:#'\"\\{}[],&*!|>%@`~\n\t.eyn_")));
  };
  nlohmann::json value;
  if (kind == 1) value = *rc::gen::arbitrary<bool>();
  if (kind == 2) value = *rc::gen::arbitrary<int64_t>();
  if (kind == 3 || kind == 4) value = text();
  if (kind == 5) {
    value = nlohmann::json::array();
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i) value.push_back(AnyJson(depth - 1));
  }
  if (kind == 6) {
    value = nlohmann::json::object();
    for (int i = *rc::gen::inRange(0, 4); i > 0; --i) value[text()] = AnyJson(depth - 1);
  }
  return value;
}

// JSON is YAML: read through either door it must mean the same. The marker in front forces YAML.
RC_GTEST_PROP(DocumentProperty, JsonMeansTheSameReadAsYaml, ()) {
  nlohmann::json object = nlohmann::json::object();
  object["spec"] = AnyJson(3);
  object["b"] = AnyJson(2);
  const std::string text = object.dump(*rc::gen::element(-1, 2));
  RC_ASSERT(nlohmann::json::parse(Only(text)) == object);
  RC_ASSERT(nlohmann::json::parse(Only("---\n" + text)) == object);
}

}  // namespace
}  // namespace hopwise::api
