#include "plugin/dra/serve/reporting.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "plugin/dra/claim/claim_upkeep.h"

namespace neuron::plugin::dra {
namespace {

using holdings::Holding;

constexpr std::string_view kPrepare = "NodePrepareResources";
constexpr std::string_view kUnprepare = "NodeUnprepareResources";

// Names of containers; one "" where none is listed.
std::vector<std::string> users_of(const ClaimRecord& claim, const std::vector<model::Allocation>& listed,
                                  ClaimUsers users) {
  std::vector<std::string> names;
  for (const model::Allocation& one : listed) {
    if (!is_of(one, claim)) continue;
    names.push_back(model::holder_name(one));
    if (users == ClaimUsers::first) break;
  }
  return names.empty() ? std::vector<std::string>{""} : names;
}

std::string slices_line(const PublishState& state, bool nothing_to_publish) {
  if (nothing_to_publish && state.published) return "slices: nothing to publish on this node\n";
  std::string line = state.published ? fmt::format("slices: {} with {} devices", state.slices, state.devices)
                                     : std::string("slices: not published yet");
  if (!state.error.empty()) line += ": " + state.error;
  return line + "\n";
}

}  // namespace

metrics::Readiness assess_readiness(const std::string& driver, const DriverState& state, const PublishState& slices,
                                    bool nothing_to_publish) {
  const std::string problem = state.problem.empty() ? "waiting for the kubelet" : state.problem;
  return {state.registered && slices.published,
          fmt::format("driver {}: {}\n", driver, state.registered ? "registered" : problem) +
              slices_line(slices, nothing_to_publish)};
}

CountedClaims::CountedClaims(ClaimCalls& claims, NodeBoard& board, CallFigures& figures, std::string driver,
                             std::function<void()> prepared)
    : claims_(claims), board_(board), figures_(figures), driver_(std::move(driver)), prepared_(std::move(prepared)) {}

CallFigures::Names CountedClaims::counted_names(const std::string& driver) {
  return {{kPrepare, kUnprepare}, {kRefusalReasons.begin(), kRefusalReasons.end()}, {driver}};
}

template <typename Ask, typename Failed>
auto CountedClaims::counted(std::string_view method, const Ask& ask, const Failed& failed) {
  const auto begun = std::chrono::steady_clock::now();
  ++running_;
  auto answers = ask();
  board_.held_changed();
  const bool any_failed = std::ranges::any_of(answers, failed);
  figures_.called(method, std::chrono::steady_clock::now() - begun,
                  any_failed ? CallFigures::Outcome::failed : CallFigures::Outcome::answered);
  called_ = true;
  --running_;
  return answers;
}

std::map<std::string, PrepareAnswer> CountedClaims::prepare(const std::vector<ClaimRef>& claims,
                                                            const std::stop_token& stop) {
  auto answers = counted(
      kPrepare, [&] { return claims_.prepare(claims, stop); },
      [](const auto& one) { return !one.second.error.empty(); });
  if (prepared_) prepared_();
  for (const auto& [uid, answer] : answers) {
    if (answer.error.empty()) figures_.gave(driver_);
    if (!answer.error.empty()) figures_.refused(answer.reason);
  }
  return answers;
}

std::map<std::string, std::string> CountedClaims::unprepare(const std::vector<ClaimRef>& claims) {
  return counted(
      kUnprepare, [&] { return claims_.unprepare(claims); }, [](const auto& one) { return !one.second.empty(); });
}

Result<std::vector<model::Allocation>> ListedClaims::seen(Result<std::vector<model::Allocation>> listed) {
  if (!listed) return listed;
  std::vector<model::Allocation> claims;
  std::copy_if(listed->begin(), listed->end(), std::back_inserter(claims),
               [](const model::Allocation& one) { return !one.claim.empty(); });
  const MutexLock lock(mutex_);
  claims_.swap(claims);
  return listed;
}

std::vector<model::Allocation> ListedClaims::claims() const {
  const MutexLock lock(mutex_);
  return claims_;
}

std::vector<Holding> holdings_of(const grant::NodeUnits& node, const ClaimRecords& claims,
                                 const PluginHolders& plugin_holders, const std::vector<model::Allocation>& listed,
                                 ClaimUsers users) {
  std::vector<Holding> all;
  for (const auto& [uid, claim] : claims) {
    Holding holder;
    holder.resource = model::Resource::neuroncore;
    holder.holder = claim->shown();
    holder.claim = claim->name.empty() ? uid : claim->name;
    holder.claim_namespace = claim->claim_namespace;
    for (const std::string& user : users_of(*claim, listed, users)) {
      holder.shown_as = user;
      std::ranges::move(plugin::holdings_of(node, claim->held(), holder), std::back_inserter(all));
    }
  }
  for (const PluginHolder& one : plugin_holders) {
    const auto resource = model::parse_resource(one.resource);
    if (!resource) continue;
    Holding holder;
    holder.resource = *resource;
    holder.holder = holder.shown_as = one.container;
    std::ranges::move(plugin::holdings_of(node, one.hardware, holder), std::back_inserter(all));
  }
  return all;
}

}  // namespace neuron::plugin::dra
