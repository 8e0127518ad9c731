#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "agent/base/result.h"

// Calls to the API server without their transport: agent/kube/api_client.h is the real one, test/fakes/fake_api.h a
// server in memory.
namespace neuron::kube {

enum class Method { get, create, replace, merge_patch, apply, remove };

[[nodiscard]] const char* verb_of(Method method);  // GET, POST, PUT, PATCH, PATCH, DELETE

struct ApiCall {
  Method method = Method::get;
  std::string path;      // "/apis/resource.k8s.io/v1/resourceslices/n1-x", parts percent-encoded where needed
  std::string query{};   // "fieldSelector=spec.nodeName%3Dn1", encoded; "" = none. `apply` needs fieldManager
  std::string body{};    // JSON; "" = none
  std::string accept{};  // media type; "" = application/json
};

// Asks for the metadata of an object alone; a Node with its list of images may be large.
inline constexpr const char* kMetadataOnly = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

// The server's answer, also with a status of 400 and more.
struct ApiReply {
  int status = 0;    // HTTP
  std::string body;  // JSON text, foreign; of an error a Status object
};

// The body of a 2xx, else status_error() with the method and path of the call. Pure.
[[nodiscard]] Result<std::string> body_of(ApiReply reply, const ApiCall& call);

// Meaning of a status other than 2xx: permission_denied (401, 403; denied by admission, as a 422 without a field),
// not_found (404 that names an object, 410), failed_precondition (409: exists or has changed; 3xx), invalid_argument
// (422 with a field, 400, 415), unavailable (429, 5xx; other 404: the path is not served), data_corrupt (others).
// `what` begins the message: "GET /api/v1/nodes/n1". Pure.
[[nodiscard]] Error status_error(const ApiReply& reply, std::string_view what);

// `text` for a part of a path or the value of a query: all but letters, digits, '-', '.', '_' and '~' as %XX. Pure.
[[nodiscard]] std::string percent_encoded(std::string_view text);

class Api {
 public:
  virtual ~Api() = default;

  // One call, bounded in time and size. Errors, each with the URL and what to do, when no answer came: unavailable,
  // deadline_exceeded, failed_precondition (the server is not trusted, or there is no token), data_corrupt (too long,
  // no HTTP), invalid_argument (malformed path), internal. After unavailable and deadline_exceeded the server may
  // have executed the call. Any thread; blocks up to its deadline (twice after a 401), and for the rate limit.
  [[nodiscard]] virtual Result<ApiReply> call(const ApiCall& call) = 0;

  // A GET whose answer does not end: `on_line` receives each line ("{…}" of a watch) on the calling thread, until it
  // returns false, `stop` is requested, the server ends the answer or sends nothing for a while. The reply has the
  // status (200 where it was stopped before one came); its body is empty unless it is an error. A line longer than
  // the client's bound is data_corrupt; a connection that breaks is unavailable, after the lines that came.
  // `on_line` may make calls of its own.
  using OnLine = std::function<bool(std::string_view line)>;
  [[nodiscard]] virtual Result<ApiReply> stream(const ApiCall& call, const OnLine& on_line,
                                                const std::stop_token& stop) = 0;
};

// A node's name: parts of lower case letters, digits and '-', joined by '.', each beginning and ending with a letter or
// digit; at most 253 bytes (RFC 1123). Errors: invalid_argument, with this rule. Pure.
[[nodiscard]] Result<void> check_node_name(std::string_view name);

// A label's key: "name" or "prefix/name"; the prefix is as a node's name, the name has 1 to 63 letters, digits, '-',
// '_' and '.', and begins and ends with a letter or digit. Errors: invalid_argument, with this rule. Pure.
[[nodiscard]] Result<void> check_label_key(std::string_view key);

}  // namespace neuron::kube
