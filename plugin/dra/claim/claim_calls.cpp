#include "plugin/dra/claim/claim_calls.h"

#include <algorithm>
#include <string_view>

#include "agent/base/parse.h"

namespace neuron::plugin::dra {
namespace {

// RFC 1123, as for namespaces and claims.
bool is_name(std::string_view text, std::size_t most_bytes) {
  const auto in_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  return !text.empty() && text.size() <= most_bytes && std::all_of(text.begin(), text.end(), in_name) &&
         text.front() != '.' && text.front() != '-';
}

bool is_uid(std::string_view text) {
  constexpr std::size_t kMostBytes = 64;  // the API server gives 36
  const auto in_uid = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !text.empty() && text.size() <= kMostBytes && std::all_of(text.begin(), text.end(), in_uid);
}

// Splits what may be asked from what is refused; a uid that comes twice is asked once.
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

Result<void> check_claim(const ClaimRef& claim) {
  constexpr std::size_t kMostNamespace = 63;
  constexpr std::size_t kMostName = 253;
  const auto refuse = [](const char* what, const std::string& text) {
    return fail(ErrorCode::invalid_argument,
                std::string(what) + " \"" + printable(text) + "\" is not a valid Kubernetes identifier");
  };
  if (!is_uid(claim.uid)) return refuse("uid of a claim", claim.uid);
  if (!is_name(claim.claim_namespace, kMostNamespace)) return refuse("namespace of a claim", claim.claim_namespace);
  if (!is_name(claim.name, kMostName)) return refuse("name of a claim", claim.name);
  return {};
}

Result<std::map<std::string, PrepareAnswer>> prepare_all(ClaimPort& port, const std::vector<ClaimRef>& claims,
                                                         const std::stop_token& stop) {
  std::map<std::string, PrepareAnswer> answers;
  TRY_ASSIGN(const auto asked, to_ask(claims, answers, [](std::string why) {
               return PrepareAnswer{{}, std::move(why)};
             }));
  if (!asked.empty()) take_over(answers, port.prepare(asked, stop));
  return answers;
}

Result<std::map<std::string, std::string>> unprepare_all(ClaimPort& port, const std::vector<ClaimRef>& claims) {
  std::map<std::string, std::string> answers;
  TRY_ASSIGN(const auto asked, to_ask(claims, answers, [](std::string why) { return why; }));
  if (!asked.empty()) take_over(answers, port.unprepare(asked));
  return answers;
}

}  // namespace neuron::plugin::dra
