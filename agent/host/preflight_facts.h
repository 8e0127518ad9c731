#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/fs_root.h"
#include "agent/preflight/preflight.h"

// Facts of `neuron-agent check` beyond the scan. Reads only; missing things are absent, unreadable ones unknown, and
// neither is a zero.
namespace neuron::host {

// "present", "absent", or "unknown" for an error other than "no such file".
template <typename Value>
[[nodiscard]] preflight::PathState state_of(const Result<Value>& read) {
  if (read) return preflight::PathState::present;
  return is_absent(read.error()) ? preflight::PathState::absent : preflight::PathState::unknown;
}
// Any thread; blocks on the file system.
[[nodiscard]] preflight::PathState path_state(const FsRoot& root, std::string_view path);

// Everything below the root; the kubelet's directory and libfabric stay "not looked" and "not tried". Any thread;
// blocks on file reads.
[[nodiscard]] preflight::PreflightFacts gather_preflight_facts(const FsRoot& root);

// The kubelet's directory, a path of this process and not below any root, without its checkpoint
// (plugin/kubelet/checkpoint.h).
[[nodiscard]] preflight::KubeletFacts gather_kubelet_facts(const std::string& directory);

// Whether a containerd configuration enables CDI (docs/reference/kubelet.md#cdi): enable_cdi where it is set, else on
// for version 3, the format of containerd 2, and off for older ones. Pure; foreign text of any size.
[[nodiscard]] preflight::CdiFacts assess_containerd_config(std::string_view text, std::string_view path);

// Requirements and remains of claims, without sockets and lock, whose state is in no file. `kubelet_directory` is a
// path of this process, "" to leave it out; `cdi_directory` is one, too, or "": var/run/cdi below the root. Any thread;
// blocks on file reads.
[[nodiscard]] preflight::ClaimFacts gather_claim_facts(const FsRoot& root, const std::string& kubelet_directory,
                                                       const std::string& driver,
                                                       const std::string& cdi_directory = "");

// Uids in the driver's record of prepared claims (claims.json: a list "claims" of objects with "uid"), sorted. Errors:
// data_corrupt for another document. Pure; foreign text.
[[nodiscard]] Result<std::vector<std::string>> prepared_claims_in(std::string_view record);

// The value of a gate of featureGates in the kubelet's configuration, YAML or JSON; nullopt: not set. Pure; foreign
// text.
[[nodiscard]] std::optional<bool> gate_in(std::string_view config, std::string_view gate);

// The version of the package kubelet in dpkg's list of packages, "1.34.1-1.1"; "": not installed. Pure; foreign text.
[[nodiscard]] std::string kubelet_version_in(std::string_view dpkg_status);

}  // namespace neuron::host
