#include "plugin/dra/claim/claims_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>

#include "agent/base/fd.h"
#include "agent/kube/answers.h"
#include "plugin/dra/claim/json_fields.h"

namespace neuron::plugin::dra {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxBytes = 16U << 20U;
constexpr std::size_t kMaxReleased = 256;  // many times the calls that can be under way
// Besides the file as it is, so that releases, which are noted, fit too; and what the room is a multiple of.
constexpr std::size_t kSpareRoom = 16U << 10U;

// The file is one JSON object that begins with the checksum of all bytes behind it: of the bytes, since another version
// would write the same content in other ones.
constexpr std::string_view kHead = "{\"checksum\":\"";
constexpr std::string_view kBehind = "\",";
constexpr std::size_t kDigits = 16;

std::string checksum(std::string_view bytes) {
  std::uint64_t sum = 14695981039346656037ULL;  // FNV-1a
  for (const char byte : bytes) sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  std::array<char, kDigits + 1> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(sum));
  return digits.data();
}

// The bytes that the checksum is of; nullopt when it is not right.
std::optional<std::string_view> checked(std::string_view text) {
  constexpr std::size_t kBodyAt = kHead.size() + kDigits + kBehind.size();
  if (text.size() < kBodyAt || !text.starts_with(kHead)) return std::nullopt;
  const std::string_view sum = text.substr(kHead.size(), kDigits);
  const std::string_view body = text.substr(kBodyAt);
  if (text.substr(kHead.size() + kDigits, kBehind.size()) != kBehind || checksum(body) != sum) return std::nullopt;
  return body;
}

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::shared_ptr<const PreparedClaim> share(PreparedClaim claim) {
  return std::make_shared<const PreparedClaim>(std::move(claim));
}

std::uint64_t count_of(const json& value) {
  return value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
}

bool is_disk_full(const Error& error) {
  return error.os_errno == ENOSPC || error.os_errno == EDQUOT;
}

std::string spare_of(const std::string& path) {
  return path + ".spare";
}

// The spare file has blocks of its own for so many bytes afterwards.
Result<void> keep_spare(const std::string& path, std::size_t bytes) {
  constexpr std::size_t kBlock = 512;  // of st_blocks
  const std::string spare = spare_of(path);
  const Fd file(::open(spare.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0644));
  struct stat info {};
  if (!file.valid() || ::fstat(file.get(), &info) != 0) return fail(error_from_errno(errno, "writing " + spare));
  if (static_cast<std::size_t>(info.st_blocks) * kBlock >= bytes) return {};
  const int error = ::posix_fallocate(file.get(), 0, static_cast<off_t>(bytes));
  if (error == 0 || (error != ENOSPC && error != EDQUOT)) return {};  // a file system that cannot: as well as it goes
  return fail(error_from_errno(error, "reserving space in " + spare));
}

// As write_by_rename(), into blocks that the spare file has already. The former file becomes the spare one, so that the
// next text of no greater length fits as well. (File systems that never write in place may still have no room.)
Result<void> write_into_spare(const std::string& path, std::string_view text) {
  const std::string spare = spare_of(path);
  {
    const Fd file(::open(spare.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file.valid()) return fail(error_from_errno(errno, "writing " + spare));
    TRY(write_all(file.get(), text, spare));
    if (::ftruncate(file.get(), static_cast<off_t>(text.size())) != 0) return fail(error_from_errno(errno, spare));
  }
  if (::renameat2(AT_FDCWD, spare.c_str(), AT_FDCWD, path.c_str(), RENAME_EXCHANGE) == 0) return {};
  if (::rename(spare.c_str(), path.c_str()) != 0) return fail(error_from_errno(errno, "renaming to " + path));
  return {};
}

}  // namespace

ClaimsFile::ClaimsFile(std::string path, std::string boot_id, Rebuild rebuild)
    : path_(std::move(path)), boot_id_(std::move(boot_id)), rebuild_(std::move(rebuild)) {}

Result<ClaimsFile::Content> ClaimsFile::parse(std::string_view text) {
  const auto body = checked(text);
  if (!body) return fail(ErrorCode::data_corrupt, "its checksum does not match its content");
  TRY_ASSIGN(json object, kube::parse_object("{" + std::string(*body), "it"));
  Content content;
  content.boot_id = dra::text_of(object, "bootID");
  content.releases = count_of(member(object, "releases"));
  for (const json& one : list_of(object, "released")) {
    content.released.emplace_back(dra::text_of(one, "uid"), count_of(member(one, "release")));
  }
  for (const json& one : list_of(object, "claims")) {
    const std::string uid = dra::text_of(one, "uid");
    if (uid.empty()) continue;
    std::string entry = dumped(one);
    // Entries of another version that this one cannot read stay until their claim is prepared or released.
    if (auto claim = parse_prepared_claim(entry)) content.claims.emplace(uid, share(*std::move(claim)));
    content.texts.emplace(uid, std::move(entry));
  }
  for (const char* known : {"bootID", "releases", "released", "claims"}) object.erase(known);
  content.rest = dumped(object);
  return content;
}

std::string ClaimsFile::text_of(const Content& content) {
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
  return std::string(kHead) + checksum(body) + std::string(kBehind) + body;
}

