#include "plugin/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/base/fd.h"
#include "agent/base/parse.h"

namespace neuron::plugin {
namespace {

constexpr std::size_t kMaxBytes = 16U << 20U;
constexpr std::size_t kMaxName = 256;

using nlohmann::json;

std::string text_member(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? printable(found->get_ref<const std::string&>(), kMaxName) : "";
}

// DeviceIDs is {"<numa node or -1>": [ids]}; a device with two nodes is under both.
std::vector<std::string> ids_of(const json& entry) {
  std::set<std::string> ids;
  const auto by_node = entry.find("DeviceIDs");
  if (by_node == entry.end() || !by_node->is_object()) return {};
  for (const json& list : *by_node) {
    if (!list.is_array()) continue;
    for (const json& id : list) {
      if (id.is_string()) ids.insert(printable(id.get_ref<const std::string&>(), kMaxName));
    }
  }
  return {ids.begin(), ids.end()};
}

core::AdmissionMark mark_of(const struct stat& info) {
  std::uint64_t mark = 14695981039346656037ULL;  // FNV-1a over what a rename changes
  for (const auto part : {static_cast<std::uint64_t>(info.st_ino), static_cast<std::uint64_t>(info.st_mtim.tv_sec),
                          static_cast<std::uint64_t>(info.st_mtim.tv_nsec), static_cast<std::uint64_t>(info.st_size)}) {
    mark = (mark ^ part) * 1099511628211ULL;
  }
  return std::max<std::uint64_t>(mark, 1);
}

}  // namespace

core::AdmissionMark checkpoint_mark(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? mark_of(info) : 0;
}

Result<std::vector<ShownHolding>> parse_checkpoint(std::string_view text) {
  const json document = json::parse(text, nullptr, false);
  const auto corrupt = [] { return fail(ErrorCode::data_corrupt, "not a kubelet checkpoint"); };
  if (!document.is_object()) return corrupt();
  const auto data = document.find("Data");
  if (data == document.end() || !data->is_object()) return corrupt();
  std::vector<ShownHolding> holdings;
  const auto entries = data->find("PodDeviceEntries");
  if (entries == data->end() || !entries->is_array()) return holdings;  // null when nobody holds anything
  for (const json& entry : *entries) {
    if (!entry.is_object()) continue;
    ShownHolding holding{text_member(entry, "ResourceName"), ids_of(entry),
                         "pod " + text_member(entry, "PodUID") + "/" + text_member(entry, "ContainerName")};
    if (parse_resource(holding.resource_name) && !holding.ids.empty()) holdings.push_back(std::move(holding));
  }
  return holdings;
}

Result<CheckpointText> read_checkpoint_text(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return fail(error_from_errno(errno, path));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail(error_from_errno(errno, path));
  std::string text;
  std::string chunk(64U << 10U, '\0');
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0) return fail(error_from_errno(errno, path));
    if (got == 0) break;
    text.append(chunk, 0, static_cast<std::size_t>(got));
    if (text.size() > kMaxBytes) return fail(ErrorCode::data_corrupt, path + ": larger than 16 MiB");
  }
  return CheckpointText{std::move(text), mark_of(info)};
}

Result<StoredHoldings> read_checkpoint(const std::string& path) {
  TRY_ASSIGN(const CheckpointText file, read_checkpoint_text(path));
  auto parsed = parse_checkpoint(file.text);
  if (!parsed) return fail(std::move(parsed).error().with_context(path));
  return StoredHoldings{*std::move(parsed), file.mark};
}

}  // namespace neuron::plugin
