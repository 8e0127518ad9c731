#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "agent/base/result.h"

// The two sockets of one instance of a driver, and those that instances leave behind (docs/reference/kubelet.md#dra).
namespace neuron::plugin::dra {

struct SocketNames {
  std::string claims_dir;    // <kubelet>/plugins/<driver>, of this driver alone
  std::string claims;        // file name in it, "dra-<pod uid>.sock"
  std::string registry_dir;  // <kubelet>/plugins_registry, of all plugins
  std::string registration;  // file name in it, "<driver>-<pod uid>-reg.sock"

  [[nodiscard]] std::string claims_path() const { return claims_dir + "/" + claims; }
  [[nodiscard]] std::string registration_path() const { return registry_dir + "/" + registration; }
  friend bool operator==(const SocketNames&, const SocketNames&) = default;
};

// Names by the pod's uid let two instances be connected at once; "" gives the names of a single instance. Where a path
// is longer than a unix socket allows, a hash stands for the uid, then for the driver's name too. Errors:
// invalid_argument when even that does not fit. Pure.
[[nodiscard]] Result<SocketNames> socket_names(const std::string& kubelet_dir, const std::string& driver,
                                               const std::string& pod_uid);

// Of any instance of the driver. Pure.
[[nodiscard]] bool is_claims_socket(std::string_view name);
[[nodiscard]] bool is_registration_socket(std::string_view name, std::string_view driver);

// Removes what instances that were killed left behind: sockets of such names on which nobody listens. One that is
// younger than `young` is left, since a socket looks dead between bind and listen. Any thread; local files only.
// Returns how many.
int remove_dead_sockets(const SocketNames& own, std::string_view driver,
                        std::chrono::seconds young = std::chrono::seconds(10));

}  // namespace neuron::plugin::dra
