#include "tools/kubectl-neuron/replacements.h"

#include <algorithm>
#include <array>

#include "tools/kubectl-neuron/public_words.h"

namespace neuron::fleet {
namespace {

constexpr std::size_t kShortestInSentence = 3;

bool is_kept(const std::string& text) {
  constexpr std::array<std::string_view, 9> kKept = {"default",          "kube-system",       "kube-public",
                                                     "kube-node-lease",  "default-scheduler", "neuron-agent",
                                                     "neuron-agent-dra", "neuron-agent-efa",  "neuron-node"};
  return std::ranges::find(kKept, text) != kKept.end();
}

}  // namespace

std::string Replacements::of(const std::string& kind, const std::string& text) {
  if (text.empty() || is_kept(text)) return text;
  auto& names = kinds_[kind];
  const auto [found, is_new] = names.try_emplace(text, kind + "-" + std::to_string(names.size() + 1));
  if (is_new && text.size() >= kShortestInSentence) all_.emplace(text, found->second);
  return found->second;
}

std::string Replacements::of_pod(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return of("pod", text);
  return of("namespace", text.substr(0, slash)) + "/" + of("pod", text.substr(slash + 1));
}

std::string Replacements::of_serial(const std::string& text) {
  if (text.empty()) return text;
  const std::string name = of("serial", text);
  const std::string number = name.substr(name.rfind('-') + 1);
  return std::string(16 - std::min<std::size_t>(number.size(), 15), '0') + number;
}

std::string Replacements::of_interface(const std::string& text) {
  return is_interface_name(text) ? text : of("interface", text);
}

std::string Replacements::in_sentence(std::string_view text) const {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_not_of(kWordCharacters, at), text.size());
    if (end > at) {
      const bool joined =
          (at > 0 && text[at - 1] == ':') || (end + 1 < text.size() && text[end] == ':' && text[end + 1] != ' ');
      out += replaced(text.substr(at, end - at), joined);
    }
    at = std::min(text.find_first_of(kWordCharacters, end), text.size());
    out += text.substr(end, at - end);
  }
  return out;
}

std::string Replacements::replaced(std::string_view word, bool is_joined) const {
  const std::size_t length = word.find_last_not_of('.') + 1;  // the end of a sentence; 0: dots alone
  if (length == 0) return std::string(word);
  const std::string_view own = word.substr(0, length);
  const auto found = all_.find(own);
  const std::string tail(word.substr(length));
  if (found != all_.end()) return found->second + tail;
  return !is_joined && is_public_word(own) ? std::string(word) : "removed" + tail;
}

}  // namespace neuron::fleet