// Entries of another version that this one cannot read are in use, too.
void ClaimsFile::add_unread() {
  if (content_.claims.size() == content_.texts.size()) return;
  for (PreparedClaim& claim : rebuild_()) {
    const auto text = content_.texts.find(claim.uid);
    if (text == content_.texts.end() || content_.claims.contains(claim.uid)) continue;
    const json entry = json::parse(text->second, nullptr, false);
    claim.is_unread = true;
    claim.claim_namespace = dra::text_of(entry, "namespace");
    claim.name = dra::text_of(entry, "name");
    const std::string uid = claim.uid;
    content_.claims.emplace(uid, share(std::move(claim)));
  }
}

Result<void> ClaimsFile::begin_anew(const std::string& why) {
  Content content;
  content.boot_id = boot_id_;
  for (PreparedClaim& claim : rebuild_()) {
    content.texts[claim.uid] = to_text(claim);
    const std::string uid = claim.uid;
    content.claims.insert_or_assign(uid, share(std::move(claim)));
  }
  if (!why.empty() || !content.claims.empty()) {
    news_ = path_ + (why.empty() ? " missing" : " set aside: " + why) + "; recovered " +
            std::to_string(content.claims.size()) + " claims from CDI files";
  }
  content_ = std::move(content);
  text_.clear();
  return content_.claims.empty() ? Result<void>() : write_what_is_left();
}

Result<void> ClaimsFile::read() {
  auto text = read_text_file(path_, kMaxBytes);
  if (!text && text.error().code == ErrorCode::not_found) return begin_anew("");
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
    add_unread();
    return {};
  }
  if (!content_.texts.empty()) {
    news_ = std::to_string(content_.texts.size()) + " claims of a previous boot dropped";
  }
  content_.claims.clear();
  content_.texts.clear();
  content_.boot_id = boot_id_;
  return {};
}

Result<void> ClaimsFile::write() {
  if (!boot_id_.empty()) content_.boot_id = boot_id_;
  std::string text = text_of(content_);
  TRY(write_by_rename(path_, text));
  text_ = std::move(text);
  return {};
}

// Writes a text that is shorter than before, or hardly longer, as by a completed entry: there is room for it on a full
// disk too.
Result<void> ClaimsFile::write_what_is_left() {
  auto written = write();
  if (written || !is_disk_full(written.error())) return written;
  std::string text = text_of(content_);
  if (!write_into_spare(path_, text)) return written;
  text_ = std::move(text);
  return {};
}

// Writes the file with `uid` as given, nullptr = without it; what was there comes back when that fails.
Result<void> ClaimsFile::change(const std::string& uid, const PreparedClaim* claim) {
  auto old_text = content_.texts.extract(uid);
  auto old_claim = content_.claims.extract(uid);
  const bool completes =
      claim != nullptr && claim->is_completed && !old_claim.empty() && !old_claim.mapped()->is_completed;
  if (claim != nullptr) {
    content_.texts[uid] = to_text(*claim);
    content_.claims[uid] = share(*claim);
  }
  auto written = claim == nullptr || completes ? write_what_is_left() : write();
  if (written) return {};
  content_.texts.erase(uid);
  content_.claims.erase(uid);
  content_.texts.insert(std::move(old_text));
  content_.claims.insert(std::move(old_claim));
  return written;
}

Result<void> ClaimsFile::put(const PreparedClaim& claim) {
  // A new one asks for more, so that its completion, which is somewhat longer, finds the room there.
  const auto old = content_.texts.find(claim.uid);
  const bool is_new = old == content_.texts.end();
  const std::size_t others = text_.size() - (is_new ? 0 : std::min(text_.size(), old->second.size()));
  const std::size_t most = others + to_text(claim).size() + (is_new ? 3 : 2) * kSpareRoom;
  TRY(keep_spare(path_, most / kSpareRoom * kSpareRoom));
  return change(claim.uid, &claim);
}

void ClaimsFile::learn(const PreparedClaim& claim) {
  if (claim.is_unread || !put(claim)) content_.claims[claim.uid] = share(claim);
}

Result<void> ClaimsFile::remove(const std::string& uid) {
  return content_.texts.contains(uid) ? change(uid, nullptr) : Result<void>();
}

Result<void> ClaimsFile::release(const std::string& uid) {
  const bool is_known = knows(uid);
  auto old_released = content_.released;
  std::erase_if(content_.released, [&](const auto& one) { return one.first == uid; });
  if (content_.released.size() >= kMaxReleased) content_.released.erase(content_.released.begin());
  content_.released.emplace_back(uid, ++content_.releases);
  auto written = change(uid, nullptr);
  // An unknown claim is already released; this instance at least has recorded it.
  if (written || (!is_known && is_disk_full(written.error()))) return {};
  content_.released = std::move(old_released);
  --content_.releases;
  return written;
}

bool ClaimsFile::was_released_since(const std::string& uid, std::uint64_t releases) const {
  if (releases > content_.releases) return true;  // another file
  for (const auto& [released, number] : content_.released) {
    if (released == uid) return number > releases;
  }
  // Those that are kept are in order; older ones were dropped when the list was full.
  return content_.released.size() >= kMaxReleased && content_.released.front().second > releases + 1;
}

}  // namespace neuron::plugin::dra
