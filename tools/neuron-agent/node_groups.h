#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/core/offer_policy.h"

// The file of --node-groups, for example a mounted config map: the offer of each kind of node, so that one DaemonSet
// serves them all (docs/resources.md#per-kind-of-node). Foreign text: bounded, strictly validated.
namespace neuron::agent {

// Choice of one source for a node's offer: the command line with the environment, or a group of the file that
// --node-groups names. Parts that it leaves open are decided by the next source.
struct OfferChoice {
  std::optional<std::vector<model::Resource>> resources;  // nullopt: not given
  bool core_devices_said = false;
  std::optional<core::CoreDevices> core_devices;  // when given; nullopt: no split

  // Takes parts that are open here from `next`.
  void complete_from(const OfferChoice& next) {
    if (!resources) resources = next.resources;
    if (core_devices_said || !next.core_devices_said) return;
    core_devices_said = true;
    core_devices = next.core_devices;
  }
};

struct NodeGroup {
  std::string name;
  // Patterns with * (any text) and ? (any character); empty: every node. Both have to match.
  std::vector<std::string> instance_types;
  std::vector<std::string> node_names;
  OfferChoice offer;
};

// Properties that groups match; "" is unknown.
struct NodeIdentity {
  std::string instance_type;
  std::string node_name;
};

// In the order of the file. Errors: data_corrupt, naming the place in the text and the remedy: no JSON of that
// shape, a key that is not known or there twice, a value that the option of that name would refuse, more than 256
// groups, 256 patterns in one list or 253 bytes in one text, two groups of one name, a group that an earlier one
// without patterns hides.
[[nodiscard]] Result<std::vector<NodeGroup>> parse_node_groups(std::string_view text);
// Reads at most 256 KiB. Errors: as above, and those of opening the file; all name it.
[[nodiscard]] Result<std::vector<NodeGroup>> read_node_groups(const std::string& path);

// The first that matches; nullptr: none does. A pattern does not match an unknown text. Errors: failed_precondition
// when it depends on the node's name, which is not known.
[[nodiscard]] Result<const NodeGroup*> find_group(const std::vector<NodeGroup>& groups, const NodeIdentity& node);

// Doubtful parts of the groups that are no errors: patterns that can match no node, as in "TRN*", since instance types
// and node names have lower case letters, digits, '-' and '.' only. One sentence each.
[[nodiscard]] std::vector<std::string> doubts_about(const std::vector<NodeGroup>& groups);

[[nodiscard]] bool matches_pattern(std::string_view text, std::string_view pattern);

}  // namespace neuron::agent
