#include "tools/neuron-gather/anonymise.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "agent/base/parse.h"

namespace neuron::gather {
namespace {

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
    return std::any_of(names_.begin(), names_.end(),
                       [&](const auto& name) { return text.find(name.first) != std::string_view::npos; });
  }

 private:
  using Map = std::map<std::string, std::string, std::less<>>;
  [[nodiscard]] Map::const_iterator name_at(std::string_view text) const {
    return std::find_if(names_.begin(), names_.end(), [&](const auto& name) { return text.starts_with(name.first); });
  }

  Map names_;
  std::size_t hex_count_ = 0;
  std::size_t guid_count_ = 0;
};

void learn(Names& names, std::string_view path, std::string_view content) {
  const std::string_view text = trim(content);
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const bool is_file_of_class = path.starts_with("sys/class/neuron_device/");
  const bool reads_ones = text == "ffffffffffffffff";  // a device off the bus, no serial number
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

}  // namespace

void anonymise(Capture& capture) {
  Names names;
  for (const auto& [path, entry] : capture.entries()) {
    if (entry.kind == EntryKind::file) learn(names, path, entry.text);
  }
  for (auto& [path, entry] : capture.entries()) {
    if (entry.kind == EntryKind::file && names.occurs_in(entry.text)) entry.text = names.replace(entry.text);
  }
}

}  // namespace neuron::gather
