#include "plugin/kubelet/checkpoint.h"

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

constexpr std::size_t kMaxIds = 1U << 16U;  // of our resources; a hundred times what a node has

using nlohmann::json;

// Takes the entries out of the text as it is read. Nothing else is kept: the answers of other plugins (AllocResp) and
// the ids of all devices (RegisteredDevices) are most of a large file. DeviceIDs is {"<numa node or -1>": [ids]}; a
// device with two nodes is under both.
class EntryReader final : public nlohmann::json_sax<json> {
 public:
  [[nodiscard]] std::vector<holdings::ShownHolding> take() { return std::move(holdings_); }
  [[nodiscard]] bool known_shape() const { return has_data_; }
  [[nodiscard]] bool too_many() const { return too_many_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool string(string_t& text) override {
    if (!in_entry_) return true;
    if (depth_ == kEntry) {
      if (key_ == "ResourceName") entry_.resource_name = printable(text, kMaxName);
      if (key_ == "PodUID") pod_ = printable(text, kMaxName);
      if (key_ == "ContainerName") container_ = printable(text, kMaxName);
    } else if (depth_ == kIds && in_ids_) {
      ids_.insert(printable(text, kMaxName));
    }
    too_many_ = kept_ids_ + ids_.size() > kMaxIds;
    return !too_many_;
  }
  bool key(string_t& name) override {
    if (depth_ <= kEntry) key_ = name;
    return true;
  }
  bool start_object(std::size_t /*size*/) override {
    ++depth_;
    if (depth_ == kData && key_ == "Data") in_data_ = has_data_ = true;
    if (depth_ == kEntry && in_entries_) begin_entry();
    if (depth_ == kNodes && in_entry_ && key_ == "DeviceIDs") in_nodes_ = true;
    return true;
  }
  bool end_object() override {
    if (depth_ == kEntry && in_entry_) end_entry();
    if (depth_ == kNodes) in_nodes_ = false;
    if (depth_ == kData) in_data_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*size*/) override {
    ++depth_;
    if (depth_ == kEntries && in_data_ && key_ == "PodDeviceEntries") in_entries_ = true;
    if (depth_ == kIds && in_nodes_) in_ids_ = true;
    return depth_ > 1;  // the text is an object
  }
  bool end_array() override {
    if (depth_ == kIds) in_ids_ = false;
    if (depth_ == kEntries) in_entries_ = false;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const json::exception& /*error*/) override {
    return false;
  }

 private:
  // How deep the value in hand is: {"Data": {"PodDeviceEntries": [ {"DeviceIDs": {"0": [ … ]}} ]}}
  enum Depth { kData = 2, kEntries = 3, kEntry = 4, kNodes = 5, kIds = 6 };

  void begin_entry() {
    in_entry_ = true;
    entry_ = {};
    pod_.clear();
    container_.clear();
    ids_.clear();
    key_.clear();
  }
  void end_entry() {
    in_entry_ = false;
    if (!model::parse_resource(entry_.resource_name) || ids_.empty()) return ids_.clear();
    entry_.holder = "pod " + pod_ + "/" + container_;
    kept_ids_ += ids_.size();
    entry_.ids.assign(ids_.begin(), ids_.end());
    ids_.clear();
    holdings_.push_back(std::move(entry_));
  }

  std::vector<holdings::ShownHolding> holdings_;
  std::size_t kept_ids_ = 0;
  bool too_many_ = false;
  int depth_ = 0;
  std::string key_;  // the newest, down to those of an entry
  bool has_data_ = false, in_data_ = false, in_entries_ = false, in_entry_ = false, in_nodes_ = false, in_ids_ = false;
  holdings::ShownHolding entry_;
  std::string pod_, container_;
  std::set<std::string> ids_;
};

holdings::CheckpointVersion version_of(const struct stat& info) {
  std::uint64_t version = 14695981039346656037ULL;  // FNV-1a over what a rename changes
  for (const auto part : {static_cast<std::uint64_t>(info.st_ino), static_cast<std::uint64_t>(info.st_mtim.tv_sec),
                          static_cast<std::uint64_t>(info.st_mtim.tv_nsec), static_cast<std::uint64_t>(info.st_size)}) {
    version = (version ^ part) * 1099511628211ULL;
  }
  return std::max<std::uint64_t>(version, 1);
}

}  // namespace

holdings::CheckpointVersion checkpoint_version(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? version_of(info) : 0;
}

Result<std::vector<holdings::ShownHolding>> parse_checkpoint(std::string_view text) {
  EntryReader reader;
  const bool whole = json::sax_parse(text, &reader);
  if (reader.too_many()) return fail(ErrorCode::data_corrupt, "more than 65536 devices of ours in the checkpoint");
  if (!whole || !reader.known_shape()) return fail(ErrorCode::data_corrupt, "not a kubelet checkpoint");
  return reader.take();
}

Result<CheckpointText> read_checkpoint_text(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return fail(error_from_errno(errno, path));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return fail(error_from_errno(errno, path));
  std::string text;
  if (info.st_size > 0 && static_cast<std::size_t>(info.st_size) <= kMaxBytes) {
    text.reserve(static_cast<std::size_t>(info.st_size));
  }
  std::string chunk(64U << 10U, '\0');
  for (;;) {
    const ssize_t got = ::read(file.get(), chunk.data(), chunk.size());
    if (got < 0) return fail(error_from_errno(errno, path));
    if (got == 0) break;
    text.append(chunk, 0, static_cast<std::size_t>(got));
    if (text.size() > kMaxBytes) return fail(ErrorCode::data_corrupt, path + ": larger than 16 MiB");
  }
  return CheckpointText{std::move(text), version_of(info)};
}

Result<StoredHoldings> read_checkpoint(const std::string& path) {
  TRY_ASSIGN(const CheckpointText file, read_checkpoint_text(path));
  auto parsed = parse_checkpoint(file.text);
  if (!parsed) return fail(std::move(parsed).error().with_context(path));
  return StoredHoldings{*std::move(parsed), file.version};
}

}  // namespace neuron::plugin
