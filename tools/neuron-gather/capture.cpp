#include "tools/neuron-gather/capture.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>

#include "agent/base/parse.h"
#include "agent/model/device.h"

namespace neuron::gather {
namespace {

std::string_view folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

// Whether the relative `text` of a link at `path` is a way to `target` that uses no other link.
bool leads_to(std::string_view path, std::string_view text, std::string_view target) {
  if (text.empty() || text.starts_with('/')) return false;
  const auto end = (std::filesystem::path(folder_of(path)) / text).lexically_normal();
  return end == std::filesystem::path(target);
}

constexpr std::string_view kHexDigits = "0123456789abcdefABCDEF";

std::string hex(std::size_t value, std::size_t width) {
  std::string text(width, '0');
  for (std::size_t i = width; i-- > 0 && value != 0; value >>= 4U) text[i] = kHexDigits[value & 0xfU];
  return text;
}

bool is_hex_id(std::string_view text) {
  return text.size() >= 8 && text.size() <= 32 && text.find_first_not_of(kHexDigits) == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

// "xxxx:xxxx:xxxx:xxxx", not all zeros
bool is_guid(std::string_view text) {
  if (text.size() != 19 || text.find_first_not_of("0:") == std::string_view::npos) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i % 5 == 4 ? text[i] != ':' : kHexDigits.find(text[i]) == std::string_view::npos) return false;
  }
  return true;
}

// Old names and their new ones.
class Names {
 public:
  void add_hex(std::string_view old) {
    if (is_hex_id(old) && !names_.contains(old)) names_.emplace(old, hex(++hex_count_, old.size()));
  }
  void add_guid(std::string_view old) {
    if (!is_guid(old) || names_.contains(old)) return;
    // Marked as locally administered, which no factory gives out.
    std::string id = hex(++guid_count_, 16).replace(0, 2, "02");
    for (const std::size_t at : {12U, 8U, 4U}) id.insert(at, ":");
    names_.emplace(old, std::move(id));
  }
  void add_instance(std::string_view old) {
    if (!old.starts_with("i-") || !is_hex_id(old.substr(2))) return;
    names_.emplace(old, "i-" + hex(1, old.size() - 2));
  }

  // In one pass, so that a new name is never taken for an old one.
  [[nodiscard]] std::string replace(std::string_view text) const {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const auto name = name_at(text.substr(at));
      if (name == names_.end()) {
        out += text[at++];
        continue;
      }
      out += name->second;
      at += name->first.size();
    }
    return out;
  }
  [[nodiscard]] bool occurs_in(std::string_view text) const {
    return std::ranges::any_of(names_,
                               [&](const auto& name) { return text.find(name.first) != std::string_view::npos; });
  }

 private:
  using Map = std::map<std::string, std::string, std::less<>>;
  [[nodiscard]] Map::const_iterator name_at(std::string_view text) const {
    return std::ranges::find_if(names_, [&](const auto& name) { return text.starts_with(name.first); });
  }

  Map names_;
  std::size_t hex_count_ = 0;
  std::size_t guid_count_ = 0;
};

void learn(Names& names, std::string_view path, std::string_view content) {
  const std::string_view text = trim(content);
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const bool is_file_of_class = path.starts_with("sys/class/neuron_device/");
  const bool reads_ones = text == model::kSerialOfOnes;  // a device off the bus, no serial number
  if (path.ends_with("/info/serial_number") && !reads_ones) names.add_hex(text);
  if (is_file_of_class && (file.starts_with("server_id") || file == "reservation_id")) names.add_hex(text);
  if (path == "sys/devices/virtual/dmi/id/board_asset_tag") names.add_instance(text);
  if (file == "node_guid" || file == "sys_image_guid") names.add_guid(text);
  if (path == "dev/kmsg") {
    constexpr std::string_view kSerial = " serial-num=";
    for (auto at = text.find(kSerial); at != std::string_view::npos; at = text.find(kSerial, at + 1)) {
      names.add_hex(text.substr(at + kSerial.size(), 16));
    }
  }
  // The lower half of a GID is the GUID of the port.
  if (path.find("/gids/") != std::string_view::npos && text.size() == 39) names.add_guid(text.substr(20));
}

using Json = nlohmann::ordered_json;

constexpr const char* kFormat = "neuron-gather/1";
constexpr std::size_t kMaxText = 300;

std::string text_of(const Json& object, const char* key) {
  const auto at = object.find(key);
  if (at == object.end() || !at->is_string()) return "";
  return printable(at->get_ref<const std::string&>(), kMaxText);
}

bool is_true(const Json& object, const char* key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_boolean() && at->get<bool>();
}

