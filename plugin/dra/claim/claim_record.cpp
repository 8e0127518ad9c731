#include "plugin/dra/claim/claim_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/core/hardware.h"
#include "agent/kube/answers.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

constexpr const char* kCompleted = "completed";
constexpr const char* kStarted = "started";
constexpr std::size_t kMaxFileBytes = 16U << 20U;
constexpr std::size_t kMaxReleased = 256;  // many times the calls that can be under way
// Besides the file as it is, so that releases, which are recorded, fit too; and what the room is a multiple of.
constexpr std::size_t kSpareRoom = 16U << 10U;

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

json request_json(const RecordedRequest& request) {
  const PlannedRequest& planned = request.planned;
  json devices = json::array();
  for (const HeldDevice& held : planned.hardware.devices) {
    json device = {{"device", held.device}};
    if (!held.places.empty()) device["places"] = held.places;
    devices.push_back(std::move(device));
  }
  json one = {{"request", planned.name}, {"neuron", std::move(devices)}, {"efas", planned.hardware.efas}};
  if (planned.admin_access) one["adminAccess"] = true;
  if (planned.config.lnc) one["lnc"] = *planned.config.lnc;
  if (planned.config.ultraserver_mode) one["ultraserverMode"] = *planned.config.ultraserver_mode;
  if (!request.environment.empty()) one["environment"] = request.environment;
  return one;
}

json device_json(const PreparedDevice& device) {
  json one = {{"requests", device.requests}, {"pool", device.pool}, {"device", device.device}, {"cdi", device.cdi_ids}};
  if (device.share_id) one["shareID"] = *device.share_id;
  if (!device.share.empty()) one["share"] = device.share;
  return one;
}

// The readers below let nlohmann::json throw on a wrong type; parse_record catches.
int number_of(const json& value) {
  constexpr int kMax = 65535;
  if (!value.is_number_integer()) throw json::type_error::create(302, "not an integer", &value);
  const auto number = value.get<std::int64_t>();
  if (number < 0 || number > kMax) throw json::out_of_range::create(401, "a number out of range", &value);
  return static_cast<int>(number);
}

std::optional<int> optional_number(const json& one, const char* name) {
  return one.contains(name) ? std::optional(number_of(one[name])) : std::nullopt;
}

RecordedRequest request_of(const json& one) {
  RecordedRequest request;
  PlannedRequest& planned = request.planned;
  planned.name = one.at("request").get<std::string>();
  for (const json& held : one.value("neuron", json::array())) {
    HeldDevice device{number_of(held.at("device")), {}};
    for (const json& place : held.value("places", json::array())) device.places.push_back(number_of(place));
    std::sort(device.places.begin(), device.places.end());
    planned.hardware.add({{std::move(device)}, {}});
  }
  auto efas = one.value("efas", std::vector<std::string>());
  std::sort(efas.begin(), efas.end());
  planned.hardware.add({{}, std::move(efas)});
  planned.admin_access = one.value("adminAccess", false);
  planned.config = {optional_number(one, "lnc"), optional_number(one, "ultraserverMode")};
  request.environment = one.value("environment", Environment());
  return request;
}

PreparedDevice device_of(const json& one) {
  PreparedDevice device{one.at("requests").get<std::vector<std::string>>(),
                        one.at("pool").get<std::string>(),
                        one.at("device").get<std::string>(),
                        one.at("cdi").get<std::vector<std::string>>(),
                        {},
                        {}};
  if (one.contains("shareID")) device.share_id = one["shareID"].get<std::string>();
  device.share = one.value("share", "");
  return device;
}

