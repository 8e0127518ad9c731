#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/kube/api.h"

// What the API server is and serves: the shape of slices depends on it.
namespace neuron::kube {

struct ServerVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;  // 0 where it was not told
  friend auto operator<=>(const ServerVersion&, const ServerVersion&) = default;

  [[nodiscard]] std::string text() const;  // "1.36.3"
};

// Of a gitVersion or a kubeletVersion: "v1.36.3", "v1.34.2-eks-113cf36", "v1.33.1+k3s1"; nullopt for other text. Pure.
[[nodiscard]] std::optional<ServerVersion> parse_git_version(std::string_view text);

// Of the answer to /version: gitVersion ("v1.36.3", "v1.34.2-eks-113cf36", "v1.33.1+k3s1"), else major and minor
// ("36+"). Errors: data_corrupt. Pure.
[[nodiscard]] Result<ServerVersion> parse_server_version(std::string_view answer);

// Of the answer to /apis/<group>: the versions that are served, the server's preferred one first ("v1", "v1beta2").
// Errors: data_corrupt. Pure.
[[nodiscard]] Result<std::vector<std::string>> parse_served(std::string_view answer, std::string_view group);

// The same, asked. Needs no more rights than every service account has (system:discovery, system:public-info-viewer).
// Errors: as Api::call and body_of(). Block as calls do; any thread.
[[nodiscard]] Result<ServerVersion> server_version(Api& api);
[[nodiscard]] Result<std::vector<std::string>> served_versions(Api& api, const std::string& group);  // none: empty

}  // namespace neuron::kube
