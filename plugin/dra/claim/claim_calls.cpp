#include "plugin/dra/claim/claim_calls.h"

#include <algorithm>

#include "agent/base/parse.h"

namespace neuron::plugin::dra {
namespace {

bool is_lower_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

Result<void> check_claim(const ClaimRef& claim) {
  constexpr std::size_t kMaxNamespace = 63;
  const auto refuse = [](const char* what, const std::string& text) {
    return fail(ErrorCode::invalid_argument,
                std::string(what) + " \"" + printable(text) + "\" is not a valid Kubernetes identifier");
  };
  if (!is_object_uid(claim.uid)) return refuse("uid of a claim", claim.uid);
  if (!is_object_name(claim.claim_namespace, kMaxNamespace)) {
    return refuse("namespace of a claim", claim.claim_namespace);
  }
  if (!is_object_name(claim.name)) return refuse("name of a claim", claim.name);
  return {};
}

// The claims to ask for, each uid once. `answers` gets an error for every claim, which an answer replaces.
template <typename Answer, typename Refuse>
Result<std::vector<ClaimRef>> to_ask(const std::vector<ClaimRef>& claims, std::map<std::string, Answer>& answers,
                                     const Refuse& refuse) {
  if (claims.size() > kMostClaims) {
    return fail(ErrorCode::invalid_argument, "more than " + std::to_string(kMostClaims) + " claims in one call");
  }
  std::vector<ClaimRef> asked;
  for (const ClaimRef& claim : claims) {
    if (answers.contains(claim.uid)) continue;
    const auto checked = check_claim(claim);
    answers[claim.uid] =
        refuse(checked ? "the driver did not answer for this claim; try again" : checked.error().message);
    if (checked) asked.push_back(claim);
  }
  return asked;
}

template <typename Answer>
void take_over(std::map<std::string, Answer>& answers, std::map<std::string, Answer> given) {
  for (auto& [uid, answer] : given) {
    const auto asked = answers.find(uid);
    if (asked != answers.end()) asked->second = std::move(answer);
  }
}

}  // namespace

bool is_object_name(std::string_view text, std::size_t max_bytes) {
  return !text.empty() && text.size() <= max_bytes && text.front() != '.' && text.front() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) { return is_lower_or_digit(c) || c == '-' || c == '.'; });
}

bool is_object_uid(std::string_view text) {
  constexpr std::size_t kMaxBytes = 64;  // the API server gives 36
  return !text.empty() && text.size() <= kMaxBytes && std::all_of(text.begin(), text.end(), [](char c) {
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '-';
  });
}

Result<std::map<std::string, PrepareAnswer>> prepare_all(ClaimCalls& calls, const std::vector<ClaimRef>& claims,
                                                         const std::stop_token& stop) {
  std::map<std::string, PrepareAnswer> answers;
  TRY_ASSIGN(const auto asked, to_ask(claims, answers, [](std::string why) {
               return PrepareAnswer{{}, std::move(why)};
             }));
  if (!asked.empty()) take_over(answers, calls.prepare(asked, stop));
  return answers;
}

Result<std::map<std::string, std::string>> unprepare_all(ClaimCalls& calls, const std::vector<ClaimRef>& claims) {
  std::map<std::string, std::string> answers;
  TRY_ASSIGN(const auto asked, to_ask(claims, answers, [](std::string why) { return why; }));
  if (!asked.empty()) take_over(answers, calls.unprepare(asked));
  return answers;
}

}  // namespace neuron::plugin::dra