ClaimRecord record_of(const json& object) {
  constexpr int kMaxLnc = 8;  // physical cores of the largest device
  ClaimRecord record;
  record.uid = object.at("uid").get<std::string>();
  const std::string state = object.at("state").get<std::string>();
  if (state != kCompleted && state != kStarted) throw json::other_error::create(501, "an unknown state", &object);
  record.is_completed = state == kCompleted;
  record.claim_namespace = object.value("namespace", "");
  record.name = object.value("name", "");
  record.resource_version = object.value("resourceVersion", "");
  for (const json& one : object.value("requests", json::array())) record.requests.push_back(request_of(one));
  for (const json& one : object.value("devices", json::array())) record.devices.push_back(device_of(one));
  record.cdi_text = object.value("cdi", "");
  const int lnc = optional_number(object, "nodeLnc").value_or(0);
  if (lnc >= 1 && lnc <= kMaxLnc) record.node_lnc = lnc;
  if (object.contains("graceSeconds")) {
    record.grace = std::clamp(std::chrono::seconds(object["graceSeconds"].get<std::int64_t>()), std::chrono::seconds(0),
                              kMaxGrace);
  }
  return record;
}

std::shared_ptr<const ClaimRecord> shared(ClaimRecord record) {
  return std::make_shared<const ClaimRecord>(std::move(record));
}

// The file is one JSON object that begins with the checksum of all bytes behind it: of the bytes, since another version
// would write the same content in other ones.
std::string head_of(std::string_view body) {
  std::uint64_t sum = 14695981039346656037ULL;  // FNV-1a
  for (const char byte : body) sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  return fmt::format("{{\"checksum\":\"{:016x}\",", sum);
}

// The bytes that the checksum is of; nullopt when it is not right.
std::optional<std::string_view> checked(std::string_view text) {
  const std::size_t size = head_of("").size();
  if (text.size() < size || head_of(text.substr(size)) != text.substr(0, size)) return std::nullopt;
  return text.substr(size);
}

std::uint64_t count_of(const json& value) {
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

bool is_disk_full(const Error& error) {
  return error.os_errno == ENOSPC || error.os_errno == EDQUOT;
}

}  // namespace

Hardware ClaimRecord::held() const {
  Hardware hardware;
  if (!is_completed) return hardware;
  for (const RecordedRequest& request : requests) {
    if (!request.planned.admin_access) hardware.add(request.planned.hardware);
  }
  return hardware;
}

bool ClaimRecord::is_whole() const {
  return std::ranges::none_of(devices, [](const PreparedDevice& device) { return device.requests.empty(); });
}

std::string ClaimRecord::shown() const {
  return name.empty() ? "with uid " + uid : claim_namespace + "/" + name + " (uid " + uid + ")";
}

ChosenShares shares_of(const ClaimRecord& record) {
  ChosenShares shares;
  for (const PreparedDevice& device : record.devices) {
    const auto name = core::parse_pool_name(device.share);
    const auto* share = name ? std::get_if<core::ShareName>(&*name) : nullptr;
    if (share != nullptr && device.share_id) shares[*device.share_id] = {{{share->device, share->places}}, {}};
  }
  return shares;
}

std::string to_text(const ClaimRecord& record) {
  json requests = json::array(), devices = json::array();
  for (const RecordedRequest& one : record.requests) requests.push_back(request_json(one));
  for (const PreparedDevice& one : record.devices) devices.push_back(device_json(one));
  json object = {{"uid", record.uid},
                 {"state", record.is_completed ? kCompleted : kStarted},
                 {"namespace", record.claim_namespace},
                 {"name", record.name},
                 {"resourceVersion", record.resource_version},
                 {"requests", std::move(requests)},
                 {"devices", std::move(devices)},
                 {"cdi", record.cdi_text}};
  if (record.node_lnc) object["nodeLnc"] = *record.node_lnc;
  if (record.grace) object["graceSeconds"] = record.grace->count();
  return dumped(object);
}

Result<ClaimRecord> parse_record(std::string_view text) {
  TRY_ASSIGN(const json object, kube::parse_object(text, "a prepared claim"));
  try {
    return record_of(object);
  } catch (const json::exception& error) {
    return fail(ErrorCode::data_corrupt, std::string("not a prepared claim: ") + printable(error.what(), 100));
  }
}

