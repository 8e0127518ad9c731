#pragma once

#include <string_view>

#include "agent/base/result.h"

// What the API server takes for names, checked before it is asked. Pure.
namespace neuron::kube {

// Of a node: parts of lower case letters, digits and '-', joined by '.', each beginning and ending with a letter or
// digit; at most 253 bytes (RFC 1123). Errors: invalid_argument, saying so.
[[nodiscard]] Result<void> check_node_name(std::string_view name);

// Of a label: "name" or "prefix/name"; the prefix is as a node's name, the name has 1 to 63 letters, digits, '-', '_'
// and '.', and begins and ends with a letter or digit. Errors: invalid_argument, saying so.
[[nodiscard]] Result<void> check_label_key(std::string_view key);

}  // namespace neuron::kube
