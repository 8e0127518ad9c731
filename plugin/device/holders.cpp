#include "plugin/device/holders.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace neuron::plugin {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAskAfterFailure{1000};
// If the kubelet does not list its holders, devices are served after this time: pods may hold them by claims, which no
// checkpoint of the device manager has. The second where claims are known to be there.
constexpr milliseconds kFirstAnswerPatience{5000};
constexpr milliseconds kClaimsPatience{30000};
constexpr milliseconds kAskWhileWithheld{500};  // the kubelet does not report the end of a container

bool is_claim(const model::Allocation& one) {
  return !one.claim.empty();
}

}  // namespace

void MergedHolders::set_listed(std::vector<model::Allocation> listed, SteadyTime asked_at) {
  claims_.set_listed(listed, is_claim, asked_at);
  std::set<std::string> pods;
  for (const model::Allocation& one : listed) {
    pods.insert(one.pod_namespace + "/" + one.pod);
    if (!one.ids.empty() && !is_claim(one)) pods.insert(model::holder_of(one) + " " + one.resource_name);
  }
  if (!std::includes(pods.begin(), pods.end(), pods_.begin(), pods_.end())) asked_about_.clear();
  pods_ = std::move(pods);
  std::erase_if(listed, [](const model::Allocation& one) { return one.ids.empty() || is_claim(one); });
  asked_at_ = asked_at;
  learn_names(listed);
  listed_ = std::move(listed);
}

std::set<std::pair<std::string, std::string>> MergedHolders::claimed() const {
  std::set<std::pair<std::string, std::string>> claimed;
  for (const model::Allocation& one : claims_.held()) {
    for (const std::string& id : one.ids) claimed.emplace(one.resource_name, id);
  }
  return claimed;
}

void MergedHolders::learn_names(const std::vector<model::Allocation>& listed) {
  const Checkpoint* const stored = this->stored(asked_at_);
  if (stored == nullptr) return;
  std::map<std::tuple<std::string, std::string, std::string>, const model::Allocation*>
      shown;  // by resource, id, container
  for (const model::Allocation& one : listed) {
    for (const std::string& id : one.ids) shown[{one.resource_name, id, one.container}] = &one;
  }
  decltype(names_) names;
  for (const model::Allocation& entry : stored->allocations) {
    if (const auto before = names_.find(entry.pod_uid); before != names_.end()) names.insert(*before);
    const auto found = shown.find({entry.resource_name, entry.ids.front(), entry.container});
    if (found != shown.end()) names[entry.pod_uid] = {found->second->pod_namespace, found->second->pod};
  }
  names_ = std::move(names);
}

const Checkpoint* MergedHolders::stored(SteadyTime now) {
  if (stored_ && !stored_hangs_ && stored_->version == checkpoint_.version()) {
    stored_at_ = now;
    return &*stored_;
  }
  auto read = checkpoint_.read();
  stored_hangs_ = !read && read.error().code == ErrorCode::deadline_exceeded;
  if (read) {
    if (!error_.empty()) spdlog::info("checkpoint readable again");
    error_.clear();
    stored_ = *std::move(read);
    stored_at_ = now;
    return &*stored_;
  }
  if (!stored_hangs_) stored_.reset();
  if (read.error().code != ErrorCode::not_found && read.error().message != error_) {
    spdlog::warn("checkpoint not readable: {}", read.error().message);
    error_ = read.error().message;
  }
  return stored_ ? &*stored_ : nullptr;
}

std::optional<ShownAllocations> MergedHolders::merged(SteadyTime now) {
  const Checkpoint* const stored = this->stored(now);
  unlisted_.clear();
  if (stored != nullptr) {
    source_ = listed_ ? Source::list_and_checkpoint : Source::checkpoint;
  } else {
    source_ = listed_ && list_is_whole() ? Source::list : Source::nothing;
  }
  if (source_ == Source::nothing) return std::nullopt;
  ShownAllocations all;
  if (listed_) all.listed = *listed_;
  all.claims = claims_.held();
  // The checkpoint says nothing of a container that is being admitted.
  all.asked_at = listed_ ? asked_at_ : now - kMaxAdmission;
  all.stored_version = stored != nullptr ? stored->version : checkpoint_.version();
  if (stored == nullptr) return all;
  all.written_at = std::min(stored->written_at, now);
  if (stored_hangs_) all.asked_at = std::min(all.asked_at, stored_at_);  // it lacks later holders
  all.numbering = stored->numbering;
  std::set<std::pair<std::string, std::string>> shown;  // (resource, id)
  for (const auto& one : all.listed) {
    for (const std::string& id : one.ids) shown.insert({one.resource_name, id});
  }
  for (model::Allocation entry : stored->allocations) {
    std::erase_if(entry.ids, [&](const std::string& id) { return shown.contains({entry.resource_name, id}); });
    if (entry.ids.empty()) continue;
    std::string key = model::holder_of(entry) + " " + entry.resource_name;
    for (const std::string& id : entry.ids) key += " " + id;
    unlisted_.insert(std::move(key));
    if (const auto name = names_.find(entry.pod_uid); name != names_.end()) {
      std::tie(entry.pod_namespace, entry.pod) = name->second;
    }
    all.stored.push_back(std::move(entry));
  }
  return all;
}

