#include "plugin/dra/claim/claim_lnc.h"

#include <map>
#include <utility>

namespace neuron::plugin::dra {
namespace {

// The LNC with which a claim uses a device.
struct Use {
  int lnc = 0;
  std::string who;
  bool is_other_claim = false;
};
using Uses = std::map<int, Use>;  // by device

std::optional<int> lnc_of(const RequestShare& share, std::optional<int> node_lnc) {
  return share.config.lnc ? share.config.lnc : node_lnc;
}

Error clash(int device, const Use& use, const std::string& request, int lnc) {
  return make_error(
      ErrorCode::failed_precondition,
      "neuron" + std::to_string(device) + " is used with logicalNeuronCore " + std::to_string(use.lnc) + " by " +
          use.who + ", and the request \"" + request + "\" requests it with " + std::to_string(lnc) +
          ": a device has one LNC value; use the same configuration for both, or request " +
          (use.is_other_claim ? "whole devices; retried automatically, succeeds once that claim is released"
                              : "cores of different devices"));
}

void note_others(const ClaimsFile::Claims& claims, const std::string& uid, Uses& uses) {
  for (const auto& [other, claim] : claims) {
    if (other == uid || !claim->is_completed) continue;
    for (const PreparedRequest& request : claim->requests) {
      const auto lnc = lnc_of(request.share, claim->node_lnc);
      if (!lnc || !request.share.computes()) continue;
      for (const HeldDevice& held : request.share.hardware.devices) {
        uses.try_emplace(held.device, Use{*lnc, "the claim " + claim->shown(), true});
      }
    }
  }
}

}  // namespace

std::optional<Error> lnc_clash(const std::vector<RequestShare>& shares, std::optional<int> node_lnc,
                               const ClaimsFile::Claims& claims, const std::string& uid) {
  Uses uses;
  note_others(claims, uid, uses);
  for (const RequestShare& share : shares) {
    const auto lnc = lnc_of(share, node_lnc);
    if (!lnc || !share.computes()) continue;
    for (const HeldDevice& held : share.hardware.devices) {
      const auto [use, is_new] =
          uses.try_emplace(held.device, Use{*lnc, "the request \"" + share.request + "\"", false});
      if (!is_new && use->second.lnc != *lnc) return clash(held.device, use->second, share.request, *lnc);
    }
  }
  return std::nullopt;
}

HeldNumbering numbering_of(const ClaimsFile::Claims& claims) {
  HeldNumbering numbering;
  for (const auto& [uid, claim] : claims) {
    if (claim->held().devices.empty()) continue;
    numbering.any = true;
    if (!numbering.lnc) numbering.lnc = claim->node_lnc;
  }
  return numbering;
}

std::optional<Error> numbering_clash(const PreparedClaim& claim, const ClaimsFile::Claims& claims) {
  const std::optional<int> others = numbering_of(claims).lnc;
  if (!others || !claim.node_lnc || *others == *claim.node_lnc || claim.held().devices.empty()) return std::nullopt;
  return make_error(ErrorCode::failed_precondition, "the claim was prepared with cores numbered by LNC " +
                                                        std::to_string(*claim.node_lnc) +
                                                        ", but they are now held as LNC " + std::to_string(*others) +
                                                        " numbers them; retried with the new numbers");
}

}  // namespace neuron::plugin::dra
