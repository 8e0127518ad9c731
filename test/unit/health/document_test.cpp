// docs/health.md is the table of signals and that of reasons, row by row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "agent/health/reasons.h"
#include "agent/health/signals.h"
#include "test/fakes/paths.h"

namespace neuron::test {
namespace {

using health::DriverRelease;
using model::Family;

constexpr DriverRelease kNoEnd{999, 0, 0};

std::string page() {
  std::ifstream file(fakes::source_dir() + "/docs/health.md");
  EXPECT_TRUE(file);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string text_of(DriverRelease release) {
  return std::to_string(release.major) + '.' + std::to_string(release.minor) +
         (release.patch != 0 ? '.' + std::to_string(release.patch) : "");
}

std::string drivers_of(const health::Lifetime& life) {
  if (life.until == kNoEnd) return "from " + text_of(life.since);
  return "from " + text_of(life.since) + ", before " + text_of(life.until);
}

std::string families_in(health::Families families) {
  std::string text;
  for (const Family family :
       {Family::inferentia, Family::inferentia2, Family::trainium1, Family::trainium2, Family::trainium3}) {
    if ((families & health::family_bit(family)) == 0) continue;
    text += (text.empty() ? "" : ", ") + std::string(model::to_string(family));
  }
  return text;
}

std::string chips_of(const health::Lifetime& life) {
  if (life.families == ~0U) return "all";
  return families_in(life.families) + (life.perhaps != 0 ? "; perhaps " + families_in(life.perhaps) : "");
}

template <typename Signal>
std::string row_of(const Signal& signal, const std::string& folder) {
  const bool required = signal.weight == health::Weight::required;
  std::string reason = required ? "required" : "–";
  if (signal.reason != nullptr) reason = '`' + std::string(signal.reason->code) + (required ? "`" : "`, optional");
  return "`" + folder + std::string(signal.path) + "` | " + drivers_of(signal.life) + " | " + chips_of(signal.life) +
         " | " + std::string(signal.meaning) + " | " + reason;
}

std::string row_of(const health::Reason& reason) {
  const std::string action(reason.action.empty() ? "–" : reason.action);
  return "`" + std::string(reason.code) + "` | " + std::string(model::to_string(reason.state)) + " | " +
         std::string(reason.meaning) + " | " + action;
}

std::vector<std::string> rows_of_the_tables() {
  std::vector<std::string> rows;
  for (const auto& signal : health::device_signals()) rows.push_back(row_of(signal, ""));
  for (const auto& signal : health::core_signals()) rows.push_back(row_of(signal, "neuron_core<M>/"));
  for (const auto& reason : health::all_reasons()) rows.push_back(row_of(reason));
  return rows;
}

std::vector<std::string> rows_of_the_page() {
  const std::string text = page();
  const std::regex row(R"((?:^|\n)(`[^`\n]+` \| [^\n]+))");
  std::vector<std::string> rows;
  for (std::sregex_iterator at(text.begin(), text.end(), row), end; at != end; ++at) rows.push_back((*at)[1]);
  return rows;
}

TEST(HealthDocument, HasTheRowsOfTheTables) {
  std::string all;
  for (const std::string& row : rows_of_the_tables()) all += row + '\n';
  EXPECT_EQ(rows_of_the_page(), rows_of_the_tables()) << "docs/health.md should say:\n" << all;
}

TEST(HealthDocument, EveryReasonOfASignalIsInTheTableOfReasons) {
  std::set<std::string_view> known;
  for (const health::Reason& reason : health::all_reasons()) known.insert(reason.code);
  for (const auto& signal : health::device_signals()) {
    EXPECT_TRUE(signal.reason == nullptr || known.contains(signal.reason->code)) << signal.path;
  }
  for (const auto& signal : health::core_signals()) {
    EXPECT_TRUE(signal.reason == nullptr || known.contains(signal.reason->code)) << signal.path;
  }
}

// A verdict that heals by itself needs no action; all others say what to do, but for what shows no files.
TEST(HealthDocument, EveryReasonIsWhole) {
  for (const health::Reason& reason : health::all_reasons()) {
    EXPECT_NE(reason.state, model::HealthState::healthy) << reason.code;
    EXPECT_FALSE(reason.meaning.empty()) << reason.code;
    if (reason.state == model::HealthState::unhealthy) {
      EXPECT_FALSE(reason.action.empty()) << reason.code;
    }
    const model::Health verdict = health::verdict(reason, "seen");
    EXPECT_EQ(verdict, (model::Health{reason.state, std::string(reason.code), "seen", std::string(reason.action)}));
  }
}

}  // namespace
}  // namespace neuron::test
