#include "plugin/device/refusals.h"

#include <string_view>
#include <utility>

namespace neuron::plugin::refusals {
namespace {

constexpr std::string_view kAgain = "have a Job or ReplicaSet recreate this pod";
constexpr std::string_view kPage = "(docs/resources.md#one-name-or-two)";

std::string quoted(const std::string& id) {
  return "\"" + id + "\"";
}

Refusal refuse(Kind kind, ErrorCode code, model::Resource resource, const std::string& why) {
  return {kind, make_error(code, std::string(model::resource_name(resource)) + ": " + why)};
}

Refusal of_claim(model::Resource resource, const std::string& what) {
  return refuse(Kind::held_by_claim, ErrorCode::failed_precondition, resource,
                what + " until that container ends; " + std::string(kAgain) +
                    ", and drain a node before switching it between claims and the device plugin");
}

}  // namespace

std::string_view to_string(Kind kind) {
  switch (kind) {
    case Kind::not_scanned:
      return "not_scanned";
    case Kind::no_ids:
      return "no_ids";
    case Kind::asked_twice:
      return "asked_twice";
    case Kind::too_many_ids:
      return "too_many_ids";
    case Kind::unknown_id:
      return "unknown_id";
    case Kind::unhealthy:
      return "unhealthy";
    case Kind::not_offered:
      return "not_offered";
    case Kind::held:
      return "held";
    case Kind::given_before:
      return "given_before";
    case Kind::held_by_claim:
      return "held_by_claim";
    case Kind::other_hardware:
      break;
  }
  return "other_hardware";
}

Refusal not_scanned() {
  return {Kind::not_scanned,
          make_error(ErrorCode::unavailable, "the node has not been scanned yet; " + std::string(kAgain))};
}

Refusal no_ids(model::Resource resource) {
  return refuse(Kind::no_ids, ErrorCode::invalid_argument, resource, "no device ids in the request");
}

Refusal asked_twice(model::Resource resource, const std::string& id) {
  return refuse(Kind::asked_twice, ErrorCode::invalid_argument, resource,
                quoted(id) + " is in the request more than once");
}

Refusal too_many_ids(int most) {
  return {Kind::too_many_ids,
          make_error(ErrorCode::invalid_argument, "more than " + std::to_string(most) + " device ids")};
}

Refusal unknown_id(Error error) {
  return {Kind::unknown_id, std::move(error)};
}

Refusal unhealthy(model::Resource resource, const std::string& id, const model::Health& health) {
  std::string why = quoted(id) + " is unhealthy: " + (health.sentence.empty() ? health.reason : health.sentence);
  if (!health.action.empty()) why += "; " + health.action;
  return refuse(Kind::unhealthy, ErrorCode::failed_precondition, resource, why);
}

Refusal not_offered(model::Resource resource, const std::string& id) {
  return refuse(Kind::not_offered, ErrorCode::failed_precondition, resource,
                quoted(id) +
                    " is offered under another resource name now (--resources or --core-devices of this node); " +
                    std::string(kAgain));
}

Refusal held(model::Resource resource, const Conflict& conflict) {
  if (!conflict.with.claim.empty()) return of_claim(resource, conflict.describe());
  return refuse(Kind::held, ErrorCode::failed_precondition, resource,
                conflict.describe() + " until that container ends; " + std::string(kAgain) +
                    ", or use one of the two names per node " + std::string(kPage));
}

Refusal given_before(model::Resource resource, const std::string& id, const holdings::Holding& with) {
  const std::string& known = with.shown_as.empty() ? with.holder : with.shown_as;
  return refuse(Kind::given_before, ErrorCode::failed_precondition, resource,
                quoted(id) + " is held by " + (known.empty() ? "a container admitted moments ago" : known) +
                    ", though the kubelet offers it (kubernetes/kubernetes#137534); " + std::string(kAgain));
}

Refusal claimed(model::Resource resource, const std::string& id, const holdings::Holding& with) {
  return of_claim(resource, quoted(id) + " is held by " + (with.shown_as.empty() ? with.holder : with.shown_as) +
                                " through claim " + with.claim);
}

Refusal other_hardware(model::Resource resource, const holdings::Holding& first, const core::OfferPolicy& offer) {
  const std::string given = "the container was just allocated " + std::to_string(first.cores.size()) +
                            " cores through " + std::string(model::resource_name(first.resource));
  const std::string remedy =
      offer.split ? ", and this node offers no device under both names; request one of the two resources only " +
                        std::string(kPage)
                  : ", which are the same hardware; request all cores of the same devices through both resources, or "
                    "use one only";
  return refuse(Kind::other_hardware, ErrorCode::failed_precondition, resource, given + remedy);
}

}  // namespace neuron::plugin::refusals
