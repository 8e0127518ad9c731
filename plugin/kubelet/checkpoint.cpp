#include "plugin/kubelet/checkpoint.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "deviceplugin/v1beta1/api.pb.h"

namespace neuron::plugin {
namespace {

constexpr std::size_t kMaxBytes = 16U << 20U;
constexpr std::size_t kMaxName = 256;

constexpr std::size_t kMaxIds = 1U << 16U;  // of this agent's resources; a hundred times a node's
constexpr int kMaxNumber = 65535;           // of a device or core

using nlohmann::json;

void add_number(std::string_view id, std::set<int>& numbers) {
  if (const auto number = parse_int(id, 0, kMaxNumber)) numbers.insert(*number);
}

// The N of each /dev/neuron<N> in a ContainerAllocateResponse, as base64; none when it is not one.
std::vector<int> devices_in(std::string_view answer) {
  constexpr std::string_view kNode = "/dev/neuron";
  constexpr int kMaxAnswerBytes = 1 << 20;
  v1beta1::ContainerAllocateResponse response;
  const std::string bytes = decode_base64(answer);
  if (bytes.size() > kMaxAnswerBytes || !response.ParseFromString(bytes)) return {};
  std::set<int> devices;
  for (const v1beta1::DeviceSpec& node : response.devices()) {
    const std::string_view path = node.container_path();
    if (path.starts_with(kNode)) add_number(path.substr(kNode.size()), devices);
  }
  return {devices.begin(), devices.end()};
}

// Takes what is needed out of the text as it is read. Nothing else is kept, and of one entry at a time: recorded
// answers (AllocResp) and the ids of all devices (RegisteredDevices) are most of a large file. DeviceIDs is
// {"<numa node or -1>": [ids]}; a device with two nodes is under both.
class CheckpointReader final : public nlohmann::json_sax<json> {
 public:
  [[nodiscard]] Checkpoint take() {
    content_.listed_devices.assign(devices_.begin(), devices_.end());
    content_.listed_cores.assign(cores_.begin(), cores_.end());
    if (!cores_.empty()) content_.numbering.highest_listed = *cores_.rbegin();
    std::sort(content_.verbs_takers.begin(), content_.verbs_takers.end());
    return std::move(content_);
  }
  [[nodiscard]] bool known_shape() const { return has_data_; }
  [[nodiscard]] bool too_many() const { return too_many_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(number_integer_t /*value*/) override { return true; }
  bool number_unsigned(number_unsigned_t /*value*/) override { return true; }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool string(string_t& text) override {
    if (listed_ != nullptr && depth_ == kListed) add_number(text, *listed_);
    if (!in_entry_) return true;
    if (depth_ == kEntry) {
      if (key_ == "ResourceName") entry_.resource_name = printable(text, kMaxName);
      if (key_ == "PodUID") entry_.pod_uid = printable(text, kMaxName);
      if (key_ == "ContainerName") entry_.container = printable(text, kMaxName);
      if (key_ == "AllocResp") answer_ = std::move(text);
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
    if (depth_ == kRegistered && in_data_ && key_ == "RegisteredDevices") in_registered_ = true;
    if (depth_ == kEntry && in_entries_) begin_entry();
    if (depth_ == kNodes && in_entry_ && key_ == "DeviceIDs") in_nodes_ = true;
    return true;
  }
  bool end_object() override {
    if (depth_ == kEntry && in_entry_) end_entry();
    if (depth_ == kNodes) in_nodes_ = false;
    if (depth_ == kRegistered) in_registered_ = false;
    if (depth_ == kData) in_data_ = false;
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*size*/) override {
    ++depth_;
    if (depth_ == kEntries && in_data_ && key_ == "PodDeviceEntries") in_entries_ = true;
    if (depth_ == kListed && in_registered_) listed_ = listed_of(key_);
    if (depth_ == kIds && in_nodes_) in_ids_ = true;
    return depth_ > 1;  // the text is an object
  }
  bool end_array() override {
    if (depth_ == kIds) in_ids_ = false;
    if (depth_ == kListed) listed_ = nullptr;
    if (depth_ == kEntries) in_entries_ = false;
    --depth_;
    return true;
  }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/, const json::exception& /*error*/) override {
    return false;
  }

 private:
  // Depth of the current value: {"Data": {"PodDeviceEntries": [ {"DeviceIDs": {"0": [ … ]}} ]}}, and
  // {"Data": {"RegisteredDevices": {"aws.amazon.com/neuron": [ … ]}}}.
  enum Depth { kData = 2, kEntries = 3, kRegistered = 3, kEntry = 4, kListed = 4, kNodes = 5, kIds = 6 };

  void begin_entry() {
    in_entry_ = true;
    entry_ = {};
    answer_.clear();
    ids_.clear();
    key_.clear();
  }
  void end_entry() {
    in_entry_ = false;
    const auto resource = model::parse_resource(entry_.resource_name);
    if (!resource) note_verbs();
    if (!resource || ids_.empty()) return ids_.clear();
    kept_ids_ += ids_.size();
    entry_.ids.assign(ids_.begin(), ids_.end());
    ids_.clear();
    if (resource == model::Resource::neuroncore) note_numbering();
    // By a quarter: while it doubles a large list is there three times.
    if (content_.allocations.size() == content_.allocations.capacity())
      content_.allocations.reserve(content_.allocations.size() + content_.allocations.size() / 4 + 16);
    content_.allocations.push_back(std::move(entry_));
  }
  void note_numbering() {
    std::set<int> cores;
    for (const std::string& id : entry_.ids) add_number(id, cores);
    if (!cores.empty()) content_.numbering.given.push_back({{cores.begin(), cores.end()}, devices_in(answer_)});
  }
  // Of an entry of another resource.
  void note_verbs() {
    constexpr std::size_t kMaxTakers = 8;
    constexpr std::size_t kMaxShown = 120;
    std::vector<std::string>& takers = content_.verbs_takers;
    if (takers.size() == kMaxTakers || entry_.resource_name.starts_with("aws.amazon.com/neuron")) return;
    if (decode_base64(answer_).find("/dev/infiniband/uverbs") == std::string::npos) return;
    takers.push_back(printable(entry_.resource_name, kMaxShown) + " pod " + printable(entry_.pod_uid, kMaxShown) + '/' +
                     printable(entry_.container, kMaxShown));
  }
  std::set<int>* listed_of(std::string_view resource_name) {
    const auto resource = model::parse_resource(resource_name);
    if (!resource || *resource == model::Resource::efa) return nullptr;
    return *resource == model::Resource::neuroncore ? &cores_ : &devices_;
  }

  Checkpoint content_;
  std::set<int> devices_, cores_;    // listed
  std::set<int>* listed_ = nullptr;  // which of them the array in hand is for
  std::size_t kept_ids_ = 0;
  bool too_many_ = false;
  int depth_ = 0;
  std::string key_;  // the newest, down to those of an entry
  bool has_data_ = false, in_data_ = false, in_registered_ = false, in_entries_ = false, in_entry_ = false,
       in_nodes_ = false, in_ids_ = false;
  model::Allocation entry_;
  std::string answer_;
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

SteadyTime written_at(const struct stat& info) {
  const std::chrono::system_clock::time_point modified{std::chrono::duration_cast<std::chrono::system_clock::duration>(
      std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec))};
  const auto age = std::chrono::system_clock::now() - modified;
  return std::chrono::steady_clock::now() - std::max(age, decltype(age){0});
}

// At most kMaxBytes; `info` is of the file that was read.
Result<std::string> read_text(const std::string& path, struct stat& info) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (!file.valid()) return fail(error_from_errno(errno, path));
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
  return text;
}

}  // namespace

holdings::CheckpointVersion checkpoint_version(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? version_of(info) : 0;
}

std::optional<holdings::CheckpointVersion> cached_checkpoint_version(const std::string& path) {
  open_how how{};
  how.flags = O_PATH | O_CLOEXEC;
  how.resolve = RESOLVE_CACHED;  // finds only a file whose inode is in memory, so that fstat() asks no disk either
  constexpr int kMostTries = 3;  // it fails as well while a file is renamed into that place
  for (int i = 0; i < kMostTries; ++i) {
    const Fd file(static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
    struct stat info {};
    if (file.valid() && ::fstat(file.get(), &info) == 0) return version_of(info);
  }
  return std::nullopt;
}

Result<Checkpoint> parse_checkpoint(std::string_view text) {
  CheckpointReader reader;
  const bool whole = json::sax_parse(text, &reader);
  if (reader.too_many())
    return fail(ErrorCode::data_corrupt, "more than 65536 Neuron and EFA devices in the checkpoint");
  if (!whole || !reader.known_shape()) return fail(ErrorCode::data_corrupt, "not a kubelet checkpoint");
  return reader.take();
}

Result<Checkpoint> read_checkpoint(const std::string& path) {
  struct stat info {};
  TRY_ASSIGN(const std::string text, read_text(path, info));
  auto parsed = parse_checkpoint(text);
  if (!parsed) return fail(std::move(parsed).error().with_context(path));
  parsed->version = version_of(info);
  parsed->written_at = written_at(info);
  return parsed;
}

bool may_hold_claims(const std::string& kubelet_dir) {
  constexpr std::string_view kClaim = "ClaimUID";  // of each entry, in every kubelet's format
  struct stat info {};
  const auto text = read_text(kubelet_dir + "/dra_manager_state", info);
  return text ? text->find(kClaim) != std::string::npos : text.error().code != ErrorCode::not_found;
}

WatchedCheckpoint::WatchedCheckpoint(const std::string& directory, Workers& workers, std::function<void()> came_back)
    : path_(directory + "/" + std::string(kCheckpointName)), calls_(workers, {{}, std::move(came_back)}) {}

holdings::CheckpointVersion WatchedCheckpoint::version() const {
  if (const auto version = cached_checkpoint_version(path_)) return *version;
  return calls_.run([path = path_] { return checkpoint_version(path); }, kVersionBudget).value_or(0);
}

Result<Checkpoint> WatchedCheckpoint::read() const {
  auto read = calls_.run([path = path_] { return read_checkpoint(path); }, kReadBudget);
  if (!read) return fail(ErrorCode::deadline_exceeded, "reading " + path_ + " has not returned");
  return *std::move(read);
}

}  // namespace neuron::plugin
