#pragma once

#include <optional>
#include <string>
#include <string_view>

// Names of the CDI devices of claims: made when a claim is prepared, and read back out of PodResources, which says of a
// claim's device neither the claim's uid nor `adminAccess`. Pure.
namespace neuron::core {

enum class ClaimAccess {
  use,    // the claim holds the device
  admin,  // `adminAccess`: it holds nothing
};

// The kind of the CDI devices of claims: "k8s.<driver>/claim".
[[nodiscard]] std::string claim_cdi_kind(std::string_view driver);

// "<uid>-<device>", or "<uid>-admin-<device>" for admin access. `device` as in the driver's pool.
[[nodiscard]] std::string claim_cdi_name(std::string_view uid, std::string_view device, ClaimAccess access);

// Access to `device` in a claim of `driver` by the CDI id "<kind>=<name>"; nullopt when the id is of another device, of
// a request ("<uid>-request-<request>"), or not of this form.
[[nodiscard]] std::optional<ClaimAccess> claim_access(std::string_view cdi_id, std::string_view driver,
                                                      std::string_view device);

}  // namespace neuron::core
