#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "tools/neuron-sim/kubelet/allocation.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;

using Json = nlohmann::ordered_json;

Json encode_entry(const CheckpointEntry& entry) {
  Json ids = Json::object();
  for (const auto& [node, list] : entry.ids_by_numa) ids[std::to_string(node)] = list;
  return Json{{"PodUID", entry.pod_uid},
              {"ContainerName", entry.container},
              {"ResourceName", entry.resource},
              {"DeviceIDs", std::move(ids)},
              {"AllocResp", encode_base64(entry.response)}};
}

// May throw nlohmann's exceptions: decode_checkpoint() is the bridge.
Result<CheckpointEntry> decode_entry(const Json& json) {
  CheckpointEntry entry;
  entry.pod_uid = json.at("PodUID").get<std::string>();
  entry.container = json.at("ContainerName").get<std::string>();
  entry.resource = json.at("ResourceName").get<std::string>();
  for (const auto& [key, list] : json.at("DeviceIDs").items()) {
    const auto node = parse_i64(key);
    if (!node) return fail(ErrorCode::data_corrupt, "NUMA node \"" + printable(key) + "\" is not a number");
    entry.ids_by_numa[*node] = list.get<std::vector<std::string>>();
  }
  const Json& response = json.at("AllocResp");
  entry.response = decode_base64(response.is_null() ? std::string() : response.get<std::string>());
  return entry;
}

Result<Checkpoint> decode_document(const Json& json) {
  Checkpoint checkpoint;
  const Json& data = json.at("Data");
  if (const Json& entries = data.at("PodDeviceEntries"); !entries.is_null()) {
    for (const Json& entry : entries) {
      TRY_ASSIGN(auto decoded, decode_entry(entry));
      checkpoint.entries.push_back(std::move(decoded));
    }
  }
  for (const auto& [resource, ids] : data.at("RegisteredDevices").items()) {
    checkpoint.registered[resource] = ids.is_null() ? std::vector<std::string>() : ids.get<std::vector<std::string>>();
  }
  return checkpoint;
}

}  // namespace

std::string encode_checkpoint(const Checkpoint& checkpoint) {
  Json entries;  // null as long as there is none
  for (const CheckpointEntry& entry : checkpoint.entries) entries.push_back(encode_entry(entry));
  Json registered = Json::object();
  for (const auto& [resource, ids] : checkpoint.registered) registered[resource] = ids;
  const Json data = {{"PodDeviceEntries", std::move(entries)}, {"RegisteredDevices", std::move(registered)}};
  return Json{{"Data", data}, {"Checksum", 0}}.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Checkpoint> decode_checkpoint(const std::string& text) {
  try {
    return decode_document(Json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::data_corrupt, std::string("checkpoint: ") + error.what());
  }
}

Result<void> write_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  std::string temporary = std::filesystem::path(path).parent_path() / ".tmp-checkpoint-XXXXXX";
  const Fd file(::mkstemp(temporary.data()));
  if (!file.valid()) return fail(error_from_errno(errno, "creating " + temporary));
  Result<void> written = write_all(file.get(), encode_checkpoint(checkpoint), "writing " + temporary);
  if (written && ::rename(temporary.c_str(), path.c_str()) != 0) {
    written = fail(error_from_errno(errno, "renaming " + temporary + " to " + path));
  }
  if (!written) ::unlink(temporary.c_str());
  return written;
}

Result<Checkpoint> read_checkpoint(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return fail(error_from_errno(errno, "opening " + path));
  TRY_ASSIGN(const std::string text, read_all(file.get(), kMaxBytes, "reading " + path));
  return decode_checkpoint(text);
}

}  // namespace neuron::sim
