#include <algorithm>
#include <nlohmann/json.hpp>

#include "agent/base/encoding.h"
#include "agent/base/parse.h"
#include "agent/host/preflight_facts.h"
#include "agent/host/problems.h"

namespace neuron::host {
namespace {

using nlohmann::json;
using preflight::Presence;

constexpr std::size_t kMaxCheckpointBytes = std::size_t{16} << 20U;
constexpr std::size_t kMaxTakers = 8;
constexpr std::size_t kMaxSockets = 64;
constexpr std::size_t kMaxName = 120;

Presence presence_of(const FsRoot& directory, std::string_view path) {
  const auto id = directory.identify(path);
  if (id) return Presence::present;
  return is_absent(id.error()) ? Presence::absent : Presence::unknown;
}

std::string text_member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? printable(found->get_ref<const std::string&>(), kMaxName) : "";
}

bool is_ours(const std::string& resource) {
  return resource == "vpc.amazonaws.com/efa" || resource.starts_with("aws.amazon.com/neuron");
}

void look_into_plugins(const FsRoot& kubelet, preflight::KubeletFacts& facts) {
  const auto entries = kubelet.list("device-plugins");
  for (const std::string& name : entries.value_or(std::vector<std::string>{})) {
    if (!name.ends_with(".sock") || name == "kubelet.sock" || facts.plugin_sockets.size() == kMaxSockets) continue;
    facts.plugin_sockets.push_back(printable(name, kMaxName));
  }
  const auto checkpoint = kubelet.read_file("device-plugins/kubelet_internal_checkpoint", kMaxCheckpointBytes);
  if (checkpoint) facts.verbs_takers = verbs_takers_in(*checkpoint);
}

}  // namespace

std::vector<std::string> verbs_takers_in(std::string_view checkpoint) {
  std::vector<std::string> takers;
  const json document = json::parse(checkpoint, nullptr, false);
  if (!document.is_object()) return takers;
  const auto data = document.find("Data");
  if (data == document.end() || !data->is_object()) return takers;
  const auto entries = data->find("PodDeviceEntries");
  if (entries == data->end() || !entries->is_array()) return takers;
  for (const json& entry : *entries) {
    if (!entry.is_object() || takers.size() == kMaxTakers) continue;
    const std::string resource = text_member(entry, "ResourceName");
    const auto answer = entry.find("AllocResp");
    if (is_ours(resource) || answer == entry.end() || !answer->is_string()) continue;
    if (decode_base64(answer->get_ref<const std::string&>()).find("/dev/infiniband/uverbs") == std::string::npos) {
      continue;
    }
    takers.push_back(resource + " pod " + text_member(entry, "PodUID") + '/' + text_member(entry, "ContainerName"));
  }
  std::sort(takers.begin(), takers.end());
  return takers;
}

preflight::KubeletFacts look_at_kubelet(const std::string& directory) {
  preflight::KubeletFacts facts;
  facts.directory = directory;
  const auto kubelet = FsRoot::open(directory);
  if (!kubelet) {
    facts.itself = is_absent(kubelet.error()) ? Presence::absent : Presence::unknown;
    return facts;
  }
  facts.itself = Presence::present;
  facts.device_plugins = presence_of(*kubelet, "device-plugins");
  facts.kubelet_socket = presence_of(*kubelet, "device-plugins/kubelet.sock");
  facts.pod_resources_socket = presence_of(*kubelet, "pod-resources/kubelet.sock");
  look_into_plugins(*kubelet, facts);
  return facts;
}

}  // namespace neuron::host
