#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "agent/kube/answers.h"

namespace neuron::kube {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string read(const std::string& text) {
  const auto all = read_documents(text);
  if (!all) return "error: " + all.error().message;
  std::string line;
  for (const json& one : *all) line += (line.empty() ? "" : " ") + one.dump();
  return line;
}

// What sigs.k8s.io/yaml 1.6, which is kubectl's, made of each.
TEST(Documents, ScalarsAreKubectls) {
  const std::map<std::string, std::string> known = {{"a: 1", "1"},
                                                    {"a: '1'", "\"1\""},
                                                    {"a: \"1\"", "\"1\""},
                                                    {"a: y", "true"},
                                                    {"a: on", "true"},
                                                    {"a: Off", "false"},
                                                    {"a: n", "false"},
                                                    {"a: tRue", "\"tRue\""},
                                                    {"a: 010", "8"},
                                                    {"a: 0o10", "8"},
                                                    {"a: 0x1f", "31"},
                                                    {"a: 0X1F", "31"},
                                                    {"a: +0x10", "16"},
                                                    {"a: 0b11", "3"},
                                                    {"a: -0b11", "-3"},
                                                    {"a: 08", "8"},
                                                    {"a: 1_000", "1000"},
                                                    {"a: _1", "\"_1\""},
                                                    {"a: 1.0", "1"},
                                                    {"a: 1.", "1"},
                                                    {"a: .5", "0.5"},
                                                    {"a: +.5", "0.5"},
                                                    {"a: -.5", "-0.5"},
                                                    {"a: 1e3", "1000"},
                                                    {"a: 1e", "\"1e\""},
                                                    {"a: 0x", "\"0x\""},
                                                    {"a: 0b", "\"0b\""},
                                                    {"a: .", "\".\""},
                                                    {"a: ~", "null"},
                                                    {"a:", "null"},
                                                    {"a: -0", "0"},
                                                    {"a: -010", "-8"},
                                                    {"a: 500m", "\"500m\""},
                                                    {"a: 1:30", "\"1:30\""},
                                                    {"a: 1e400", "\"1e400\""},
                                                    {"a: 2001-01-01", "\"2001-01-01\""},
                                                    {"a: 9223372036854775808", "9223372036854775808"},
                                                    {"a: |\n  x\n", "\"x\\n\""},
                                                    {"a: 'it''s'", "\"it's\""},
                                                    {"a: \"\\x41\"", "\"A\""},
                                                    {"a: <<", "\"<<\""},
                                                    {"a: &x 1", "1"},
                                                    {"a: ! x", "\"x\""}};
  for (const auto& [text, value] : known) EXPECT_EQ(read(text), "{\"a\":" + value + "}") << text;
  EXPECT_EQ(read("1: x\non: y\n1.5: z"), R"({"1":"x","1.5":"z","true":true})");
}

TEST(Documents, AnchorsAndMergeKeysAreWrittenOut) {
  EXPECT_EQ(read("a: &x {b: [1]}\nc: *x"), R"({"a":{"b":[1]},"c":{"b":[1]}})");
  EXPECT_EQ(read("<<: {b: 1}\nb: 2"), R"({"b":2})");
  EXPECT_EQ(read("<<: [{b: 1}, {b: 3, c: 4}]"), R"({"b":1,"c":4})");
  EXPECT_EQ(read("'<<': {b: 1}"), R"({"<<":{"b":1}})");
  EXPECT_THAT(read("b: 2\n<<: {b: 1}"), HasSubstr("line 2: << after the key \"b\" of both: put << first"));
  EXPECT_THAT(read("<<: 3"), HasSubstr("<< takes a map or a list of maps"));
  EXPECT_THAT(read("a: &x [*x]"), HasSubstr("an anchor that contains itself"));
}

TEST(Documents, FollowEachOther) {
  EXPECT_EQ(read("# none\n---\na: 1\n--- # next\n\n---\n{\"b\": 2} {\"c\": 3}\n# end\n---\nnull\n---\r\nd: 4\r\n"),
            R"({"a":1} {"b":2} {"c":3} {"d":4})");
  EXPECT_EQ(read("\xEF\xBB\xBF{a: 1}"), R"({"a":1})");
  EXPECT_EQ(read("{\"a\": \"\\ud83d\\ude00\"}"), "{\"a\":\"\xF0\x9F\x98\x80\"}");
  EXPECT_EQ(read(""), "");
}

TEST(Documents, ErrorsSayWhereAndWhy) {
  const std::string deep = std::string(100, '[') + std::string(100, ']');
  for (const auto& [text, message] : std::map<std::string, std::string>{
           {"a: 1\n---\n{\"a\": 1},\n", "document 2, line 3: text after the object: ,; separate documents by a line"},
           {"{} ---", "document 1, line 1: text after the object: ---"},
           {"{\"a\": {\"b\": 1}\n", "document 1, line "},
           {"{\"a\": {\"b\": 1}", "its brackets do not end, is it cut short?"},
           {"{}\n{a}", "document 2, line 2: no JSON: {a}"},
           {"a: 1\n--- b: 2\n", "line 2: text beside ---: put it on the next line"},
           {"[{}]", "document 1, line 1: a list, where an object is due: make it the items of kind: List"},
           {"- a\n", "document 1, line 1: a list, where an object is due"},
           {"42", "document 1, line 1: no object with kind and metadata: 42"},
           {"{\"a\": " + deep + "}", "document 1, line 1: nested more than 64 deep"},
           {"\na: " + deep, "document 1, line 2: nested more than 64 deep"},
           {"{\"a\": 1, \"b\": {\"a\": 2}, \"a\": 3}", "the key \"a\" a second time in one object: remove one"},
           {"a: 1\nb: {c: 1,\n c: 2}", "line 3: the key \"c\" a second time: remove one"},
           {"a: !!str 1", "line 1: the tag tag:yaml.org,2002:str: remove it"},
           {"a: !x {}", "the tag !x: remove it"},
           {"[a]: b", "a key that is no text"},
           {"~: b", "a key that is no text"},
           {"a: .inf", ".inf is a number that JSON does not have"},
           {"a: *x", "line 1: the referenced anchor is not defined"},
           {"\ta: 1", "line 1: "},
           {"a: {\n", "line 2: end of map flow not found"},
           {"ok: 1\nname: \xE9\n", "line 2: not UTF-8: convert it with iconv"},
           {"\xFF\xFE{", "UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
           {std::string("a: \0", 4), "line 1: a control character"}}) {
    EXPECT_THAT(read(text), HasSubstr(message)) << text;
  }
}

// Nine levels of nine anchors would be 387 million values; thirty of two, a billion; of one long text, gigabytes.
TEST(Documents, ABombOfAnchorsEndsWithASentence) {
  std::string nine = "a0: &a0 x\n", two = nine, deep = "a0: &a0 [x]\n";
  for (int i = 1; i < 70; ++i) {
    const std::string name = "a" + std::to_string(i), last = "*a" + std::to_string(i - 1);
    std::string list = last;
    for (int j = 1; j < 9; ++j) list += ", " + last;
    if (i < 10) nine += name + ": &" + name + " [" + list + "]\n";
    if (i < 40) two += name + ": &" + name + " [" + last + ", " + last + "]\n";
    deep += name + ": &" + name + " [" + last + "]\n";
  }
  std::string wide = "a: &a " + std::string(100000, 'x') + "\nb: [*a";
  for (int i = 0; i < 1000; ++i) wide += ", *a";
  for (const std::string& text : {nine, two, wide + "]\n"}) {
    EXPECT_THAT(read(text), HasSubstr("each use of an anchor counted: split the file, or write out the anchors"));
  }
  EXPECT_THAT(read(deep), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(read(std::string(1000000, '[')), HasSubstr("nested more than 64 deep"));
}

}  // namespace
}  // namespace neuron::kube
