#include "agent/kube/api.h"

#include <cctype>
#include <nlohmann/json.hpp>

#include "agent/base/parse.h"

namespace neuron::kube {
namespace {

// The field `message` of the Status object that the API server sends with an error; "" where there is none.
std::string words_of(const std::string& body) {
  const auto status = nlohmann::json::parse(body, nullptr, false);
  if (!status.is_object() || !status.contains("message") || !status["message"].is_string()) return "";
  return ": " + printable(status["message"].get_ref<const std::string&>(), 300);
}

std::string_view word_of(Method method) {
  switch (method) {
    case Method::get:
      return "GET ";
    case Method::create:
      return "POST ";
    case Method::replace:
      return "PUT ";
    case Method::merge_patch:
    case Method::apply:
      return "PATCH ";
    case Method::remove:
      return "DELETE ";
  }
  return "";
}

ErrorCode code_of(int status) {
  if (status == 401 || status == 403) return ErrorCode::permission_denied;
  if (status == 404 || status == 410) return ErrorCode::not_found;
  if (status == 400 || status == 415 || status == 422) return ErrorCode::invalid_argument;
  if (status == 409 || (status >= 300 && status < 400)) return ErrorCode::failed_precondition;
  if (status == 429 || (status >= 500 && status < 600)) return ErrorCode::unavailable;
  return ErrorCode::data_corrupt;
}

std::string_view advice_for(int status) {
  if (status == 401) return " (the token of the service account is not accepted)";
  if (status == 403) return " (the service account needs a role that allows it)";
  if (status >= 300 && status < 400) return ", which is not followed";
  return "";
}

}  // namespace

Error status_error(const ApiReply& reply, std::string_view what) {
  std::string said = printable(what, 600) + " answers " + std::to_string(reply.status) + words_of(reply.body);
  return make_error(code_of(reply.status), said.append(advice_for(reply.status)));
}

Result<std::string> body_of(ApiReply reply, const ApiCall& call) {
  if (reply.status >= 200 && reply.status < 300) return std::move(reply.body);
  return fail(status_error(reply, std::string(word_of(call.method)) + call.path));
}

std::string percent_encoded(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_plain =
        byte < 0x80 && (std::isalnum(byte) != 0 || std::string_view("-._~").find(letter) != std::string_view::npos);
    if (is_plain) {
      out += letter;
    } else {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      out += '%';
      out += kDigits[byte >> 4U];
      out += kDigits[byte & 15U];
    }
  }
  return out;
}

}  // namespace neuron::kube
