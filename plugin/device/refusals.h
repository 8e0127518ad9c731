#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "agent/base/result.h"
#include "agent/core/offer_policy.h"
#include "agent/model/health.h"
#include "plugin/device/ledger.h"

// Refusals of Allocate. The kubelet then fails the pod permanently and puts the sentence into its event, as "Allocate
// failed due to rpc error: code = … desc = <sentence>, which is unexpected": so each is one sentence without a full
// stop, with the obstacle and the remedy. Pure.
namespace neuron::plugin::refusals {

// The label `reason` of neuron_agent_refusals_total; docs/metrics.md has the table.
enum class Kind {
  not_scanned,     // no scan has been made yet
  no_ids,          // the request is empty
  asked_twice,     // one id is in the request more than once
  too_many_ids,    // more ids than any node has
  unknown_id,      // the node has no such unit
  unhealthy,       // the unit is unhealthy
  not_offered,     // the node offers the unit under another name
  held,            // another container holds the hardware
  given_before,    // it was given while List was open, and the kubelet gives it again
  held_by_claim,   // a claim holds the hardware
  other_hardware,  // two resources of one container are not the same hardware
};
inline constexpr std::array kAllKinds = {
    Kind::not_scanned, Kind::no_ids, Kind::asked_twice,  Kind::too_many_ids,  Kind::unknown_id,    Kind::unhealthy,
    Kind::not_offered, Kind::held,   Kind::given_before, Kind::held_by_claim, Kind::other_hardware};

[[nodiscard]] std::string_view to_string(Kind kind);  // the enumerator's name

// An error with its kind. Passive data.
struct Refusal : Error {
  Refusal(Kind why, Error error) : Error(std::move(error)), kind(why) {}
  Kind kind;
};

// A value, or the refusal.
template <typename T>
using OrRefusal = tl::expected<T, Refusal>;

[[nodiscard]] inline tl::unexpected<Refusal> fail(Refusal refusal) {
  return tl::unexpected<Refusal>(std::move(refusal));
}

[[nodiscard]] Refusal not_scanned();                                                 // unavailable
[[nodiscard]] Refusal no_ids(model::Resource resource);                              // invalid_argument
[[nodiscard]] Refusal asked_twice(model::Resource resource, const std::string& id);  // invalid_argument
[[nodiscard]] Refusal too_many_ids(int most);                                        // invalid_argument
[[nodiscard]] Refusal unknown_id(Error error);  // as grant::NodeUnits::unit_of gave it
// The following are failed_precondition.
[[nodiscard]] Refusal unhealthy(model::Resource resource, const std::string& id, const model::Health& health);
// The unit is listed because a container held it under a name that the node no longer offers it by.
[[nodiscard]] Refusal not_offered(model::Resource resource, const std::string& id);
[[nodiscard]] Refusal held(model::Resource resource, const Conflict& conflict);
// The kubelet counts the unit as free though its own record has a container with it.
[[nodiscard]] Refusal given_before(model::Resource resource, const std::string& id, const holdings::Holding& with);
// An interface; cores that a claim holds are refused by held().
[[nodiscard]] Refusal claimed(model::Resource resource, const std::string& id, const holdings::Holding& with);
// The container that asks was given `first` a moment ago, and the two are not the same hardware.
[[nodiscard]] Refusal other_hardware(model::Resource resource, const holdings::Holding& first,
                                     const core::OfferPolicy& offer);

}  // namespace neuron::plugin::refusals
