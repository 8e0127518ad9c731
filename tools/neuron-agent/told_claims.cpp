#include "tools/neuron-agent/told_claims.h"

#include <array>
#include <optional>

#include "agent/base/result.h"

namespace neuron::agent {
namespace {

constexpr std::string_view kPrepare = "NodePrepareResources";
constexpr std::string_view kUnprepare = "NodeUnprepareResources";

// The reason of a refused claim, as it is counted.
constexpr std::array kReasons = {
    std::pair{ErrorCode::not_found, std::string_view("not_found")},
    std::pair{ErrorCode::permission_denied, std::string_view("permission_denied")},
    std::pair{ErrorCode::invalid_argument, std::string_view("invalid_argument")},
    std::pair{ErrorCode::failed_precondition, std::string_view("failed_precondition")},
    std::pair{ErrorCode::unavailable, std::string_view("unavailable")},
    std::pair{ErrorCode::data_corrupt, std::string_view("data_corrupt")},
    std::pair{ErrorCode::deadline_exceeded, std::string_view("deadline_exceeded")},
    std::pair{ErrorCode::internal, std::string_view("internal")},
};
constexpr std::string_view kNoCode = "other";

std::string_view reason_of(std::optional<ErrorCode> code) {
  const auto* const found =
      std::find_if(kReasons.begin(), kReasons.end(), [&](const auto& one) { return one.first == code; });
  return found == kReasons.end() ? kNoCode : found->second;
}

}  // namespace

plugin::CallFigures::Names ToldClaims::counted_names(const std::string& driver) {
  plugin::CallFigures::Names names{{kPrepare, kUnprepare}, {kNoCode}, {driver}};
  for (const auto& [code, reason] : kReasons) names.refusals.push_back(reason);
  return names;
}

template <typename Ask, typename Failed>
auto ToldClaims::told(std::string_view method, const Ask& ask, const Failed& failed) {
  const auto asked_at = std::chrono::steady_clock::now();
  ++running_;
  auto answers = ask();
  board_.held_changed();
  const bool any_failed = std::any_of(answers.begin(), answers.end(), failed);
  figures_.called(method, std::chrono::steady_clock::now() - asked_at,
                  any_failed ? plugin::CallFigures::Outcome::failed : plugin::CallFigures::Outcome::answered);
  called_ = true;
  --running_;
  return answers;
}

std::map<std::string, plugin::dra::PrepareAnswer> ToldClaims::prepare(const std::vector<plugin::dra::ClaimRef>& claims,
                                                                      const std::stop_token& stop) {
  auto answers = told(
      kPrepare, [&] { return claims_.prepare(claims, stop); },
      [](const auto& one) { return !one.second.error.empty(); });
  for (const auto& [uid, answer] : answers) {
    if (answer.error.empty()) figures_.gave(driver_);
    if (!answer.error.empty()) figures_.refused(reason_of(answer.why));
  }
  return answers;
}

std::map<std::string, std::string> ToldClaims::unprepare(const std::vector<plugin::dra::ClaimRef>& claims) {
  return told(
      kUnprepare, [&] { return claims_.unprepare(claims); }, [](const auto& one) { return !one.second.empty(); });
}

}  // namespace neuron::agent
