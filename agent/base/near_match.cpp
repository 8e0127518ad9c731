#include "agent/base/near_match.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "agent/base/parse.h"

namespace neuron {

std::string did_you_mean(std::string_view text, const std::vector<std::string>& names) {
  constexpr std::size_t kMaxEdits = 4;
  constexpr std::size_t kMaxMatches = 5;
  constexpr std::size_t kMaxText = 64;
  if (text.empty() || text.size() > kMaxText) return "";
  const auto stem = text.substr(0, text.find('.'));
  std::multimap<std::size_t, std::string> ranked;  // by edits, then in the order of `names`
  for (const auto& name : names) {
    const bool same_stem = stem.size() > 1 && stem == std::string_view(name).substr(0, name.find('.'));
    const std::size_t edits = edit_distance(text, name);
    if (same_stem || edits <= std::min(kMaxEdits, text.size() / 2)) ranked.emplace(edits, name);
  }
  std::string phrase;
  for (std::size_t shown = 0; const auto& [edits, name] : ranked) {
    if (shown++ < kMaxMatches) phrase += (phrase.empty() ? "; did you mean " : ", ") + name;
  }
  return phrase.empty() ? phrase : phrase + "?";
}

}  // namespace neuron
