#include "plugin/device/refusals.h"

#include <array>
#include <string_view>
#include <utility>

namespace neuron::plugin::refusals {
namespace {

constexpr std::string_view kAgain = "let a Job or ReplicaSet make this pod again";
constexpr std::string_view kPage = "(docs/one-name-or-two.md)";

// What one kind of refusal says and no other.
constexpr std::string_view kSaysNotScanned = "the node has not been scanned yet";
constexpr std::string_view kSaysNoIds = "no device ids in the request";
constexpr std::string_view kSaysTwice = " is in the request more than once";
constexpr std::string_view kSaysUnhealthy = " is unhealthy: ";
constexpr std::string_view kSaysNotOffered = " is given under another name now";
constexpr std::string_view kSaysHeld = "or use one of the two names per node";
constexpr std::string_view kSaysClaim = "drain a node before it changes between claims and the device plugin";
constexpr std::string_view kSaysJustGiven = "the container was just given ";
constexpr std::string_view kSaysUnknown = ": this node has no \"";  // agent/grant/node_units.cpp

// In the order in which they are looked for: what may be in a sentence of somebody else comes last.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kKinds = {{
    {kSaysClaim, kHeldByClaim},
    {kSaysHeld, kHeld},
    {kSaysJustGiven, kOtherHardware},
    {kSaysNotOffered, kNotOffered},
    {kSaysTwice, kAskedTwice},
    {kSaysNoIds, kNoIds},
    {kSaysNotScanned, kNotScanned},
    {kSaysUnknown, kUnknownId},
    {kSaysUnhealthy, kUnhealthy},
}};

std::string quoted(const std::string& id) {
  return "\"" + id + "\"";
}

Error refuse(ErrorCode code, model::Resource resource, const std::string& why) {
  return make_error(code, std::string(model::resource_name(resource)) + ": " + why);
}

Error of_claim(model::Resource resource, const std::string& what) {
  return refuse(ErrorCode::failed_precondition, resource,
                what + " until that container ends; " + std::string(kAgain) + ", and " + std::string(kSaysClaim));
}

}  // namespace

std::string_view reason_of(const Error& refusal) {
  for (const auto& [words, kind] : kKinds) {
    if (refusal.message.find(words) != std::string::npos) return kind;
  }
  return kOther;
}

Error not_scanned() {
  return make_error(ErrorCode::unavailable, std::string(kSaysNotScanned) + "; " + std::string(kAgain));
}

Error no_ids(model::Resource resource) {
  return refuse(ErrorCode::invalid_argument, resource, std::string(kSaysNoIds));
}

Error asked_twice(model::Resource resource, const std::string& id) {
  return refuse(ErrorCode::invalid_argument, resource, quoted(id) + std::string(kSaysTwice));
}

Error unhealthy(model::Resource resource, const std::string& id, const model::Health& health) {
  std::string why =
      quoted(id) + std::string(kSaysUnhealthy) + (health.sentence.empty() ? health.reason : health.sentence);
  if (!health.action.empty()) why += "; " + health.action;
  return refuse(ErrorCode::failed_precondition, resource, why);
}

Error not_offered(model::Resource resource, const std::string& id) {
  return refuse(ErrorCode::failed_precondition, resource,
                quoted(id) + std::string(kSaysNotOffered) + ", as this node's --resources or --core-devices say; " +
                    std::string(kAgain));
}

Error held(model::Resource resource, const holdings::Conflict& conflict) {
  if (!conflict.with.claim.empty()) return of_claim(resource, conflict.describe());
  return refuse(ErrorCode::failed_precondition, resource,
                conflict.describe() + " until that container ends; " + std::string(kAgain) + ", " +
                    std::string(kSaysHeld) + " " + std::string(kPage));
}

Error claimed(model::Resource resource, const std::string& id, const holdings::Holding& with) {
  return of_claim(resource, quoted(id) + " is held by " + (with.shown_as.empty() ? with.holder : with.shown_as) +
                                " through claim " + with.claim);
}

Error other_hardware(model::Resource resource, const holdings::Holding& first, const core::OfferPolicy& offer) {
  const std::string given = std::string(kSaysJustGiven) + std::to_string(first.cores.size()) + " cores through " +
                            std::string(model::resource_name(first.resource));
  if (offer.split) {
    return refuse(ErrorCode::failed_precondition, resource,
                  given +
                      ", and this node gives no device under both names, so never the same silicon; ask for one "
                      "name only " +
                      std::string(kPage));
  }
  return refuse(ErrorCode::failed_precondition, resource,
                given +
                    ", which is the same silicon; ask for all cores of the same devices through both, or for one "
                    "only");
}

}  // namespace neuron::plugin::refusals
