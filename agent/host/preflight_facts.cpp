#include "agent/host/preflight_facts.h"

#include <algorithm>
#include <set>

#include "agent/base/parse.h"
#include "agent/host/attributes.h"
#include "agent/host/machine_topology.h"
#include "agent/host/neuron_sysfs.h"

namespace neuron::host {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{256} << 10U;
constexpr std::size_t kMaxMeminfoBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxShownName = 120;

std::optional<model::Family> family_on_pci(const FsRoot& root) {
  PciInventory pci;
  static_cast<void>(pci.refresh(root));
  return pci.common_family();
}

std::optional<int> count_online_cpus(const FsRoot& root) {
  const auto cpus = root.read_attribute("sys/devices/system/cpu/online").and_then(parse_cpu_list);
  if (!cpus || cpus->empty()) return std::nullopt;
  return static_cast<int>(cpus->size());
}

preflight::HugePages read_huge_pages(const FsRoot& root) {
  preflight::HugePages pages;
  if (const auto text = root.read_attribute("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")) {
    pages.reserved_2m = parse_u64(*text);
  }
  const auto meminfo = root.read_file("proc/meminfo", kMaxMeminfoBytes);
  if (!meminfo) return pages;
  for (std::string_view line : split(*meminfo, '\n')) {
    if (take_until(line, ':') != "Hugepagesize") continue;
    if (line.ends_with("kB")) line.remove_suffix(2);
    if (const auto kib = parse_u64(line); kib && *kib < (std::uint64_t{1} << 40U)) pages.default_bytes = *kib << 10U;
  }
  return pages;
}

preflight::LncFile read_lnc_file(const FsRoot& root) {
  constexpr std::size_t kShown = 40;
  preflight::LncFile file;
  const auto text = root.read_file("opt/aws/neuron/logical_nc_config", kMaxAttributeBytes);
  if (!text && is_absent(text.error())) return file;
  file.state = state_of(text);
  if (text) file.text = printable(trim(*text), kShown);
  const auto lnc = text.and_then(parse_lnc_config);
  if (lnc) file.value = *lnc;
  if (!lnc) file.reason = lnc.error().message;
  return file;
}

std::set<std::string> names_with_verbs(const FsRoot& root) {
  constexpr std::string_view kClass = "sys/class/infiniband_verbs/";
  std::set<std::string> names;
  const auto entries = root.list(kClass);
  if (!entries) return names;
  for (const std::string& entry : *entries) {
    if (!uverbs_index_of(entry)) continue;
    if (const auto name = root.read_attribute(std::string(kClass) + entry + "/ibdev")) names.insert(*name);
  }
  return names;
}

std::vector<preflight::ForeignRdma> find_foreign_rdma(const FsRoot& root) {
  constexpr std::string_view kClass = "sys/class/infiniband/";
  constexpr std::size_t kMaxForeign = 32;
  std::vector<preflight::ForeignRdma> foreign;
  const auto entries = root.list(kClass);
  if (!entries) return foreign;
  const auto with_verbs = names_with_verbs(root);
  for (const std::string& name : *entries) {
    if (!is_rdma_name(name) || foreign.size() == kMaxForeign) continue;
    const std::string path = std::string(kClass) + name + "/device/driver";
    const auto link = root.real_path(path);
    const std::string driver = link ? link->substr(link->rfind('/') + 1) : "";
    if (driver == "efa") continue;
    foreign.push_back({name, printable(driver, 40), with_verbs.contains(name)});
  }
  return foreign;
}

// Not part of the agent's scan: no verdict rests on it.
std::vector<preflight::FailedResets> read_failed_resets(const FsRoot& root) {
  std::vector<preflight::FailedResets> failed;
  const auto devices = root.list("sys/class/neuron_device");
  if (!devices) return failed;
  for (const std::string& device : *devices) {
    const auto index = device_index_of(device);
    if (!index) continue;
    const auto entries = root.list(device_path(*index));
    if (!entries) continue;
    for (const std::string& entry : *entries) {
      const auto core = core_index_of(entry);
      if (!core) continue;
      const std::string path = device_path(*index) + '/' + entry + "/stats/other_info/reset_fail_count/total";
      const auto count = root.read_attribute(path).and_then(parse_counter);
      if (!count && is_absent(count.error())) continue;
      if (!count || *count > 0) failed.push_back({*index, *core, count.value_or(0), count ? "" : "no usable number"});
    }
  }
  std::ranges::sort(failed, {}, [](const auto& one) { return std::pair(one.device, one.core); });
  return failed;
}

// An imported file overrides the configuration; the last one counts.
preflight::CdiFacts with_drop_ins(preflight::CdiFacts facts, const FsRoot& root) {
  constexpr std::string_view kFolder = "etc/containerd/conf.d/";
  constexpr std::size_t kMostFiles = 64;
  const auto names = root.list(kFolder);
  std::size_t read = 0;
  for (const std::string& name : names.value_or(std::vector<std::string>{})) {
    if (!name.ends_with(".toml") || ++read > kMostFiles) continue;
    const std::string path = std::string(kFolder) + printable(name, kMaxShownName);
    const auto text = root.read_file(std::string(kFolder) + name, kMaxConfigBytes);
    if (!text) continue;
    preflight::CdiFacts imported = assess_containerd_config(*text, path);
    if (imported.is_said) facts = std::move(imported);
  }
  return facts;
}

preflight::CdiFacts read_cdi(const FsRoot& root) {
  constexpr std::string_view kPath = "etc/containerd/config.toml";
  const auto text = root.read_file(kPath, kMaxConfigBytes);
  if (text) {
    const bool imports = text->find("conf.d") != std::string::npos;
    auto facts = assess_containerd_config(*text, kPath);
    return imports ? with_drop_ins(std::move(facts), root) : facts;
  }
  const std::string failure = is_absent(text.error()) ? "missing" : "may not be read";
  return {.evidence = {std::string(kPath), failure + ", so the CDI setting is unknown"}};
}

// "enable_cdi = true # why" -> "true", when `line` sets `key`.
std::optional<std::string_view> value_of(std::string_view line, std::string_view key) {
  line = trim(line.substr(0, line.find('#')));
  if (!line.starts_with(key)) return std::nullopt;
  line = trim(line.substr(key.size()));
  if (!line.starts_with('=')) return std::nullopt;
  return trim(line.substr(1));
}

}  // namespace