// The parser does not recurse; nested values are never visited.
std::optional<Json> parse_previous(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  Json json = Json::parse(*text, nullptr, false);
  if (json.is_discarded() || !json.is_object() || text_of(json, "format") != kFormat) return std::nullopt;
  return json;
}

void inherit(Manifest& manifest, std::set<Unreadable>& unreadable, const Json& previous) {
  manifest.tool_version = text_of(previous, "tool_version");
  manifest.captured_at = text_of(previous, "captured_at");
  manifest.origin = text_of(previous, "origin") == "live" ? Origin::live : Origin::directory;
  manifest.with_commands = manifest.with_commands && is_true(previous, "with_commands");
  manifest.anonymised = manifest.anonymised || is_true(previous, "anonymised");
  manifest.complete = manifest.complete && is_true(previous, "complete");
  const auto list = previous.find("unreadable");
  if (list == previous.end() || !list->is_array()) return;
  for (const Json& entry : *list) {
    if (unreadable.size() >= Capture::kMaxUnreadable) return;
    if (entry.is_object()) unreadable.insert({text_of(entry, "path"), text_of(entry, "reason")});
  }
}

}  // namespace

bool Capture::reserve(std::string_view path, std::size_t bytes) {
  const std::uint64_t needed = bytes_ + path.size() + bytes;
  if (entries_.size() >= kMaxEntries || needed > kMaxBytes) {
    full_ = true;
    return false;
  }
  bytes_ = needed;
  return true;
}

void Capture::add_folder(std::string_view path) {
  // From the folder upward until one is known.
  for (; !path.empty() && !entries_.contains(std::string(path)); path = folder_of(path)) {
    if (!reserve(path, 0)) return;
    entries_.emplace(path, Entry{});
  }
}

void Capture::add_file(std::string_view path, std::string text) {
  if (!reserve(path, text.size())) return;
  add_folder(folder_of(path));
  text.shrink_to_fit();  // a reader's buffer is a thousand times larger than most texts
  entries_.insert_or_assign(std::string(path), Entry{EntryKind::file, std::move(text)});
}

void Capture::add_link(std::string_view path, std::string_view target_path, std::string_view text) {
  std::string kept = leads_to(path, text, target_path) ? std::string(text) : relative_link(path, target_path);
  if (!reserve(path, kept.size())) return;
  add_folder(folder_of(path));
  entries_.insert_or_assign(std::string(path), Entry{EntryKind::link, std::move(kept)});
}

void Capture::add_unreadable(std::string_view path, std::string_view reason) {
  Unreadable one{std::string(path), std::string(reason)};
  const bool known = std::ranges::find(unreadable_, one) != unreadable_.end();
  if (!known && unreadable_.size() < kMaxUnreadable) unreadable_.push_back(std::move(one));
}

const Entry* Capture::find(const std::string& path) const {
  const auto at = entries_.find(path);
  return at == entries_.end() ? nullptr : &at->second;
}

std::size_t Capture::file_count() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(entries_, [](const auto& entry) { return entry.second.kind == EntryKind::file; }));
}

std::string relative_link(std::string_view from, std::string_view to) {
  return std::filesystem::path(to).lexically_relative(folder_of(from)).string();
}

void anonymise(Capture& capture) {
  Names names;
  for (const auto& [path, entry] : capture.entries()) {
    if (entry.kind == EntryKind::file) learn(names, path, entry.text);
  }
  for (auto& [path, entry] : capture.entries()) {
    if (entry.kind == EntryKind::file && names.occurs_in(entry.text)) entry.text = names.replace(entry.text);
  }
}

std::string manifest_text(Manifest manifest, const Capture& capture, const std::optional<std::string>& previous) {
  std::set<Unreadable> unreadable;
  for (const Unreadable& one : capture.unreadable()) {
    unreadable.insert({printable(one.path, kMaxText), printable(one.reason, kMaxText)});
  }
  if (const auto json = parse_previous(previous)) inherit(manifest, unreadable, *json);
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  Json json;
  json["format"] = kFormat;
  json["tool_version"] = manifest.tool_version;
  json["captured_at"] = manifest.captured_at;
  json["instance_type"] = text_or_null(manifest.instance_type);
  json["kernel"] = text_or_null(manifest.kernel);
  json["origin"] = manifest.origin == Origin::live ? "live" : "directory";
  json["with_commands"] = manifest.with_commands;
  json["anonymised"] = manifest.anonymised;
  json["complete"] = manifest.complete;
  json["unreadable"] = Json::array();
  for (const Unreadable& one : unreadable) json["unreadable"].push_back({{"path", one.path}, {"reason", one.reason}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + '\n';
}

}  // namespace neuron::gather