bool MergedHolders::wants_fresh_checkpoint(SteadyTime now) {
  constexpr int kMost = 2;
  std::erase_if(asked_about_, [&](const auto& asked) { return !unlisted_.contains(asked.first); });
  if (unlisted_.empty()) return false;
  bool wanted = now >= wanted_at_ + interval_;
  if (listed_) {
    for (const std::string& entry : unlisted_) {
      int& times = asked_about_[entry];
      wanted = wanted || times < kMost;
      ++times;
    }
  }
  if (wanted) wanted_at_ = now;
  return wanted;
}

void HolderWatch::ask(SteadyTime asked_at) {
  parts_.admissions.asking_holders();
  if (asking_) return;
  asking_ = true;
  parts_.allocations.list_asked();
  parts_.kubelet.ask_holders(asked_at);
}

void HolderWatch::listed(const HoldersListed& event) {
  asking_ = false;
  parts_.allocations.list_ended(event.answer ? Allocations::ListEnd::answered : Allocations::ListEnd::failed);
  if (event.answer) {
    holders_.set_listed(*event.answer, event.asked_at);
    if (claims_expected_) error_ = "the kubelet has a record of prepared claims, but lists none";
    if (!holders_.list_is_whole()) error_ = "the kubelet's list lacks this pod, so it is incomplete";
  } else {
    holders_.list_failed();
    error_ = event.answer.error().message;
  }
  learn(event);
  if (!known_) return parts_.admissions.want_holders(kAskAfterFailure);
  apply();
  if (holders_.wants_fresh_checkpoint(parts_.clock.now()) || parts_.allocations.needs_newer_checkpoint()) {
    parts_.admissions.want_checkpoint();
  }
  if (!event.answer) {
    parts_.admissions.want_holders(ask_again_after_failure());
  } else if (parts_.allocations.holds_anything()) {
    parts_.admissions.want_holders(ask_interval());
  } else if (!holders_.list_is_whole()) {
    parts_.admissions.want_holders(kAskAfterFailure);
  } else if (claims_expected_) {
    parts_.admissions.want_holders(interval_);
  }
}

// Whether the claims that are expected are there: two answers some time apart show the same ones, so that a kubelet
// that takes its pods up one by one has come to an end.
bool HolderWatch::claims_are_listed(SteadyTime asked_at) {
  auto claims = holders_.claimed();
  if (!claims_since_ || claims != claims_seen_) {
    claims_seen_ = std::move(claims);
    claims_since_ = asked_at;
  }
  return !claims_seen_.empty() && asked_at >= *claims_since_ + holdings::ListedHolders::kApartBlind;
}

// Whether lists can be made by the answer, or because answers have failed for long enough.
void HolderWatch::learn(const HoldersListed& event) {
  failures_ = event.answer ? 0 : failures_ + 1;
  const bool counts = event.answer && holders_.list_is_whole();
  if (counts && claims_expected_) claims_expected_ = !claims_are_listed(event.asked_at);
  if (known_) return;
  known_ = counts && !claims_expected_;
  const SteadyTime now = parts_.clock.now();
  if (known_ || parts_.kubelet.kubelet() == 0) return unknown_since_.reset();
  if (!unknown_since_) unknown_since_ = now;
  const milliseconds patience = claims_expected_ ? kClaimsPatience : kFirstAnswerPatience;
  if (now < *unknown_since_ + patience) return;
  known_ = true;
  spdlog::warn("claim holders unknown, offering devices anyway waited_s={}: {}", patience / std::chrono::seconds{1},
               error_);
}

// A known holder may have ended; otherwise the question is about claims from before, which become ever less likely.
milliseconds HolderWatch::ask_again_after_failure() const {
  if (parts_.allocations.holds_anything()) return kAskAfterFailure;
  constexpr int kMostDoublings = 10;
  return std::min(kAskAfterFailure * (1 << std::min(failures_, kMostDoublings)), std::max(kAskAfterFailure, interval_));
}

milliseconds HolderWatch::ask_interval() const {
  const auto& all = model::kAllResources;
  const bool withheld = std::any_of(
      all.begin(), all.end(), [this](model::Resource resource) { return parts_.allocations.withholds(resource); });
  const bool soon = withheld || parts_.allocations.needs_newer_checkpoint();
  return soon ? std::min(kAskWhileWithheld, interval_) : interval_;
}

void HolderWatch::log_source() {
  using Source = MergedHolders::Source;
  const Source source = holders_.source();
  if (logged_source_ == source) return;
  const bool was_without_list = logged_source_ == Source::checkpoint || logged_source_ == Source::nothing;
  if (source == Source::checkpoint) {
    spdlog::warn("PodResources failing, using the checkpoint only: {}", error_);
  } else if (source == Source::nothing) {
    spdlog::warn("PodResources and checkpoint failing, keeping the last known holders: {}", error_);
  } else if (was_without_list) {
    spdlog::info("PodResources answering again");
  }
  logged_source_ = source;
}

void HolderWatch::apply() {
  if (!known_) return;
  const auto shown = holders_.merged(parts_.clock.now());
  log_source();
  if (!shown) return;
  parts_.allocations.reconcile(*shown);
  if (const auto* written = holders_.written()) {
    parts_.allocations.confirm(written->allocations, written->version, written->written_at);
  }
  // Holders are checked from time to time, whatever their source, and sooner once their hardware is withheld from
  // another name.
  if (parts_.allocations.holds_anything() && !asking_) parts_.admissions.want_holders_by(ask_interval());
  parts_.admissions.want_lists();
}

}  // namespace neuron::plugin
