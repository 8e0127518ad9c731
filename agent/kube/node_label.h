#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/base/result.h"
#include "agent/kube/api_get.h"

namespace neuron::kube {

// The value of one label of a Node object; nullopt when the node does not have it. Only the object's metadata is asked
// for. Needs the verb get on nodes. Errors: as api_get; invalid_argument when `node` is no node's name or `label` no
// label's key (see names.h), data_corrupt when the answer is no such object. Any thread; blocks up to the deadline.
[[nodiscard]] Result<std::optional<std::string>> node_label(const ClusterAccess& access, const std::string& node,
                                                            const std::string& label, const GetLimits& limits);

// The same of an answer's text, foreign and of any size; `where` begins the messages. Pure.
[[nodiscard]] Result<std::optional<std::string>> label_in(std::string_view answer, const std::string& label,
                                                          const std::string& where);

}  // namespace neuron::kube
