#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/host/fs_root.h"
#include "agent/preflight/preflight.h"

// Facts for `neuron-agent check` beyond the scan. Reads only; missing values are absent, unreadable ones unknown, and
// neither is ever a zero.
namespace neuron::host {

// Everything below the root but the kubelet's directory and libfabric, which stay "not looked" and "not tried". Any
// thread; blocks on file reads.
[[nodiscard]] preflight::PreflightFacts gather_preflight_facts(const FsRoot& root);

// Contents of the kubelet's directory, a path of this process and not below any root.
[[nodiscard]] preflight::KubeletFacts look_at_kubelet(const std::string& directory);

// Whether a containerd configuration turns CDI on (docs/reference/kubelet.md#cdi): enable_cdi where it is set, else on
// for version 3, the format that came with containerd 2, and off for older ones. Pure; foreign text of any size.
[[nodiscard]] preflight::CdiFacts assess_containerd_config(std::string_view text, std::string_view path);

// Prerequisites and remains of claims, without sockets and lock, whose state no file shows; `kubelet_directory` is a
// path of this process, and not read when it is ""; `cdi_directory` is one, too, or "": var/run/cdi below the root. Any
// thread; blocks on file reads.
[[nodiscard]] preflight::ClaimFacts look_at_claims(const FsRoot& root, const std::string& kubelet_directory,
                                                   const std::string& driver, const std::string& cdi_directory = "");

// Uids in the driver's record of what is prepared (claims.json: a list "claims" of objects with "uid"), sorted. Errors:
// data_corrupt when it is no such document. Pure; foreign text.
[[nodiscard]] Result<std::vector<std::string>> prepared_claims_in(std::string_view record);

// A gate of featureGates in the kubelet's configuration, YAML or JSON; nullopt: not in it. Pure; foreign text.
[[nodiscard]] std::optional<bool> gate_in(std::string_view config, std::string_view gate);

// The version of the package kubelet in dpkg's list of packages, "1.34.1-1.1"; "": not there. Pure; foreign text.
[[nodiscard]] std::string kubelet_version_in(std::string_view dpkg_status);

// Grants of verbs nodes through resources of other plugins: entries of kubelet_internal_checkpoint whose recorded
// Allocate answer (AllocResp, base64) holds "/dev/infiniband/uverbs". "RESOURCE pod UID/CONTAINER", sorted, at most 8.
// A text that is no checkpoint gives none. Pure; foreign text.
[[nodiscard]] std::vector<std::string> verbs_takers_in(std::string_view checkpoint);

}  // namespace neuron::host
