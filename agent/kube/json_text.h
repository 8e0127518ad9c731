#pragma once

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "agent/base/result.h"

// JSON that others wrote. nlohmann's accessors throw where a value has another type than was thought; these do not.
namespace neuron::kube {

// An object, nested at most 64 deep: what copies, compares or prints deeper ones would exhaust the stack.
// Errors: data_corrupt; `what` begins the message. Pure.
[[nodiscard]] Result<nlohmann::json> parse_object(std::string_view text, std::string_view what);

// What is below `value` along `names`: member_of(pod, {"metadata", "name"}). nullptr where there is no such member.
// Pure.
[[nodiscard]] const nlohmann::json* member_of(const nlohmann::json& value, std::initializer_list<const char*> names);

// The same as text; "" where it is absent or no text. Pure.
[[nodiscard]] std::string text_of(const nlohmann::json& value, std::initializer_list<const char*> names);

}  // namespace neuron::kube
