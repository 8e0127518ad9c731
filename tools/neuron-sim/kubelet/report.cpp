#include "tools/neuron-sim/kubelet/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include "agent/base/parse.h"
#include "tools/neuron-sim/kubelet/allocation.h"

namespace neuron::sim {
namespace {

constexpr std::size_t kColumns = 80;

// A label and its words, laid out in two columns.
struct Row {
  std::string label;
  std::vector<std::string> words;
};

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, ' ')) {
    if (!word.empty()) words.emplace_back(word);
  }
  return words;
}

// `words` filled into lines that begin after `indent` columns; the first line has no indent of its own.
std::string fill(const std::vector<std::string>& words, std::size_t indent) {
  std::string text;
  std::size_t column = indent;
  for (const std::string& word : words) {
    if (column > indent && column + 1 + word.size() > kColumns) {
      text += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      text += ' ';
      ++column;
    }
    text += word;
    column += word.size();
  }
  return text;
}

std::string layout(const std::vector<Row>& rows, std::size_t indent) {
  std::size_t width = 0;
  for (const Row& row : rows) width = std::max(width, row.label.size());
  std::string text;
  for (const Row& row : rows) {
    text +=
        fmt::format("{}{:<{}}  {}\n", std::string(indent, ' '), row.label, width, fill(row.words, indent + width + 2));
  }
  return text;
}

// The directory that every host path adds before its container path; nullopt when they do not agree.
std::optional<std::string> host_prefix(const std::vector<DeviceNode>& devices) {
  std::optional<std::string> prefix;
  for (const DeviceNode& node : devices) {
    if (!node.host_path.ends_with(node.container_path)) return std::nullopt;
    const std::string own = node.host_path.substr(0, node.host_path.size() - node.container_path.size());
    if (prefix && *prefix != own) return std::nullopt;
    prefix = own;
  }
  return prefix;
}

void add_device_rows(std::vector<Row>& rows, const std::vector<DeviceNode>& devices) {
  if (devices.empty()) return;
  const std::optional<std::string> prefix = host_prefix(devices);
  std::map<std::string, Row> by_permission;
  for (const DeviceNode& node : devices) {
    Row& row = by_permission[node.permissions];
    row.label = "devices (" + node.permissions + ")";
    row.words.push_back(prefix ? node.container_path : node.container_path + "=" + node.host_path);
  }
  for (auto& [permissions, row] : by_permission) rows.push_back(std::move(row));
  if (prefix && !prefix->empty()) rows.push_back({"from host", {*prefix}});
}

void add_text_rows(std::vector<Row>& rows, const std::string& label, const std::map<std::string, std::string>& texts) {
  for (const auto& [key, value] : texts) rows.push_back({label, {printable(key + "=" + value, 400)}});
}

std::string full_name(const std::string& ns, const std::string& name) {
  return ns == "default" ? name : ns + "/" + name;
}

std::string units(std::size_t count) {
  return fmt::format("{} unit{}:", count, count == 1 ? "" : "s");
}

std::string table(const std::vector<std::vector<std::string>>& lines, const std::vector<bool>& right) {
  std::vector<std::size_t> widths(right.size(), 0);
  for (const auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) widths[i] = std::max(widths[i], line[i].size());
  }
  std::size_t last_column = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) last_column += widths[i] + 2;
  std::string text;
  for (const auto& line : lines) {
    std::string row;
    for (std::size_t i = 0; i + 1 < line.size(); ++i) {
      row += right[i] ? fmt::format("{:>{}}  ", line[i], widths[i]) : fmt::format("{:<{}}  ", line[i], widths[i]);
    }
    row += fill(words_of(line.back()), last_column);
    row.erase(row.find_last_not_of(' ') + 1);
    text += row + "\n";
  }
  return text;
}

}  // namespace

std::string ids_text(const IdSet& ids) {
  std::vector<int> numbers;
  for (const std::string& id : ids) {
    const auto number = parse_int(id, 0, std::numeric_limits<int>::max());
    if (number && std::to_string(*number) == id) numbers.push_back(*number);
  }
  if (numbers.size() == ids.size()) {
    std::sort(numbers.begin(), numbers.end());
    return format_int_list(numbers);
  }
  return fmt::format("{}", fmt::join(in_reading_order(ids), " "));
}

