#include "tools/neuron-sim/near_match.h"

#include <algorithm>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kMaxEdits = 4;
constexpr std::size_t kMaxMatches = 5;
constexpr std::size_t kMaxText = 64;

}  // namespace

std::vector<std::string> near_matches(std::string_view text, const std::vector<std::string>& names) {
  if (text.empty() || text.size() > kMaxText) return {};
  const auto stem = text.substr(0, text.find('.'));
  std::vector<std::pair<std::size_t, std::string>> ranked;
  for (const auto& name : names) {
    const bool same_stem =
        stem.size() > 1 && name.starts_with(stem) && (name.size() == stem.size() || name[stem.size()] == '.');
    const std::size_t edits = edit_distance(text, name);
    if (same_stem || edits <= std::min(kMaxEdits, text.size() / 2)) ranked.emplace_back(edits, name);
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> matches;
  for (auto& [edits, name] : ranked) {
    if (matches.size() < kMaxMatches) matches.push_back(std::move(name));
  }
  return matches;
}

}  // namespace neuron::sim
