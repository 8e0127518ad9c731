#include "agent/kube/api.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <string>

#include "agent/base/parse.h"
#include "agent/kube/answers.h"

namespace neuron::kube {
namespace {

// The Status object of an API server's error (foreign text).
struct Status {
  std::string message;  // "" where there is none
  bool names_field = false;
  bool has_causes = false;
  bool names_object = false;
};

Status status_of(const std::string& body) {
  Status status;
  const auto object = nlohmann::json::parse(body, nullptr, false);
  if (!object.is_object()) return status;
  status.message = text_of(object, {"message"});
  status.names_object = !text_of(object, {"details", "name"}).empty();
  const nlohmann::json* causes = member_of(object, {"details", "causes"});
  if (causes == nullptr || !causes->is_array()) return status;
  status.has_causes = !causes->empty();
  status.names_field =
      std::ranges::any_of(*causes, [](const nlohmann::json& cause) { return !text_of(cause, {"field"}).empty(); });
  return status;
}

// A ValidatingAdmissionPolicy answers 422 or 403 with a cause without a field, unlike validation and roles; a webhook's
// own text follows a fixed prefix (docs/reference/dra.md#refusals).
bool is_denied_by_admission(int code, const Status& status) {
  constexpr std::string_view kWebhook = "admission webhook \"", kDenied = "\" denied the request";
  const std::size_t at = status.message.find(kWebhook);
  if (at != std::string::npos && status.message.find(kDenied, at) != std::string::npos) return true;
  if (code == 422) return !status.names_field;
  return code == 403 && status.has_causes && !status.names_field;
}

// A server that does not serve a path, such as one of an API version that it lacks, answers 404 too, without the name
// of an object: that says nothing about the object.
ErrorCode code_of(int status, bool names_object) {
  if (status == 401 || status == 403) return ErrorCode::permission_denied;
  if (status == 404) return names_object ? ErrorCode::not_found : ErrorCode::unavailable;
  if (status == 410) return ErrorCode::not_found;
  if (status == 400 || status == 415 || status == 422) return ErrorCode::invalid_argument;
  if (status == 409 || (status >= 300 && status < 400)) return ErrorCode::failed_precondition;
  if (status == 429 || (status >= 500 && status < 600)) return ErrorCode::unavailable;
  return ErrorCode::data_corrupt;
}

std::string_view advice_for(int status, bool is_denied) {
  if (is_denied) return " (denied by an admission policy or webhook)";
  if (status == 401) return " (the token of the service account is not accepted)";
  if (status == 403) return " (the service account needs a role that allows it)";
  if (status >= 300 && status < 400) return ", which is not followed";
  return "";
}

}  // namespace

const char* verb_of(Method method) {
  switch (method) {
    case Method::get:
      return "GET";
    case Method::create:
      return "POST";
    case Method::replace:
      return "PUT";
    case Method::merge_patch:
    case Method::apply:
      return "PATCH";
    case Method::remove:
      return "DELETE";
  }
  return "";
}

Error status_error(const ApiReply& reply, std::string_view what) {
  const Status status = status_of(reply.body);
  const bool is_denied = is_denied_by_admission(reply.status, status);
  std::string message = printable(what, 600) + " answers " + std::to_string(reply.status);
  if (!status.message.empty()) message += ": " + printable(status.message, 300);
  return make_error(is_denied ? ErrorCode::permission_denied : code_of(reply.status, status.names_object),
                    message.append(advice_for(reply.status, is_denied)));
}

Result<std::string> body_of(ApiReply reply, const ApiCall& call) {
  if (reply.status >= 200 && reply.status < 300) return std::move(reply.body);
  return fail(status_error(reply, std::string(verb_of(call.method)) + " " + call.path));
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

Result<void> check_node_name(std::string_view name) {
  if (is_dns_subdomain(name)) return {};
  return fail(ErrorCode::invalid_argument, "\"" + printable(name, 64) +
                                               "\" is not a node name, which has lower case letters, digits, '-' and "
                                               "'.' as `kubectl get nodes` shows it; in a pod, use spec.nodeName");
}

Result<void> check_label_key(std::string_view key) {
  const auto slash = key.find('/');
  const bool prefixed = slash != std::string_view::npos;
  if ((!prefixed || is_dns_subdomain(key.substr(0, slash))) &&
      is_qualified_part(prefixed ? key.substr(slash + 1) : key)) {
    return {};
  }
  return fail(ErrorCode::invalid_argument, "\"" + printable(key, 64) +
                                               "\" is not a label key: up to 63 letters, digits, '-', '_' and '.', "
                                               "optionally after a domain and '/', as in neuron-agent/simulate");
}

}  // namespace neuron::kube
