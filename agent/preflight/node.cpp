// Settings of the node and of the kubelet that break workloads.

#include <algorithm>

#include "agent/base/parse.h"
#include "agent/core/logical_cores.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight::rules {
namespace {

using model::HostScan;

constexpr const char* kLncPath = "opt/aws/neuron/logical_nc_config";
constexpr const char* kHugePath = "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";

void check_lnc(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  const LncFile& file = facts.lnc_file;
  if (file.state == PathState::absent) return;
  if (!file.reason.empty()) {
    report.error("lnc_file_malformed",
                 "the LNC file cannot be used; the default of the device is assumed, and the runtime may number cores "
                 "differently",
                 {{kLncPath, file.reason}}, "write one line NEURON_LOGICAL_NC_CONFIG=1 or =2, or remove the file");
    return;
  }
  const bool two_possible = std::ranges::any_of(scan.devices, [](const auto& device) {
    return device.family == model::Family::trainium2 || device.family == model::Family::trainium3;
  });
  if (file.value == 2 && !scan.devices.empty() && !two_possible) {
    report.error("lnc_unsupported", "the LNC file asks for 2, but these devices support only 1; it is ignored",
                 {{kLncPath, file.text}}, "remove the file, or write NEURON_LOGICAL_NC_CONFIG=1");
  }
}

// The agent keeps the old numbering until no core is held; the runtime in new containers uses the new one.
void check_held_numbering(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  const KubeletFacts& kubelet = facts.kubelet;
  if (!scan.lnc || scan.devices.empty() || kubelet.numbering.given.empty()) return;
  const auto held = core::lnc_in_use(kubelet.numbering, scan);
  if (!held || *held == scan.lnc->value) return;
  const std::string checkpoint = kubelet.directory + "/device-plugins/kubelet_internal_checkpoint";
  report.warning("lnc_changed_while_held",
                 "LNC is " + std::to_string(scan.lnc->value) + ", but containers hold cores numbered with LNC " +
                     std::to_string(*held) + "; cores keep those numbers until these containers end",
                 {{kLncPath, std::to_string(scan.lnc->value)}, {checkpoint, std::to_string(*held)}},
                 "drain the node, or restore the previous LNC file");
}

// The EFA installer reserves 110 MB for each of two endpoints per CPU, i.e. 110 pages of 2 MiB, and one more
// (docs/reference/efa.md#huge-pages).
void check_huge_pages(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  constexpr std::uint64_t kPagesPerCpu = 110;
  constexpr std::uint64_t kLargestDefault = 16U << 20U;  // above it the installer reserves none
  if (scan.efas.empty()) return;
  const HugePages& pages = facts.huge_pages;
  if (pages.default_bytes && *pages.default_bytes > kLargestDefault) return;
  if (!pages.reserved_2m) {
    report.not_checked.push_back({kHugePath, "missing, or not readable"});
    return;
  }
  const std::string fix =
      "run /opt/amazon/efa/bin/efa_hugepages.sh, or set vm.nr_hugepages; pods request them as hugepages-2Mi";
  if (*pages.reserved_2m == 0) {
    report.warning("huge_pages_none", "no huge pages are reserved: libfabric works without them, but slower",
                   {{kHugePath, "0"}}, fix);
    return;
  }
  if (!facts.online_cpus) return;
  const std::uint64_t usual = kPagesPerCpu * static_cast<std::uint64_t>(*facts.online_cpus) + 1;
  if (*pages.reserved_2m >= usual) return;
  report.add(Severity::info, "huge_pages_few",
             "fewer huge pages are reserved than the EFA installer reserves: " + std::to_string(usual) + " for " +
                 counted(static_cast<std::size_t>(*facts.online_cpus), "CPU"),
             {{kHugePath, std::to_string(*pages.reserved_2m)}}, fix);
}

void check_cdi(const PreflightFacts& facts, Report& report) {
  if (facts.cdi.state == CdiFacts::State::unknown) {
    report.not_checked.push_back(facts.cdi.evidence);
  } else if (facts.cdi.state == CdiFacts::State::off && !has_claims(facts)) {
    report.add(Severity::info, "cdi_off", "CDI is disabled in the container runtime: it would drop CDI names silently",
               {facts.cdi.evidence}, "leave --cdi of neuron-agent off, or enable CDI in the runtime first");
  }
}

// From v0.19 that plugin mounts every verbs node into GPU pods (docs/reference/efa.md#the-aws-efa-device-plugin).
void check_nvidia(const HostScan& scan, const KubeletFacts& kubelet, Report& report) {
  if (scan.efas.empty()) return;
  const std::string fix =
      "run NVIDIA's device plugin with --mofed-enabled=false, so that only pods that request EFA get it";
  if (!kubelet.verbs_takers.empty()) {
    std::vector<Evidence> evidence;
    for (const std::string& taker : kubelet.verbs_takers) {
      evidence.push_back({kubelet.directory + "/device-plugins/kubelet_internal_checkpoint", taker});
    }
    report.error("nvidia_takes_verbs", "another plugin exposes verbs nodes of EFA interfaces to its pods",
                 std::move(evidence), fix);
    return;
  }
  for (const std::string& socket : kubelet.plugin_sockets) {
    if (!socket.starts_with("nvidia")) continue;
    report.warning(
        "nvidia_takes_verbs",
        "NVIDIA's device plugin runs here; from v0.19 it exposes all verbs nodes to every GPU pod by default",
        {{kubelet.directory + "/device-plugins/" + socket, "present"}}, fix);
    return;
  }
}

struct Rival {
  std::string_view socket;
  const char* resource;
  const char* what;
};
constexpr Rival kRivals[] = {
    {"aws-efa-device-plugin.sock", "vpc.amazonaws.com/efa", "AWS's EFA device plugin"},
    {"neuron-devplugin.sock", "aws.amazon.com/neuron", "AWS's Neuron device plugin"},
    {"neuroncore-devplugin.sock", "aws.amazon.com/neuroncore", "AWS's Neuron device plugin"},
};

void check_rivals(const KubeletFacts& kubelet, Report& report) {
  for (const Rival& rival : kRivals) {
    const auto& sockets = kubelet.plugin_sockets;
    if (std::ranges::find(sockets, rival.socket) == sockets.end()) continue;
    report.warning("rival_plugin",
                   std::string(rival.what) + " serves " + rival.resource + " here too: the last one to register wins",
                   {{kubelet.directory + "/device-plugins/" + std::string(rival.socket), "present"}},
                   "run only one of the two on a node");
  }
}

// The scheduler does not know the hardware: it adds up the units of each resource name.
void check_two_names(const HostScan& scan, const KubeletFacts& kubelet, Report& report) {
  std::vector<int> both;
  for (const model::NeuronDevice& device : scan.devices) {
    const std::vector<int> cores = core::core_ids_of(device, scan);
    const bool as_cores =
        std::ranges::any_of(cores, [&](int core) { return std::ranges::binary_search(kubelet.listed_cores, core); });
    if (as_cores && std::ranges::binary_search(kubelet.listed_devices, device.index)) {
      both.push_back(device.index);
    }
  }
  if (both.empty()) return;
  report.add(Severity::info, "two_names",
             counted(both.size(), "device") +
                 " can be requested as neuron and as neuroncore, which the scheduler counts separately: a queue that "
                 "mixes the two loses pods to UnexpectedAdmissionError",
             {{kubelet.directory + "/device-plugins/kubelet_internal_checkpoint",
               "both names list devices " + format_int_list(both)}},
             "nothing if the pods of a node use one name; else --resources or --core-devices "
             "(docs/resources.md#one-name-or-two)");
}

// True when it is present or unknown.
bool require(PathState state, const std::string& path, Report& report) {
  if (state == PathState::unknown) report.not_checked.push_back({path, "not accessible"});
  return state != PathState::absent;
}

}  // namespace