RecordFile::RecordFile(std::string path, std::string boot_id, Rebuild rebuild)
    : path_(std::move(path)), boot_id_(std::move(boot_id)), rebuild_(std::move(rebuild)) {}

Result<RecordFile::Content> RecordFile::parse(std::string_view text) {
  const auto body = checked(text);
  if (!body) return fail(ErrorCode::data_corrupt, "its checksum does not match its content");
  TRY_ASSIGN(json object, kube::parse_object("{" + std::string(*body), "it"));
  Content content;
  content.boot_id = kube::text_of(object, "bootID");
  content.releases = count_of(kube::member(object, "releases"));
  for (const json& one : kube::list_of(object, "released")) {
    content.released.emplace_back(kube::text_of(one, "uid"), count_of(kube::member(one, "release")));
  }
  for (const json& one : kube::list_of(object, "claims")) {
    const std::string uid = kube::text_of(one, "uid");
    if (uid.empty()) continue;
    std::string entry = dumped(one);
    // Entries of another version that this one cannot read stay until their claim is prepared or released.
    if (auto record = parse_record(entry)) content.records.emplace(uid, shared(*std::move(record)));
    content.texts.emplace(uid, std::move(entry));
  }
  for (const char* known : {"bootID", "releases", "released", "claims"}) object.erase(known);
  content.rest = dumped(object);
  return content;
}

std::string RecordFile::text_of(const Content& content) {
  json head = json::parse(content.rest, nullptr, false);
  if (!head.is_object()) head = json::object();
  head["bootID"] = content.boot_id;
  head["releases"] = content.releases;
  head["released"] = json::array();
  for (const auto& [uid, release] : content.released) head["released"].push_back({{"uid", uid}, {"release", release}});
  std::string body = dumped(head);
  body.pop_back();
  body.erase(0, 1);
  body += ",\"claims\":[";
  const char* between = "\n";
  for (const auto& [uid, text] : content.texts) {
    body.append(between).append(text);
    between = ",\n";
  }
  body += "]}\n";
  return head_of(body) + body;
}

// Entries of another version that this one cannot read are in use, too.
Result<void> RecordFile::add_unread() {
  if (content_.records.size() == content_.texts.size()) return {};
  TRY_ASSIGN(std::vector<ClaimRecord> rebuilt, rebuild_());
  for (ClaimRecord& record : rebuilt) {
    const auto text = content_.texts.find(record.uid);
    if (text == content_.texts.end() || content_.records.contains(record.uid)) continue;
    const json entry = json::parse(text->second, nullptr, false);
    record.is_unread = true;
    record.claim_namespace = kube::text_of(entry, "namespace");
    record.name = kube::text_of(entry, "name");
    content_.records.emplace(text->first, shared(std::move(record)));
  }
  return {};
}

Result<void> RecordFile::begin_anew(const std::string& why) {
  Content content;
  content.boot_id = boot_id_;
  TRY_ASSIGN(std::vector<ClaimRecord> rebuilt, rebuild_());
  for (ClaimRecord& record : rebuilt) {
    const std::string uid = record.uid;
    content.texts[uid] = to_text(record);
    content.records.insert_or_assign(uid, shared(std::move(record)));
  }
  if (!why.empty() || !content.records.empty()) {
    news_ = path_ + (why.empty() ? " missing" : " set aside: " + why) + "; recovered " +
            std::to_string(content.records.size()) + " claims from CDI files";
  }
  content_ = std::move(content);
  text_.clear();
  return content_.records.empty() ? Result<void>() : write_with_reserve();
}

