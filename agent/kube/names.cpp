#include "agent/kube/names.h"

#include <algorithm>
#include <string>

#include "agent/base/parse.h"

namespace neuron::kube {
namespace {

constexpr std::size_t kMaxNode = 253;
constexpr std::size_t kMaxLabel = 63;

bool is_lower(char letter) {
  return letter >= 'a' && letter <= 'z';
}

bool is_plain(char letter) {
  return is_lower(letter) || (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
}

bool is_part(std::string_view part) {
  const auto allowed = [](char letter) {
    return letter == '-' || is_lower(letter) || (letter >= '0' && letter <= '9');
  };
  return !part.empty() && part.front() != '-' && part.back() != '-' && std::all_of(part.begin(), part.end(), allowed);
}

bool is_subdomain(std::string_view name) {
  const auto parts = split(name, '.');  // trimmed, which no space may hide behind
  return name.size() <= kMaxNode && name.find_first_of(" \t\n\r\f\v") == std::string_view::npos && !parts.empty() &&
         std::all_of(parts.begin(), parts.end(), is_part);
}

bool is_label_name(std::string_view name) {
  const auto allowed = [](char letter) { return is_plain(letter) || letter == '-' || letter == '_' || letter == '.'; };
  return !name.empty() && name.size() <= kMaxLabel && is_plain(name.front()) && is_plain(name.back()) &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

Result<void> check_node_name(std::string_view name) {
  if (is_subdomain(name)) return {};
  return fail(ErrorCode::invalid_argument, "\"" + printable(name, 64) +
                                               "\" is not a node name, which has lower case letters, digits, '-' and "
                                               "'.' as `kubectl get nodes` shows it; in a pod, use spec.nodeName");
}

Result<void> check_label_key(std::string_view key) {
  const auto slash = key.find('/');
  const bool prefixed = slash != std::string_view::npos;
  if ((!prefixed || is_subdomain(key.substr(0, slash))) && is_label_name(prefixed ? key.substr(slash + 1) : key)) {
    return {};
  }
  return fail(ErrorCode::invalid_argument, "\"" + printable(key, 64) +
                                               "\" is not a label key: up to 63 letters, digits, '-', '_' and '.', "
                                               "optionally after a domain and '/', as in neuron-agent/simulate");
}

}  // namespace neuron::kube
