// Requirements of claims on a node (docs/reference/kubelet.md#dra), and remains of the device plugin mode.

#include <algorithm>
#include <array>
#include <cstddef>

#include "agent/base/parse.h"
#include "agent/preflight/rules.h"

namespace neuron::preflight::rules {
namespace {

using SocketState = ClaimFacts::SocketState;
using Version = std::array<int, 3>;

constexpr std::size_t kMostShown = 8;

std::string driver_directory(const ClaimFacts& claims) {
  return claims.kubelet + "/plugins/" + claims.driver;
}

// The version at the beginning of "1.34.1-1.1", "v1.35.0" or "1.36.0+abc".
std::optional<Version> version_of(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  Version version{};
  const auto parts = split(text.substr(0, text.find_first_not_of("0123456789.")), '.');
  if (parts.size() != version.size()) return std::nullopt;
  for (std::size_t i = 0; i < version.size(); ++i) {
    const auto number = parse_int(parts[i], 0, 9999);
    if (!number) return std::nullopt;
    version[i] = *number;
  }
  return version;
}

void check_registry(const ClaimFacts& claims, Report& report) {
  const std::string path = claims.kubelet + "/plugins_registry";
  if (claims.registry == PathState::unknown) report.not_checked.push_back({path, "not accessible"});
  if (claims.registry != PathState::absent) return;
  report.error("plugins_registry_missing", "the directory where claim drivers register with the kubelet is missing",
               {{path, "missing"}}, "start the kubelet, or mount the directory into the agent's pod");
}

void check_cdi_directory(const ClaimFacts& claims, Report& report) {
  const std::string& path = claims.cdi_path;
  const std::string mounted = (path.starts_with('/') ? "" : "/") + path;
  if (claims.cdi_directory == PathState::unknown) report.not_checked.push_back({path, "not accessible"});
  if (claims.cdi_directory == PathState::absent) {
    report.warning("cdi_dir_missing",
                   "the directory with the CDI specs of claims is missing: no pod with a claim can start",
                   {{path, "missing"}}, "mount " + mounted + " of the node into the agent's pod, which makes it");
  } else if (claims.cdi_read_only) {
    report.error("cdi_dir_read_only", "the directory with the CDI specs of claims is read-only",
                 {{path, "a read-only file system"}},
                 "mount " + mounted + " of the node into the agent's pod, writable");
  }
}

// Of containerd up to 2.2, which drops requested devices without an error (docs/reference/kubelet.md#cdi).
void check_cdi_of_runtime(const CdiFacts& cdi, Report& report) {
  if (cdi.state != CdiFacts::State::off) return;
  const char* sentence =
      cdi.is_said
          ? "CDI is disabled in the container runtime: containers with claims would start without their devices"
          : "containerd before 2.0 disables CDI by default: containers with claims would then start without their "
            "devices";
  report.add(cdi.is_said ? Severity::error : Severity::warning, "cdi_off_for_claims", sentence, {cdi.evidence},
             "enable_cdi = true in containerd's configuration, or containerd 2.0 or newer; then restart it");
}

void check_gates(const ClaimFacts& claims, Report& report) {
  if (!claims.config_read) {
    report.not_checked.push_back(
        {"the kubelet's configuration", "not readable from here, so its feature gates are unknown"});
  }
  for (const Evidence& gate : claims.gates_off) {
    const std::vector<Evidence> evidence = {{gate.path, gate.value + ": false"}};
    if (gate.value == "DynamicResourceAllocation") {
      report.error("claims_gate_off", "the kubelet's configuration disables claims", evidence,
                   "remove the gate from featureGates and restart the kubelet");
    } else if (gate.value == "DRAExtendedResource") {
      report.warning("extended_claims_gate_off",
                     "the kubelet's configuration disables extended resources by claim (aws.amazon.com/neuron and the "
                     "like): such a pod would start without devices if the scheduler places it here",
                     evidence, "remove the gate from featureGates, or extendedResourceName from the device classes");
    } else {
      report.add(Severity::info, "claims_not_listed",
                 "the kubelet does not list claims in PodResources: neuron-ls and neuron-top show no holders by claim",
                 evidence, "remove the gate from featureGates");
    }
  }
}

// 1.34.0 and 1.34.1 do not reconnect (k#133920); the class' extendedResourceName is known from 1.36 on.
void check_version(const ClaimFacts& claims, Report& report) {
  constexpr Version kServes = {1, 34, 2};
  constexpr Version kServesExtended = {1, 36, 0};
  const auto version = version_of(claims.kubelet_version);
  if (!version) {
    report.not_checked.push_back({"the kubelet's version", "unknown from here; claims need 1.34.2 or newer"});
    return;
  }
  const std::vector<Evidence> evidence = {{"var/lib/dpkg/status", "kubelet " + claims.kubelet_version}};
  if (*version < kServes) {
    report.error("kubelet_too_old_for_claims",
                 "this kubelet does not serve claims reliably: up to 1.34.1 it does not reconnect to a driver "
                 "after 30 minutes without a call, and before 1.34 it lacks the current protocol",
                 evidence, "update the kubelet to 1.34.2 or newer");
  } else if (*version < kServesExtended) {
    report.add(Severity::info, "kubelet_without_extended_claims",
               "up to 1.35 the kubelet ignores unknown resources of a pod: pods that request aws.amazon.com/neuron "
               "without a claim must not be served by claims on this node",
               evidence, "leave extendedResourceName out of the device classes until all kubelets are 1.36 or newer");
  }
}

std::vector<Evidence> seen(const std::vector<std::string>& paths, const std::string& what) {
  std::vector<Evidence> evidence;
  for (std::size_t i = 0; i < std::min(paths.size(), kMostShown); ++i) evidence.push_back({paths[i], what});
  return evidence;
}

std::vector<std::string> sockets_that(const ClaimFacts& claims, SocketState state) {
  std::vector<std::string> paths;
  for (const ClaimFacts::Socket& socket : claims.driver_sockets) {
    if (socket.state == state) paths.push_back(socket.path);
  }
  return paths;
}

// Another neuron-agent holds the node in the other mode.
bool is_held_by_other_mode(const ClaimFacts& claims) {
  const bool by_claims = claims.lock ? claims.lock->of_claims : !sockets_that(claims, SocketState::listening).empty();
  return claims.asked ? claims.lock && !by_claims : claims.plugin_asked && by_claims;
}

void check_other_mode(const ClaimFacts& claims, Report& report) {
  if (!is_held_by_other_mode(claims)) return;
  const std::string held = claims.asked ? "device-plugin" : "DRA";
  const std::string meant = claims.asked ? "DRA" : "device-plugin";
  std::vector<Evidence> evidence;
  if (claims.lock) {
    evidence.push_back({claims.kubelet + "/device-plugins",
                        "locked by pid " + claims.lock->pid + ", as an agent in " + held + " mode does"});
  }
  const auto others = claims.asked ? seen(claims.device_plugins, "a device plugin listens")
                                   : seen(sockets_that(claims, SocketState::listening), "the driver listens");
  evidence.insert(evidence.end(), others.begin(), others.end());
  report.error("other_mode",
               "another agent, in " + held + " mode, holds this node, which runs one mode: an agent in " + meant +
                   " mode exits with status 3",
               std::move(evidence),
               "nothing if that mode is intended; else drain the node and remove that agent: the node's label "
               "neuron-agent/mode selects the DaemonSet");
}

void check_modes(const ClaimFacts& claims, Report& report) {
  const auto drivers = sockets_that(claims, SocketState::listening);
  const bool is_reported = drivers.empty() && is_held_by_other_mode(claims);
  if (!is_reported && !claims.device_plugins.empty() && (claims.asked || !drivers.empty())) {
    std::vector<Evidence> evidence = seen(claims.device_plugins, "a device plugin listens");
    const std::vector<Evidence> others = seen(drivers, "the driver listens");
    evidence.insert(evidence.end(), others.begin(), others.end());
    report.error("both_modes",
                 drivers.empty() ? "a device plugin serves this node's devices, which claims should serve"
                                 : "a device plugin and a claim driver both allocate the devices of this node: two "
                                   "pods can get the same ones",
                 std::move(evidence), "drain the node, then run one of the two");
  }
  if (drivers.empty() && !claims.prepared.empty() && sockets_that(claims, SocketState::unknown).empty()) {
    report.warning("driver_gone",
                   counted(claims.prepared.size(), "claim") + (claims.prepared.size() == 1 ? " is" : " are") +
                       " prepared, but the driver does not run: pods that hold them stay in Terminating until it does",
                   {{driver_directory(claims) + "/claims.json", joined(claims.prepared).substr(0, 400)}},
                   "run neuron-agent --mode dra on this node until they have ended");
  }
  const auto dead = sockets_that(claims, SocketState::dead);
  if (dead.empty()) return;
  report.add(
      Severity::info, "dead_driver_sockets",
      "no process listens on " + counted(dead.size(), "socket") + " of the driver, which the kubelet keeps calling",
      seen(dead, "no process listens"),
      "nothing if the driver is about to start, since it removes them; else remove them");
}

void check_record(const ClaimFacts& claims, Report& report) {
  const std::string record = driver_directory(claims) + "/claims.json";
  if (!claims.claims_file_problem.empty()) {
    report.warning(
        "claims_file_damaged",
        "the record of prepared claims is damaged: the driver sets it aside and recovers the claims from CDI files",
        {{record, claims.claims_file_problem}},
        "nothing if the driver starts; the damaged file is kept beside the new one");
    return;
  }
  std::vector<std::string> stale;
  std::set_difference(claims.described.begin(), claims.described.end(), claims.prepared.begin(), claims.prepared.end(),
                      std::back_inserter(stale));
  if (stale.empty()) return;
  for (std::string& uid : stale) uid = claims.cdi_path + "/k8s." + claims.driver + "-claim_" + uid + ".json";
  report.warning(
      "stale_cdi_files",
      counted(stale.size(), "CDI file") + " of the driver " +
          (stale.size() == 1 ? "describes a claim" : "describe claims") + " missing in its record",
      seen(stale, claims.claims_file == PathState::present ? "no such claim in claims.json" : "no claims.json"),
      "nothing if the driver is about to start, since it cleans them up; else remove them");
}

}  // namespace

void check_claims(const model::HostScan& scan, const PreflightFacts& facts, Report& report) {
  const ClaimFacts& claims = facts.claims;
  if (serves_nothing(scan)) return;
  check_other_mode(claims, report);
  if (!has_claims(facts)) return;
  check_cdi_directory(claims, report);
  check_cdi_of_runtime(facts.cdi, report);
  check_gates(claims, report);
  check_version(claims, report);
  if (!facts.kubelet.not_looked.empty() || facts.kubelet.itself == PathState::absent) return;
  check_registry(claims, report);
  check_modes(claims, report);
  check_record(claims, report);
}

}  // namespace neuron::preflight::rules