Result<void> RecordFile::read() {
  auto text = read_text_file(path_, kMaxFileBytes);
  if (!text && text.error().os_errno == ENOENT) return begin_anew("");
  if (!text && text.error().os_errno != 0) return fail(std::move(text).error());
  if (text && *text == text_ && !text_.empty()) return {};
  auto content = text ? parse(*text) : fail(text.error());
  if (!content) {
    const std::string aside = path_ + ".damaged";
    if (::rename(path_.c_str(), aside.c_str()) != 0) return fail(error_from_errno(errno, "renaming to " + aside));
    return begin_anew(content.error().message);
  }
  text_ = *std::move(text);
  content_ = *std::move(content);
  if (content_.boot_id == boot_id_ || content_.boot_id.empty() || boot_id_.empty()) {
    auto added = add_unread();
    if (!added) text_.clear();  // read again
    return added;
  }
  if (!content_.texts.empty()) news_ = std::to_string(content_.texts.size()) + " claims of a previous boot dropped";
  content_.records.clear();
  content_.texts.clear();
  content_.boot_id = boot_id_;
  return {};
}

Result<void> RecordFile::write() {
  if (!boot_id_.empty()) content_.boot_id = boot_id_;
  std::string text = text_of(content_);
  TRY(write_by_rename(path_, text));
  text_ = std::move(text);
  return {};
}

// Writes a text that is shorter than before, or hardly longer, as by a completed entry: there is room for it on a full
// disk too.
Result<void> RecordFile::write_with_reserve() {
  auto written = write();
  if (written || !is_disk_full(written.error())) return written;
  std::string text = text_of(content_);
  if (!write_into_spare(path_, text)) return written;
  text_ = std::move(text);
  return {};
}

// Writes the file with `uid` as given, nullptr = without it; what was there comes back when that fails.
Result<void> RecordFile::change(const std::string& uid, const ClaimRecord* record) {
  auto old_text = content_.texts.extract(uid);
  auto old_record = content_.records.extract(uid);
  const bool completes =
      record != nullptr && record->is_completed && !old_record.empty() && !old_record.mapped()->is_completed;
  if (record != nullptr) {
    content_.texts[uid] = to_text(*record);
    content_.records[uid] = shared(*record);
  }
  auto written = record == nullptr || completes ? write_with_reserve() : write();
  if (written) return {};
  content_.texts.erase(uid);
  content_.records.erase(uid);
  content_.texts.insert(std::move(old_text));
  content_.records.insert(std::move(old_record));
  return written;
}

Result<void> RecordFile::put(const ClaimRecord& record) {
  // A new one asks for more, so that its completion, which is somewhat longer, finds the room there.
  const auto old = content_.texts.find(record.uid);
  const bool is_new = old == content_.texts.end();
  const std::size_t others = text_.size() - (is_new ? 0 : std::min(text_.size(), old->second.size()));
  const std::size_t most = others + to_text(record).size() + (is_new ? 3 : 2) * kSpareRoom;
  TRY(keep_spare(path_, most / kSpareRoom * kSpareRoom));
  return change(record.uid, &record);
}

void RecordFile::learn(const ClaimRecord& record) {
  if (record.is_unread || !put(record)) content_.records[record.uid] = shared(record);
}

Result<void> RecordFile::remove(const std::string& uid) {
  return knows(uid) ? change(uid, nullptr) : Result<void>();
}

Result<void> RecordFile::release(const std::string& uid) {
  const bool is_known = knows(uid);
  auto old_released = content_.released;
  std::erase_if(content_.released, [&](const auto& one) { return one.first == uid; });
  if (content_.released.size() >= kMaxReleased) content_.released.erase(content_.released.begin());
  content_.released.emplace_back(uid, ++content_.releases);
  auto written = change(uid, nullptr);
  // An unknown claim is released already; this instance at least remembers that it was.
  if (written || (!is_known && is_disk_full(written.error()))) return {};
  content_.released = std::move(old_released);
  --content_.releases;
  return written;
}

bool RecordFile::was_released_since(const std::string& uid, std::uint64_t releases) const {
  if (releases > content_.releases) return true;  // another file
  for (const auto& [released, number] : content_.released) {
    if (released == uid) return number > releases;
  }
  // Those that are kept are in order; older ones were dropped when the list was full.
  return content_.released.size() >= kMaxReleased && content_.released.front().second > releases + 1;
}

}  // namespace neuron::plugin::dra
