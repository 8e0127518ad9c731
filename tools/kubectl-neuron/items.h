#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "agent/base/result.h"

namespace neuron::fleet {

// Members of an object by name; without any, everything below is kept. Lists are looked through.
struct Keep {
  std::map<std::string, Keep, std::less<>> members;
};

using UseItem = std::function<void(nlohmann::json&)>;

// Reads a page of a list of the API, {"metadata": {"continue": …}, "items": […]}, and calls `use` with one object of
// `items` after another: only one is in memory as JSON. Elements that are no objects are left out. `keep` is of the
// page. Returns the token of the next page, "" on the last. Errors: data_corrupt, `what` begins the message; some
// objects may have been used by then. Pure.
[[nodiscard]] Result<std::string> read_items(std::string_view page, const std::string& what, const Keep& keep,
                                             const UseItem& use);

}  // namespace neuron::fleet