std::string container_text(const ContainerGrant& grant, const ContainerNotes& notes) {
  std::vector<Row> rows;
  for (const auto& [resource, ids] : grant.ids) {
    std::vector<std::string> words = words_of(units(ids.size()));
    const std::vector<std::string> shown = words_of(ids_text(IdSet(ids.begin(), ids.end())));
    words.insert(words.end(), shown.begin(), shown.end());
    rows.push_back({resource, std::move(words)});
    if (const auto why = notes.why.find(resource); why != notes.why.end()) {
      rows.push_back({"  because", words_of(why->second)});
    }
  }
  for (const auto& [claim, devices] : grant.claims) rows.push_back({"claim " + claim, devices});
  for (const std::string& resource : grant.unserved) {
    rows.push_back({resource, words_of("never registered: admitted without it")});
  }
  add_text_rows(rows, "env", grant.env);
  add_device_rows(rows, grant.devices);
  if (!grant.cdi_names.empty()) rows.push_back({"CDI", grant.cdi_names});
  for (const std::string& conflict : grant.conflicts) rows.push_back({"conflict", words_of(conflict)});
  if (!grant.start_error.empty()) rows.push_back({"not started", words_of(grant.start_error)});
  if (rows.empty()) return fmt::format("  {}: no devices\n", grant.name);
  const std::string asked = notes.asked.empty() ? "" : fmt::format(", asked {}", notes.asked);
  return fmt::format("  {}{}\n", grant.name, asked) + layout(rows, 4);
}

std::string pod_text(const PodSpec& pod, const Result<PodResult>& result, const PodNotes& notes) {
  const std::string left = notes.left.empty() ? "" : fmt::format("  left: {}\n", fill(words_of(notes.left), 8));
  const std::string name = full_name(pod.ns, pod.name);
  if (!result) {
    return fmt::format("pod {}: refused\n  {}\n", name, fill(words_of(printable(result.error().message, 1000)), 2)) +
           left;
  }
  std::string text = fmt::format("pod {}: admitted\n", name);
  for (std::size_t i = 0; i < result->containers.size(); ++i) {
    text += container_text(result->containers[i], i < notes.containers.size() ? notes.containers[i] : ContainerNotes{});
  }
  return text + left;
}

std::string resources_text(const std::map<std::string, ResourceView>& resources) {
  if (resources.empty()) return "no resource was ever registered\n";
  std::vector<std::vector<std::string>> lines = {{"RESOURCE", "CAPACITY", "ALLOCATABLE", "IN USE", "UNHEALTHY"}};
  for (const auto& [resource, view] : resources) {
    std::string note = ids_text(view.unhealthy);
    if (!view.connected) note += note.empty() ? "(plugin gone)" : " (plugin gone)";
    lines.push_back({resource, std::to_string(view.capacity), std::to_string(view.allocatable),
                     std::to_string(view.in_use), note.empty() ? "-" : note});
  }
  return table(lines, {false, true, true, true, false});
}

std::string pods_text(const std::vector<PodView>& pods) {
  if (pods.empty()) return "no pods\n";
  std::vector<std::vector<std::string>> lines = {{"POD", "CONTAINER", "RESOURCE", "DEVICES"}};
  for (const PodView& pod : pods) {
    for (const ContainerView& container : pod.containers) {
      std::map<std::string, IdSet> held;
      for (const HeldDevice& device : container.devices) held[device.resource].insert(device.id);
      for (const auto& [claim, devices] : container.claims) held["claim " + claim] = {devices.begin(), devices.end()};
      if (held.empty()) held["-"] = {};
      for (const auto& [resource, ids] : held) {
        lines.push_back({full_name(pod.ns, pod.name), container.name, resource, ids.empty() ? "-" : ids_text(ids)});
      }
    }
  }
  return table(lines, {false, false, false, false});
}

}  // namespace neuron::sim
