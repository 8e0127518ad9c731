#pragma once

#include <string>
#include <string_view>

#include "agent/base/result.h"
#include "agent/core/offer_policy.h"
#include "agent/holdings/ledger.h"
#include "agent/model/health.h"

// What Allocate says when it refuses. The kubelet fails the pod for good and puts the sentence into its event, as
// "Allocate failed due to rpc error: code = … desc = <sentence>, which is unexpected": so each is one sentence without
// a full stop, and says what is in the way and what to do. Pure.
namespace neuron::plugin::refusals {

// The kinds of refusals, for those who count them: short, lower case, never another word for the same.
inline constexpr std::string_view kNotScanned = "not_scanned";
inline constexpr std::string_view kNoIds = "no_ids";
inline constexpr std::string_view kAskedTwice = "asked_twice";
inline constexpr std::string_view kTooManyIds = "too_many_ids";
inline constexpr std::string_view kUnknownId = "unknown_id";
inline constexpr std::string_view kUnhealthy = "unhealthy";
inline constexpr std::string_view kNotOffered = "not_offered";
inline constexpr std::string_view kHeld = "held";
inline constexpr std::string_view kHeldByClaim = "held_by_claim";
inline constexpr std::string_view kOtherHardware = "other_hardware";
inline constexpr std::string_view kOther = "other";

// The kind of an error that Allocations::allocate gave, by the words that only this kind has; kOther for any other
// error.
[[nodiscard]] std::string_view reason_of(const Error& refusal);

[[nodiscard]] Error not_scanned();                                                 // unavailable
[[nodiscard]] Error no_ids(model::Resource resource);                              // invalid_argument
[[nodiscard]] Error asked_twice(model::Resource resource, const std::string& id);  // invalid_argument
// The following are failed_precondition.
[[nodiscard]] Error unhealthy(model::Resource resource, const std::string& id, const model::Health& health);
// The unit is listed because a container held it under a name that the node no longer offers it by.
[[nodiscard]] Error not_offered(model::Resource resource, const std::string& id);
[[nodiscard]] Error held(model::Resource resource, const holdings::Conflict& conflict);
// An interface; cores that a claim holds are refused by held().
[[nodiscard]] Error claimed(model::Resource resource, const std::string& id, const holdings::Holding& with);
// The container that asks was given `first` a moment ago, and the two are not the same hardware.
[[nodiscard]] Error other_hardware(model::Resource resource, const holdings::Holding& first,
                                   const core::OfferPolicy& offer);

}  // namespace neuron::plugin::refusals
