#include "tools/neuron-sim/near_match.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace neuron::sim {
namespace {

constexpr std::size_t kMaxEdits = 4;
constexpr std::size_t kMaxMatches = 5;
constexpr std::size_t kMaxText = 64;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replace, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

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
