#include "agent/core/offer_policy.h"

#include <algorithm>
#include <iterator>

#include "agent/base/parse.h"

namespace neuron::core {
namespace {

constexpr int kMaxDevice = 63;  // the driver registers at most 64 (docs/reference/driver.md#pci-ids-and-limits)

std::optional<model::Resource> resource_called(std::string_view word) {
  for (const model::Resource resource : model::kAllResources) {
    if (word == model::short_name(resource) || word == model::resource_name(resource)) return resource;
  }
  return std::nullopt;
}

}  // namespace

bool CoreDevices::contains(int device) const {
  return all || std::binary_search(listed.begin(), listed.end(), device);
}

bool OfferPolicy::serves(model::Resource resource) const {
  return std::find(resources.begin(), resources.end(), resource) != resources.end();
}

bool OfferPolicy::offers(model::Resource resource, int device) const {
  if (!serves(resource)) return false;
  if (!model::has_cores(resource) || !split) return true;
  return split->contains(device) == (resource == model::Resource::neuroncore);
}

bool OfferPolicy::mixes() const {
  return !split && serves(model::Resource::neuroncore) &&
         (serves(model::Resource::neuron) || serves(model::Resource::neurondevice));
}

bool OfferPolicy::can_offer() const {
  if (!split || resources.empty()) return !resources.empty();
  const bool some_as_cores = split->all || !split->listed.empty();
  const bool whole = serves(model::Resource::neuron) || serves(model::Resource::neurondevice);
  return serves(model::Resource::efa) || (whole && !split->all) ||
         (serves(model::Resource::neuroncore) && some_as_cores);
}

Result<std::vector<model::Resource>> parse_resource_list(std::string_view text) {
  static constexpr std::string_view kKnown = "valid are neuron, neuroncore, neurondevice, efa, or all alone";
  if (trim(text) == "all")
    return std::vector{model::Resource::neuroncore, model::Resource::neuron, model::Resource::efa};
  std::vector<model::Resource> listed;
  for (const std::string_view word : neuron::split(text, ',')) {
    const auto resource = resource_called(word);
    if (word == "all") {
      return fail(ErrorCode::invalid_argument,
                  "\"all\" cannot be combined: give all alone, or some of neuron, neuroncore, neurondevice, efa");
    }
    if (!resource) {
      return fail(ErrorCode::invalid_argument,
                  "\"" + printable(word, 64) + "\" is not a resource; " + std::string(kKnown));
    }
    listed.push_back(*resource);
  }
  if (listed.empty()) {
    return fail(ErrorCode::invalid_argument, "no resource given; " + std::string(kKnown));
  }
  std::vector<model::Resource> resources;
  std::copy_if(
      model::kAllResources.begin(), model::kAllResources.end(), std::back_inserter(resources),
      [&](model::Resource resource) { return std::find(listed.begin(), listed.end(), resource) != listed.end(); });
  return resources;
}

std::string format_resource_list(const std::vector<model::Resource>& resources) {
  std::string text;
  for (const model::Resource resource : resources)
    text += (text.empty() ? "" : ",") + std::string(model::short_name(resource));
  return text.empty() ? "none" : text;
}

Result<std::optional<CoreDevices>> parse_core_devices(std::string_view text) {
  const std::string_view word = trim(text);
  if (word == "off") return std::optional<CoreDevices>{};
  if (word == "all") return std::optional(CoreDevices{true, {}});
  if (word == "none") return std::optional(CoreDevices{});
  auto listed = parse_int_list(word, kMaxDevice);
  if (!listed || listed->empty()) {
    return fail(ErrorCode::invalid_argument,
                "\"" + printable(word, 64) +
                    "\" is neither a list of device indices from 0 to 63 such as 0-3,8 nor one of all, none, off");
  }
  return std::optional(CoreDevices{false, *std::move(listed)});
}

std::string format_core_devices(const std::optional<CoreDevices>& split) {
  if (!split) return "off";
  if (split->all) return "all";
  return split->listed.empty() ? "none" : format_int_list(split->listed);
}

}  // namespace neuron::core
