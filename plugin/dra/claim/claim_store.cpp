#include "plugin/dra/claim/claim_store.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "plugin/dra/claim/claim_lnc.h"
#include "plugin/dra/claim/claim_units.h"

namespace neuron::plugin::dra {
namespace {

// With what to do about it, as the pod's event shows it.
Result<void> advised(Result<void> done) {
  if (done || (done.error().os_errno != ENOSPC && done.error().os_errno != EDQUOT)) return done;
  done.error().message += ": the disk is full; free space on the node. Retried automatically";
  return done;
}

// Whether the claim has the device at that place of its list for admin access, which holds nothing.
bool is_admin_only(const PreparedClaim& claim, std::size_t place) {
  const std::vector<std::string>& names = claim.devices[place].requests;
  const std::vector<PreparedRequest>& requests = claim.requests;
  if (names.empty()) {  // rebuilt from its CDI file: one request without a name per device
    return place < requests.size() && requests[place].share.admin_access;
  }
  return std::all_of(names.begin(), names.end(), [&](const std::string& name) {
    return std::any_of(requests.begin(), requests.end(),
                       [&](const PreparedRequest& one) { return one.share.request == name && one.share.admin_access; });
  });
}

}  // namespace

std::optional<Error> conflict(const ClaimsFile::Claims& claims, const std::string& uid, const Hardware& hardware) {
  for (const auto& [other, claim] : claims) {
    if (other == uid) continue;
    const auto both = overlap(hardware, claim->held());
    if (!both) continue;
    return make_error(ErrorCode::failed_precondition,
                      *both + " is held by the claim " + claim->shown() +
                          ", which is not released yet; retried automatically. If it persists, delete the pod, so that "
                          "a new one gets other devices");
  }
  return std::nullopt;
}

ClaimStore::ClaimStore(Options options, std::function<grant::NodeUnitsPtr()> node)
    : files_(options.cdi_directory + " or " + options.directory),
      cdi_is_dead_(std::move(options.cdi_is_dead)),
      node_(std::move(node)),
      grant_(std::move(options.grant)),
      cdi_(options.cdi_directory, options.driver),
      prepared_({options.directory, options.boot_id}, [this] {
        const grant::NodeUnitsPtr newest = node_();
        return cdi_.rebuild(newest.get());
      }) {}

// Claims that were rebuilt before the first scan hold whole devices instead of cores, and interfaces by their labels.
void ClaimStore::refine(ClaimsFile& file) const {
  const grant::NodeUnitsPtr node = node_();
  if (!node) return;
  const ClaimsFile::Claims claims = file.claims();
  for (const auto& [uid, claim] : claims) {
    if (!claim->is_completed || claim->is_whole()) continue;
    PreparedClaim better = *claim;
    for (std::size_t i = 0; i < std::min(better.requests.size(), better.devices.size()); ++i) {
      Hardware& hardware = better.requests[i].share.hardware;
      const bool has_places = std::any_of(hardware.devices.begin(), hardware.devices.end(),
                                          [](const HeldDevice& held) { return !held.places.empty(); });
      if (has_places) continue;  // by the LNC of that time
      if (auto known = hardware_of(*node, better.devices[i].device)) hardware = *std::move(known);
    }
    if (better.held() != claim->held()) file.learn(better);
  }
}

Result<void> ClaimStore::edit(const Work& work) {
  if (hangs_)
    return fail(ErrorCode::unavailable, files_ + " does not answer: its file system hangs; retried automatically");
  return edit_now(work);
}

Result<void> ClaimStore::edit_now(const Work& work) {
  return advised(prepared_.edit([&](ClaimsFile& file) {
    note_held(file);  // known also while the work hangs
    refine(file);
    auto result = work(file);
    note_held(file);
    return result;
  }));
}

void ClaimStore::note_held(const ClaimsFile& file) {
  const MutexLock lock(held_mutex_);
  claims_ = file.claims();
}

Result<void> ClaimStore::write_cdi(const PreparedClaim& claim) {
  const grant::NodeUnitsPtr node = node_();
  if (!node && cdi_.has(claim.uid)) return {};
  const bool is_ours = node && !claim.is_unread;  // another version's file is its own
  auto written =
      cdi_.write(claim.uid, is_ours ? newest_cdi_text(claim.cdi_text, claim.uid, {*node, grant_}) : claim.cdi_text);
  if (written || !cdi_.is_dead()) return written;
  if (cdi_is_dead_) cdi_is_dead_();
  Error error = std::move(written).error();
  error.message +=
      ": that directory was removed on the host and the driver's mount of it is stale; the driver restarts with a "
      "fresh mount, then this is retried";
  return fail(std::move(error));
}

Result<ClaimStore::View> ClaimStore::view() {
  View view;
  TRY(edit([&](ClaimsFile& file) -> Result<void> {
    view.releases = file.releases();
    view.claims = file.claims();
    return {};
  }));
  std::erase_if(view.claims, [](const auto& one) { return !one.second->is_completed; });
  return view;
}

Result<void> ClaimStore::commit(PreparedClaim claim, std::uint64_t releases) {
  return edit([&](ClaimsFile& file) -> Result<void> {
    if (file.was_released_since(claim.uid, releases)) {
      return fail(ErrorCode::failed_precondition,
                  "the claim was released while it was being prepared; retried if its pod still exists");
    }
    claim.is_completed = true;
    if (auto error = conflict(file.claims(), claim.uid, claim.held())) return fail(*std::move(error));
    std::vector<RequestShare> shares;
    for (const PreparedRequest& request : claim.requests) shares.push_back(request.share);
    if (auto error = lnc_clash(shares, claim.node_lnc, file.claims(), claim.uid)) return fail(*std::move(error));
    if (auto error = numbering_clash(claim, file.claims())) return fail(*std::move(error));
    const auto known = file.claims().find(claim.uid);
    if (known == file.claims().end() || !known->second->is_completed) {  // else what it holds stays held meanwhile
      claim.is_completed = false;
      TRY(file.put(claim));
    }
    TRY(write_cdi(claim));
    claim.is_completed = true;
    return file.put(claim);
  });
}

Result<void> ClaimStore::write_again(const std::string& uid) {
  return edit([&](ClaimsFile& file) -> Result<void> {
    const auto claim = file.claims().find(uid);
    if (claim == file.claims().end() || !claim->second->is_completed) {
      return fail(ErrorCode::not_found, "the claim was released during the call; retried automatically");
    }
    return write_cdi(*claim->second);
  });
}

Result<void> ClaimStore::release(const std::string& uid) {
  return edit([&](ClaimsFile& file) -> Result<void> {
    TRY(cdi_.remove(uid));
    return file.release(uid);
  });
}

Result<bool> ClaimStore::release_if(const std::shared_ptr<const PreparedClaim>& claim) {
  bool is_same = false;
  const auto done = edit([&](ClaimsFile& file) -> Result<void> {
    const auto now = file.claims().find(claim->uid);
    is_same = now != file.claims().end() && now->second == claim;
    if (!is_same) return {};
    TRY(cdi_.remove(claim->uid));
    return file.release(claim->uid);
  });
  if (!done) return fail(done.error());
  return is_same;
}

Result<void> ClaimStore::set_name(const std::string& uid, const std::string& claim_namespace, const std::string& name) {
  return edit([&](ClaimsFile& file) -> Result<void> {
    const auto known = file.claims().find(uid);
    if (known == file.claims().end()) return {};
    PreparedClaim claim = *known->second;
    claim.claim_namespace = claim_namespace;
    claim.name = name;
    file.learn(claim);
    return {};
  });
}

Result<void> ClaimStore::repair_one(ClaimsFile& file, const PreparedClaim& claim) {
  if (claim.is_completed) return write_cdi(claim);
  TRY(cdi_.remove(claim.uid));
  return file.remove(claim.uid);
}

Result<void> ClaimStore::repair() {
  return edit_now([&](ClaimsFile& file) -> Result<void> {
    Result<void> worst;
    const auto note = [&](Result<void> result) {
      if (!result && worst) worst = std::move(result);
    };
    const ClaimsFile::Claims claims = file.claims();
    for (const auto& [uid, claim] : claims) note(repair_one(file, *claim));
    for (const std::string& uid : cdi_.uids()) {
      if (!file.knows(uid)) note(cdi_.remove(uid));
    }
    return worst;
  });
}

std::vector<std::string> ClaimStore::held_devices() const {
  std::set<std::string> names;
  const MutexLock lock(held_mutex_);
  for (const auto& [uid, claim] : claims_) {
    for (std::size_t i = 0; i < claim->devices.size(); ++i) {
      if (!is_admin_only(*claim, i)) names.insert(claim->devices[i].device);
    }
  }
  return {names.begin(), names.end()};
}

HeldNumbering ClaimStore::held_numbering() const {
  const MutexLock lock(held_mutex_);
  return numbering_of(claims_);
}

ClaimsFile::Claims ClaimStore::held_claims() const {
  const MutexLock lock(held_mutex_);
  return claims_;
}

bool ClaimStore::is_held(const Hardware& hardware) const {
  const MutexLock lock(held_mutex_);
  return std::any_of(claims_.begin(), claims_.end(),
                     [&](const auto& one) { return overlap(hardware, one.second->held()).has_value(); });
}

}  // namespace neuron::plugin::dra