preflight::PathState path_state(const FsRoot& root, std::string_view path) {
  return state_of(root.identify(path));
}

preflight::CdiFacts assess_containerd_config(std::string_view text, std::string_view path) {
  using State = preflight::CdiFacts::State;
  int version = 1;
  std::optional<bool> set;
  for (const std::string_view line : split(text, '\n')) {
    if (const auto value = value_of(line, "version")) version = parse_int(*value, 1, 99).value_or(version);
    const auto value = value_of(line, "enable_cdi");
    if (value == "true" || value == "false") set = value == "true";
  }
  const std::string evidence = !set ? "enable_cdi is not set, version = " + std::to_string(version) +
                                          (version >= 3 ? "" : "; containerd before 2.0 disables it by default")
                               : *set ? "enable_cdi = true"
                                      : "enable_cdi = false";
  return {.state = set.value_or(version >= 3) ? State::on : State::off,
          .evidence = {std::string(path), evidence},
          .is_said = set.has_value()};
}

preflight::PreflightFacts gather_preflight_facts(const FsRoot& root) {
  preflight::PreflightFacts facts;
  facts.own_dev = root.is_live() && !root.exists("dev/kmsg");  // on every host, in few containers
  facts.neuron_class = path_state(root, "sys/class/neuron_device");
  facts.verbs_class = path_state(root, "sys/class/infiniband_verbs");
  facts.uverbs_module = path_state(root, "sys/module/ib_uverbs");
  facts.pci_family = family_on_pci(root);
  facts.online_cpus = count_online_cpus(root);
  facts.foreign_rdma = find_foreign_rdma(root);
  facts.lnc_file = read_lnc_file(root);
  facts.huge_pages = read_huge_pages(root);
  facts.cdi = read_cdi(root);
  facts.failed_resets = read_failed_resets(root);
  facts.kubelet.not_looked = "not examined";
  return facts;
}

}  // namespace neuron::host
