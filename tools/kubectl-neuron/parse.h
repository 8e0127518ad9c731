#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/fleet.h"

// Objects of the API as members of a fleet: for make_fleet.cpp. Foreign JSON: members of another type than expected, or
// longer than any that a server keeps, count as absent. Pure.
namespace neuron::fleet {

inline constexpr std::size_t kLongestText = 4096;  // of messages and expressions

// Whether the parts that are read are of the API's types, and it has a name. Members of lists other than these count as
// absent where they are not.
[[nodiscard]] bool is_understood(Kind kind, const nlohmann::json& item);
// Its name, else "number 3": for a sentence about what was not understood.
[[nodiscard]] std::string place_of(const nlohmann::json& item, std::size_t number);

// "name": "value" of an object; values of other types are left out.
[[nodiscard]] Labels labels_of(const nlohmann::json& object);

// Names of the resources that count: this project's, and those of `more` (DeviceClass extendedResourceName).
[[nodiscard]] Amounts amounts_of(const nlohmann::json& object, const std::set<std::string>& more);

// Whether all amounts of a node or a pod are such; of a node none that is above kMostUnitsOfNode.
[[nodiscard]] bool has_readable_amounts(Kind kind, const nlohmann::json& item, const std::set<std::string>& more);

// The names that do not, in thousandths; and one such amount: a text or number. nullopt: no amount.
[[nodiscard]] Amounts general_of(const nlohmann::json& object, const std::set<std::string>& more);
[[nodiscard]] std::optional<std::int64_t> thousandths_of(const nlohmann::json& quantity);

// Rules of a pod's spec that the scheduler checks and fit() does not: "pod anti-affinity".
[[nodiscard]] std::set<std::string> rules_not_counted(const nlohmann::json& spec);

[[nodiscard]] Node node_of(const nlohmann::json& object, const std::set<std::string>& more);
[[nodiscard]] Pod pod_of(const nlohmann::json& object, const std::set<std::string>& more);
[[nodiscard]] Event event_of(const nlohmann::json& object);

[[nodiscard]] Claim claim_of(const nlohmann::json& object);
[[nodiscard]] std::vector<ClaimRequest> requests_of(const nlohmann::json& spec);        // of a claim or template
[[nodiscard]] std::vector<ClaimConstraint> constraints_of(const nlohmann::json& spec);  // likewise
[[nodiscard]] DeviceClass class_of(const nlohmann::json& object);

[[nodiscard]] Slice slice_of(const nlohmann::json& object, SliceFacts& facts);

}  // namespace neuron::fleet
