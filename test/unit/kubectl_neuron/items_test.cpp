#include "tools/kubectl-neuron/items.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/kubectl-neuron/shared_map.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Outcome {
  std::vector<std::string> items;
  std::string next;
  std::string error;
};

Outcome read(std::string_view page, const Keep& keep = {}) {
  Outcome outcome;
  auto next = read_items(page, "the list", keep, [&](const json& item) { outcome.items.push_back(item.dump()); });
  if (next) {
    outcome.next = *std::move(next);
  } else {
    outcome.error = next.error().message;
  }
  return outcome;
}

TEST(Items, OneAfterAnotherAndTheTokenOfTheNextPage) {
  const Outcome outcome = read(R"({"kind":"List","metadata":{"continue":"abc"},"items":[{"a":{"b":[1,{"c":2}]}},{}]})");
  EXPECT_THAT(outcome.items, ElementsAre(R"({"a":{"b":[1,{"c":2}]}})", "{}"));
  EXPECT_EQ(outcome.next, "abc");
  EXPECT_EQ(read(R"({"items":[{"a":1}],"metadata":{"continue":"after"}})").next, "after");
}

TEST(Items, WhatIsNotKeptIsDropped) {
  Keep keep;
  keep.members["items"].members["a"].members["b"];
  EXPECT_THAT(read(R"({"items":[{"a":[{"b":1,"c":2}],"d":{"b":3}},{"d":4}]})", keep).items,
              ElementsAre(R"({"a":[{"b":1}]})", "{}"));
}

TEST(Items, OnlyObjectsOfTheListItselfAreUsed) {
  EXPECT_THAT(read(R"({"items":[7,"x",null,[{"a":1},[{"b":2}]],{"c":3}]})").items, ElementsAre(R"({"c":3})"));
  EXPECT_THAT(read(R"({"items":{"a":{"b":1}},"other":[{"c":1}],"deep":{"items":[{"d":1}]}})").items, IsEmpty());
  EXPECT_THAT(read(R"({"items":[],"other":[{"c":1}]})").items, IsEmpty());
}

TEST(Items, TextThatIsNoPage) {
  for (const char* page : {"", "[]", "7", R"([[{"a":1}]])", R"({"items":[{"a":1})", "<html>"}) {
    EXPECT_THAT(read(page).error, HasSubstr("the list is not a JSON object")) << page;
  }
  const std::string deep = R"({"items":[)" + std::string(70, '[') + std::string(70, ']') + "]}";
  EXPECT_THAT(read(deep).error, HasSubstr("nested too deeply"));
  EXPECT_THAT(read(R"({"metadata":{"continue":")" + std::string(9000, 'x') + R"("},"items":[]})").error,
              HasSubstr("continue token"));
}

TEST(SharedMap, IsAMapByName) {
  SharedMap<std::string> map;
  map["b"] = "2";
  map["a"] = "1";
  map["b"] += "3";
  const SharedMap<std::string> copy = map;
  std::string text;
  for (const auto& [name, value] : copy) text += name + value;
  EXPECT_EQ(text, "a1b23");
  EXPECT_TRUE(copy.contains("a"));
  EXPECT_EQ(copy.find("aa"), copy.end());
  for (auto& [name, value] : map) value = "";
  EXPECT_EQ(copy.find("b")->second, "23") << "copies keep their values";
  map.merge(copy);
  EXPECT_EQ(map.size(), 2U);
  EXPECT_EQ(map.find("b")->second, "") << "as std::map does";
  map.clear();
  EXPECT_TRUE(map.empty());
}

}  // namespace
}  // namespace neuron::fleet
