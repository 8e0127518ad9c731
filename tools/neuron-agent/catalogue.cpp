#include "tools/neuron-agent/catalogue.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "agent/core/typical_host.h"
#include "plugin/device/units.h"
#include "plugin/dra/slices/publisher.h"

namespace neuron::agent {
namespace {

namespace dra = plugin::dra;
using Json = nlohmann::ordered_json;
using Types = std::vector<const core::InstanceType*>;

grant::NodeUnits node_of(const core::InstanceType& type, std::optional<int> lnc, const Options& options) {
  auto snapshot = std::make_shared<model::Snapshot>();
  snapshot->number = snapshot->generation = 1;
  snapshot->host = core::typical_host(type, {lnc, options.driver_version});
  return grant::NodeUnits(std::move(snapshot));
}

// --lnc where the type has it.
std::optional<int> lnc_of(const core::InstanceType& type, const Options& options) {
  return options.lnc && core::has_lnc(type, *options.lnc) ? options.lnc : std::nullopt;
}

Result<Types> chosen_types(const Options& options) {
  Types types;
  if (options.types.empty()) {
    for (const core::InstanceType& type : core::all_instance_types()) types.push_back(&type);
    return types;
  }
  for (const std::string& name : options.types) {
    auto type = core::instance_type_called(name);
    if (!type) {
      return fail(type.error().code, type.error().message + " (neuron-agent catalogue without a type lists all)");
    }
    if (options.lnc && !core::has_lnc(**type, *options.lnc)) {
      return fail(ErrorCode::invalid_argument, "--lnc " + std::to_string(*options.lnc) + " is not possible on " +
                                                   (*type)->name +
                                                   ": 1 or 2 on Trainium2 and 3, 1 on others with Neuron");
    }
    if (std::ranges::find(types, *type) == types.end()) types.push_back(*type);
  }
  return types;
}

// ---- Facts of a type

Json or_null(int value) {
  return value > 0 ? Json(value) : Json();
}

Json devices_json(const core::InstanceType& type) {
  const std::uint64_t memory = type.family ? core::family_facts(*type.family).memory_bytes : 0;
  return {{"count", type.device_count},
          {"physicalCores", type.physical_cores_per_device},
          {"memoryGiB", memory >> 30U},
          {"addresses", type.bdf_is_stable                 ? "published"
                        : core::has_device_addresses(type) ? "of one machine"
                                                           : "made up"}};
}

Json lnc_json(const core::InstanceType& type) {
  if (!type.family) return nullptr;
  Json cores = Json::object();
  for (int lnc = 1; lnc <= type.default_lnc; ++lnc) {
    cores[std::to_string(lnc)] = type.device_count * type.physical_cores_per_device / lnc;
  }
  return {{"default", type.default_lnc}, {"logicalCores", std::move(cores)}};
}

// null: no source says how many.
Json interfaces_json(const core::InstanceType& type, const core::InstancePlaces& places) {
  if (!type.efa_count_is_known) return nullptr;
  Json names = Json::array();
  for (const core::EfaFacts& efa : places.efas) names.push_back(core::rdma_name_of(efa.bdf));
  return {{"count", type.efa_count},
          {"names", std::move(names)},
          {"addresses", core::has_efa_addresses(type) ? "published" : "made up"}};
}

// null: unknown.
Json numa_json(const core::InstanceType& type, const core::InstancePlaces& places) {
  if (!type.numa_is_known) return nullptr;
  Json nodes = Json::array();
  for (const core::NumaFacts& numa : type.numa) {
    Json devices = Json::array(), interfaces = Json::array();
    for (std::size_t i = 0; i < type.devices.size(); ++i) {
      if (type.devices[i].numa_node == numa.index) devices.push_back(i);
    }
    for (const core::EfaFacts& efa : places.efas) {
      if (efa.numa_node == numa.index) interfaces.push_back(core::rdma_name_of(efa.bdf));
    }
    nodes.push_back({{"index", numa.index},
                     {"cpus", numa.cpu_list},
                     {"devices", std::move(devices)},
                     {"interfaces", std::move(interfaces)}});
  }
  return nodes;
}

std::string fabric_of(const core::InstanceType& type) {
  using Shape = core::TopologyShape;
  if (type.shape == Shape::torus_4x4) return "torus";
  return type.shape == Shape::chain ? "line" : std::string(to_string(type.shape));
}

Json links_json(const core::InstanceType& type) {
  Json links = Json::array();
  for (const core::DeviceFacts& device : type.devices) links.push_back(device.neighbours);
  return links;
}

Json nearest_json(const core::InstanceType& type) {
  Json nearest = Json::array();
  for (const core::DeviceFacts& device : type.devices) {
    nearest.push_back(device.nearest_efa ? Json(core::rdma_name_of(*device.nearest_efa)) : Json());
  }
  return nearest;
}

Json groups_json(const grant::NodeUnits& node) {
  Json groups = Json::array();
  for (const dra::Group& group : dra::groups_of(node)) {
    const bool is_next = groups.empty() || groups.back()["size"] != group.members.size();
    if (is_next) groups.push_back({{"size", group.members.size()}, {"members", Json::array()}});
    groups.back()["members"].push_back(group.members);
  }
  return groups;
}

// ---- Allocatable

struct Offer {
  std::string options;  // of `run`
  core::OfferPolicy policy;
};

std::string words_of(const Options& options) {
  std::string words;
  const auto add = [&words](const std::string& more) { words += (words.empty() ? "" : " ") + more; };
  if (options.offer.resources) add("--resources " + core::format_resource_list(*options.offer.resources));
  if (options.offer.core_devices_said) {
    add("--core-devices " + core::format_core_devices(options.offer.core_devices));
  }
  if (options.neurondevice) add("--neurondevice");
  return words;
}

// The one that the options choose, then the usual ones.
std::vector<Offer> offers_of(const Options& options) {
  Options whole, cores, old_name;
  for (Options* split : {&whole, &cores}) split->offer.core_devices_said = true;
  whole.offer.core_devices = core::CoreDevices{};
  cores.offer.core_devices = core::CoreDevices{true, {}};
  old_name.neurondevice = true;
  std::vector<Offer> offers;
  for (const Options& one : {options, Options(), whole, cores, old_name}) {
    Offer offer{words_of(one), one.offer_policy()};
    const bool is_known =
        std::ranges::any_of(offers, [&](const Offer& other) { return other.options == offer.options; });
    if (!is_known) offers.push_back(std::move(offer));
  }
  return offers;
}

Json resources_json(const grant::NodeUnits& node, const core::OfferPolicy& policy) {
  Json resources = Json::object();
  for (const model::Resource resource : model::kAllResources) {
    const auto units = plugin::make_unit_list(node, resource, policy, {});
    if (!units.empty()) resources[std::string(model::resource_name(resource))] = units.size();
  }
  return resources;
}

Json allocatable_json(const core::InstanceType& type, const Options& options) {
  Json all = Json::array();
  for (int lnc = std::max(type.default_lnc, 1); lnc >= 1; --lnc) {
    if (options.lnc && core::has_lnc(type, *options.lnc) && lnc != *options.lnc) continue;
    const grant::NodeUnits node = node_of(type, type.family ? std::optional(lnc) : std::nullopt, options);
    for (const Offer& offer : offers_of(options)) {
      all.push_back({{"options", offer.options},
                     {"lnc", type.family ? Json(lnc) : Json()},
                     {"resources", resources_json(node, offer.policy)}});
      if (!type.family) break;
    }
  }
  return all;
}

Json type_json(const core::InstanceType& type, const Options& options) {
  const core::InstancePlaces places = core::places_of(type);
  return {{"name", type.name},
          {"family", type.family ? Json(std::string(model::to_string(*type.family))) : Json()},
          {"vcpus", or_null(type.vcpus)},
          {"hostMemoryGiB", or_null(type.host_memory_gib)},
          {"devices", devices_json(type)},
          {"lnc", lnc_json(type)},
          {"interfaces", interfaces_json(type, places)},
          {"numaNodes", numa_json(type, places)},
          {"fabric", fabric_of(type)},
          {"links", links_json(type)},
          {"nearestInterfaces", nearest_json(type)},
          {"ultraServer", type.in_ultraserver},
          {"groups", groups_json(node_of(type, lnc_of(type, options), options))},
          {"allocatable", allocatable_json(type, options)}};
}

// For standard error: of what is printed without.
void note_interfaces(const core::InstanceType& type, std::vector<std::string>& notes) {
  if (!type.efa_count_is_known) notes.push_back(type.name + ": without interfaces, whose number is not public");
}

// ---- NodeOverlays

// Karpenter's AWS provider counts devices, physical cores and interfaces of a type: what the agent counts otherwise is
// overridden, and what it does not offer is 0. Interfaces that are left out of --resources are left to another plugin.
Json capacity_json(const core::InstanceType& type, const Options& options) {
  const grant::NodeUnits node = node_of(type, lnc_of(type, options), options);
  const Json all = resources_json(node, Options().offer_policy());
  const Json offered = resources_json(node, options.offer_policy());
  Json capacity = Json::object();
  for (const auto& [name, units] : all.items()) {
    if (name != model::resource_name(model::Resource::efa)) capacity[name] = "0";
  }
  for (const auto& [name, units] : offered.items()) capacity[name] = units.dump();
  return capacity;
}

Catalogue overlays_report(const Types& types, const Options& options) {
  Catalogue catalogue;
  Json items = Json::array();
  for (const core::InstanceType* type : types) {
    Json capacity = capacity_json(*type, options);
    if (options.offer_policy().serves(model::Resource::efa)) note_interfaces(*type, catalogue.notes);
    if (capacity.empty()) continue;
    const Json of_type = {
        {"key", "node.kubernetes.io/instance-type"}, {"operator", "In"}, {"values", Json::array({type->name})}};
    items.push_back({{"apiVersion", "karpenter.sh/v1alpha1"},
                     {"kind", "NodeOverlay"},
                     {"metadata", {{"name", "neuron-agent-" + type->name}}},
                     {"spec", {{"requirements", Json::array({of_type})}, {"capacity", std::move(capacity)}}}});
  }
  const Json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
  catalogue.report = {Verdict::good, dump(list), ""};
  return catalogue;
}

// ---- Tags

// By type: the tags of an Auto Scaling group from which cluster-autoscaler knows the resources of a node to come.
Catalogue tags_report(const Types& types, const Options& options) {
  Catalogue catalogue;
  Json all = Json::object();
  for (const core::InstanceType* type : types) {
    const grant::NodeUnits node = node_of(*type, lnc_of(*type, options), options);
    const Json offered = resources_json(node, options.offer_policy());
    if (options.offer_policy().serves(model::Resource::efa)) note_interfaces(*type, catalogue.notes);
    Json tags = Json::object();
    for (const auto& [name, units] : offered.items()) {
      tags["k8s.io/cluster-autoscaler/node-template/resources/" + name] = units.dump();
    }
    if (!tags.empty()) all[type->name] = std::move(tags);
  }
  catalogue.report = {Verdict::good, dump(all), ""};
  return catalogue;
}

// ---- Slices

nlohmann::json slices_of(const core::InstanceType& type, const Options& options, std::vector<std::string>& notes) {
  const dra::Pool pool = dra::make_pool(node_of(type, lnc_of(type, options), options), options.dra.pool, {});
  const dra::Layout layout = dra::lay_out(pool, options.dra.layout);
  for (const std::string& what : layout.left_out) notes.push_back(type.name + ": left out of slices: " + what);
  const bool has_addresses = core::has_device_addresses(type) && core::has_efa_addresses(type);
  if (!has_addresses) notes.push_back(type.name + ": PCI addresses that are not public are made up");
  note_interfaces(type, notes);
  const std::string node = options.node_name.empty() ? type.name : options.node_name;
  const std::string pool_name = options.dra.pool_name.empty() ? node : options.dra.pool_name;
  nlohmann::json items = nlohmann::json::array();
  for (dra::Slice& slice : dra::whole_slices(layout.slices, {options.dra.pool.driver, pool_name, {node, ""}})) {
    items.push_back(std::move(slice.json));
  }
  return items;
}

Catalogue slices_report(const Types& types, const Options& options) {
  Catalogue catalogue;
  nlohmann::json items = nlohmann::json::array();
  for (const core::InstanceType* type : types) {
    for (nlohmann::json& slice : slices_of(*type, options, catalogue.notes)) items.push_back(std::move(slice));
  }
  const nlohmann::json list = {{"apiVersion", "v1"}, {"kind", "List"}, {"items", std::move(items)}};
  catalogue.report = {Verdict::good, list.dump(2) + "\n", ""};
  return catalogue;
}

}  // namespace

Json catalogue_json(const Types& types, const Options& options) {
  Json all = Json::array();
  for (const core::InstanceType* type : types) all.push_back(type_json(*type, options));
  return {{"schema", kCatalogueSchema}, {"types", std::move(all)}};
}

Catalogue catalogue(const Options& options) {
  const auto types = chosen_types(options);
  if (!types) return {cannot_tell(types.error().message), {}};
  if (options.output == ReportForm::slices) return slices_report(*types, options);
  if (options.output == ReportForm::overlays) return overlays_report(*types, options);
  if (options.output == ReportForm::tags) return tags_report(*types, options);
  const Json document = catalogue_json(*types, options);
  switch (options.output) {
    case ReportForm::json:
      return {{Verdict::good, dump(document), ""}, {}};
    case ReportForm::yaml:
      return {{Verdict::good, yaml_of(document), ""}, {}};
    default:
      return {{Verdict::good, catalogue_table(document), ""}, {}};
  }
}

}  // namespace neuron::agent
