#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "agent/base/parse.h"
#include "tools/neuron-agent/catalogue.h"

namespace neuron::agent {
namespace {

using Json = nlohmann::ordered_json;
using Row = std::vector<std::string>;

// ---- YAML

std::string scalar(const Json& value) {
  return value.dump(-1, ' ', true, Json::error_handler_t::replace);
}

// Plain where no reader takes it for another type.
std::string key_text(const std::string& key) {
  constexpr std::array<std::string_view, 10> kOthers = {"y",     "n",  "yes", "no",   "true",
                                                        "false", "on", "off", "null", "nan"};
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
  };
  std::string lower = key;
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const bool begins = !key.empty() && std::isalpha(static_cast<unsigned char>(key.front())) != 0;
  const bool plain = begins && std::ranges::all_of(key, is_plain) && std::ranges::count(kOthers, lower) == 0;
  return plain ? key : scalar(key);
}

bool is_flow(const Json& value) {
  return !value.is_structured() || value.empty() ||
         (value.is_array() && std::ranges::none_of(value, [](const Json& one) { return one.is_structured(); }));
}

std::string flow_text(const Json& value) {
  if (!value.is_array()) return scalar(value);  // {} too
  std::string text = "[";
  for (const Json& one : value) text += (text.size() > 1 ? ", " : "") + scalar(one);
  return text + "]";
}

// Lines of a block; the first is written where `is_inline` says that its dash is on the line already. Documents of this
// program are few levels deep.
void write_yaml(const Json& value, const std::string& indent, bool is_inline, std::string& text) {
  const auto begin = [&] {
    if (!is_inline) text += indent;
    is_inline = false;
  };
  if (value.is_array()) {
    for (const Json& one : value) {
      begin();
      text += "- ";
      if (is_flow(one))
        text += flow_text(one) + "\n";
      else
        write_yaml(one, indent + "  ", true, text);
    }
    return;
  }
  for (const auto& [key, one] : value.items()) {
    begin();
    text += key_text(key) + ":";
    if (is_flow(one)) {
      text += " " + flow_text(one) + "\n";
    } else {
      text += "\n";
      write_yaml(one, indent + "  ", false, text);
    }
  }
}

// ---- Table

std::string number_or_dash(const Json& value) {
  return value.is_number() && value != 0 ? value.dump() : "-";
}

// "64 (LNC 1: 128)"
std::string cores_text(const Json& lnc) {
  if (lnc.is_null()) return "-";
  const std::string usual = lnc["default"].dump();
  std::string text = lnc["logicalCores"][usual].dump();
  for (const auto& [other, count] : lnc["logicalCores"].items()) {
    if (other != usual) text += " (LNC " + other + ": " + count.dump() + ")";
  }
  return text;
}

std::string groups_text(const Json& groups) {
  std::vector<int> sizes;
  for (const Json& group : groups) sizes.push_back(group["size"].get<int>());
  return sizes.empty() ? "-" : format_int_list(sizes);
}

Row row_of(const Json& type) {
  const Json& devices = type["devices"];
  const std::string family = type["family"].is_null() ? "-" : type["family"].get<std::string>();
  const std::string fabric = type["fabric"].get<std::string>();
  return {type["name"].get<std::string>(),
          family,
          number_or_dash(devices["count"]),
          number_or_dash(devices["physicalCores"]),
          cores_text(type["lnc"]),
          number_or_dash(devices["memoryGiB"]),
          type["interfaces"].is_null() ? "-" : type["interfaces"]["count"].dump(),
          type["numaNodes"].is_null() ? "-" : std::to_string(type["numaNodes"].size()),
          (fabric == "none" ? "-" : fabric) + (type["ultraServer"].get<bool>() ? ", UltraServer" : ""),
          groups_text(type["groups"]),
          number_or_dash(type["vcpus"]),
          number_or_dash(type["hostMemoryGiB"])};
}

}  // namespace

std::string yaml_of(const Json& document) {
  if (is_flow(document)) return flow_text(document) + "\n";
  std::string text;
  write_yaml(document, "", false, text);
  return text;
}

std::string catalogue_table(const Json& document) {
  std::vector<Row> rows = {{"TYPE", "FAMILY", "DEVICES", "CORES", "LOGICAL CORES", "GIB", "EFA", "NUMA", "FABRIC",
                            "GROUPS", "VCPU", "HOST GIB"}};
  for (const Json& type : document["types"]) rows.push_back(row_of(type));
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i) text += row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
    text += row.back() + "\n";
  }
  return text;
}

}  // namespace neuron::agent
