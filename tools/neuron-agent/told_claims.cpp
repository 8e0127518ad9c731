#include "tools/neuron-agent/told_claims.h"

#include "agent/base/error.h"

namespace neuron::agent {
namespace {

// Why a claim is refused, for those who count.
std::string_view word_for(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::permission_denied:
      return "permission_denied";
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::failed_precondition:
      return "failed_precondition";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::data_corrupt:
      return "data_corrupt";
    case ErrorCode::deadline_exceeded:
      return "deadline_exceeded";
    case ErrorCode::internal:
      break;
  }
  return "internal";
}

}  // namespace

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
      "NodePrepareResources", [&] { return claims_.prepare(claims, stop); },
      [](const auto& one) { return !one.second.error.empty(); });
  for (const auto& [uid, answer] : answers) {
    if (answer.error.empty()) figures_.gave(driver_);
    if (!answer.error.empty()) figures_.refused(answer.why ? word_for(*answer.why) : "other");
  }
  return answers;
}

std::map<std::string, std::string> ToldClaims::unprepare(const std::vector<plugin::dra::ClaimRef>& claims) {
  return told(
      "NodeUnprepareResources", [&] { return claims_.unprepare(claims); },
      [](const auto& one) { return !one.second.empty(); });
}

}  // namespace neuron::agent
