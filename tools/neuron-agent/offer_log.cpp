#include "tools/neuron-agent/offer_log.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"

namespace neuron::agent {
namespace {

using model::Resource;

// Of the type where it is known, as a device may come back; else those that are there.
std::vector<int> devices_of(const model::HostScan& host) {
  std::set<int> indices;
  for (const model::NeuronDevice& device : host.devices) indices.insert(device.index);
  const core::InstanceType* type = core::find_instance_type(host.instance_type);
  for (int i = 0; type != nullptr && i < type->device_count; ++i) indices.insert(i);
  return {indices.begin(), indices.end()};
}

std::string list(const std::vector<int>& devices) {
  return devices.empty() ? "none" : format_int_list(devices);
}

// What is offered of the node, of all that it may have.
bool offers_something(const core::OfferPolicy& offer, const model::HostScan& host) {
  if (offer.serves(Resource::efa) && !host.efas.empty()) return true;
  const std::vector<int> devices = host.devices.empty() ? std::vector<int>{} : devices_of(host);
  return std::any_of(devices.begin(), devices.end(), [&](int device) {
    return std::any_of(model::kAllResources.begin(), model::kAllResources.end(),
                       [&](Resource resource) { return model::has_cores(resource) && offer.offers(resource, device); });
  });
}

OfferLine nothing_offered(const core::OfferPolicy& offer, const model::HostScan& host) {
  return {true, "nothing of this node is offered: it has " + std::to_string(host.devices.size()) +
                    " Neuron devices and " + std::to_string(host.efas.size()) + " EFA interfaces, and --resources " +
                    core::format_resource_list(offer.resources) + " with --core-devices " +
                    core::format_core_devices(offer.split) +
                    " excludes them; name a resource that it has, or keep the agent off such nodes"};
}

}  // namespace

std::vector<OfferLine> offer_lines(const core::OfferPolicy& offer, const model::HostScan& host) {
  if (host.devices.empty() && host.efas.empty()) return {};
  if (!offers_something(offer, host)) return {nothing_offered(offer, host)};
  if (host.devices.empty()) return {};
  if (offer.mixes()) {
    return {{false,
             "every device is offered as neuron and as neuroncore, which the scheduler counts separately: pods of a "
             "queue that mixes both fail with UnexpectedAdmissionError; use one name per node (--resources) or a split "
             "(--core-devices), see docs/resources.md#one-name-or-two"}};
  }
  if (!offer.split) return {};
  std::vector<int> as_cores;
  std::vector<int> whole;
  std::vector<int> hidden;
  const std::vector<int> devices = devices_of(host);
  for (const int device : devices) {
    const bool is_whole = offer.offers(Resource::neuron, device) || offer.offers(Resource::neurondevice, device);
    const bool is_cores = offer.offers(Resource::neuroncore, device);
    (is_cores ? as_cores : is_whole ? whole : hidden).push_back(device);
  }
  std::vector<OfferLine> lines = {
      {false, "devices offered only as cores: " + list(as_cores) + "; only whole: " + list(whole)}};
  std::vector<int> absent;
  std::set_difference(offer.split->listed.begin(), offer.split->listed.end(), devices.begin(), devices.end(),
                      std::back_inserter(absent));
  if (!absent.empty()) {
    lines.push_back({true, "--core-devices names devices that this node does not have: " + list(absent)});
  }
  if (!hidden.empty()) {
    lines.push_back(
        {true, "devices " + list(hidden) +
                   " are not offered: --resources excludes the resource that --core-devices assigns to them"});
  }
  return lines;
}

}  // namespace neuron::agent