void check_settings(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  check_lnc(scan, facts, report);
  check_held_numbering(scan, facts, report);
  check_huge_pages(scan, facts, report);
  check_cdi(facts, report);
}

void check_kubelet(const HostScan& scan, const PreflightFacts& facts, Report& report) {
  const KubeletFacts& kubelet = facts.kubelet;
  if (!kubelet.not_looked.empty()) {
    report.not_checked.push_back({"kubelet", kubelet.not_looked});
    return;
  }
  const std::string plugins = kubelet.directory + "/device-plugins";
  const std::string pods = kubelet.directory + "/pod-resources/kubelet.sock";
  if (!require(kubelet.itself, kubelet.directory, report)) {
    report.add(serves_nothing(scan) ? Severity::info : Severity::error, "kubelet_dir_missing",
               "the kubelet's directory is missing: no plugin can register", {{kubelet.directory, "missing"}},
               "start the kubelet, mount the directory into this container, or name it with --kubelet-dir");
    return;
  }
  if (!require(kubelet.device_plugins, plugins, report)) {
    report.error("device_plugins_dir_missing", "the kubelet's device-plugins directory is missing",
                 {{plugins, "missing"}}, "start the kubelet, or mount the directory into this container");
  } else if (kubelet.device_plugins == PathState::present &&
             !require(kubelet.kubelet_socket, plugins + "/kubelet.sock", report)) {
    report.warning("kubelet_socket_missing", "the kubelet does not listen: it is down, or this is not its directory",
                   {{plugins + "/kubelet.sock", "missing"}}, "start the kubelet; the agent registers when it is up");
  }
  if (!require(kubelet.pod_resources_socket, pods, report)) {
    report.warning("pod_resources_missing",
                   "PodResources is unavailable: after a restart the agent rebuilds holders from the checkpoint only",
                   {{pods, "missing"}}, "mount the kubelet's pod-resources directory into the agent's pod");
  }
  check_nvidia(scan, kubelet, report);
  check_rivals(kubelet, report);
  check_two_names(scan, kubelet, report);
}

}  // namespace neuron::preflight::rules
