#include "agent/kube/api_get.h"

#include <curl/curl.h>

#include <array>
#include <memory>
#include <nlohmann/json.hpp>

#include "agent/base/parse.h"
#include "neuron_version.h"

namespace neuron::kube {
namespace {

constexpr std::size_t kMaxHeaders = std::size_t{64} << 10U;  // libcurl bounds each line, not their sum

struct Answer {
  std::string body;
  std::size_t max_bytes = 0;
  std::size_t header_bytes = 0;
  bool is_too_long = false;
};

// Returning another number than was offered ends the transfer.
std::size_t take_body(char* data, std::size_t /*always 1*/, std::size_t count, void* user) {
  auto& answer = *static_cast<Answer*>(user);
  answer.is_too_long = answer.is_too_long || count > answer.max_bytes - answer.body.size();
  if (answer.is_too_long) return 0;
  answer.body.append(data, count);
  return count;
}

std::size_t take_header(char* /*data*/, std::size_t /*always 1*/, std::size_t count, void* user) {
  auto& answer = *static_cast<Answer*>(user);
  answer.header_bytes += count;
  answer.is_too_long = answer.is_too_long || answer.header_bytes > kMaxHeaders;
  return answer.is_too_long ? 0 : count;
}

struct FreeHandle {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};
using Handle = std::unique_ptr<CURL, FreeHandle>;
using Headers = std::unique_ptr<curl_slist, FreeList>;

bool is_library_ready() {
  static const bool ready = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
  return ready;
}

bool add(Headers& headers, const std::string& line) {
  curl_slist* longer = curl_slist_append(headers.get(), line.c_str());
  if (longer == nullptr) return false;
  std::ignore = headers.release();
  headers.reset(longer);
  return true;
}

// True when every option was taken.
template <typename... Values>
bool set(CURL* handle, CURLoption option, Values... value) {
  return curl_easy_setopt(handle, option, value...) == CURLE_OK;
}

bool trust_only(CURL* handle, const std::string& ca_pem) {
  curl_blob ca{};
  ca.data = const_cast<char*>(ca_pem.data());  // copied, not changed
  ca.len = ca_pem.size();
  ca.flags = CURL_BLOB_COPY;
  // Without the two nulls the system's own authorities would be trusted as well.
  return set(handle, CURLOPT_CAPATH, static_cast<char*>(nullptr)) &&
         set(handle, CURLOPT_CAINFO, static_cast<char*>(nullptr)) && set(handle, CURLOPT_CAINFO_BLOB, &ca) &&
         set(handle, CURLOPT_SSL_VERIFYPEER, 1L) && set(handle, CURLOPT_SSL_VERIFYHOST, 2L) &&
         set(handle, CURLOPT_SSLVERSION, long{CURL_SSLVERSION_TLSv1_2});
}

bool set_request(CURL* handle, const std::string& url, curl_slist* headers) {
  return set(handle, CURLOPT_URL, url.c_str()) && set(handle, CURLOPT_HTTPHEADER, headers) &&
         set(handle, CURLOPT_PROTOCOLS_STR, "https") && set(handle, CURLOPT_FOLLOWLOCATION, 0L) &&
         set(handle, CURLOPT_PROXY, "") &&  // not even one from the environment
         set(handle, CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1}) && set(handle, CURLOPT_HTTPGET, 1L) &&
         set(handle, CURLOPT_USERAGENT, (std::string("neuron-agent/") + kVersion).c_str());
}

bool set_limits(CURL* handle, const GetLimits& limits, Answer& answer) {
  // No signals: this is a library. Quick exit: a resolver that hangs is not waited for after the deadline.
  return set(handle, CURLOPT_TIMEOUT_MS, static_cast<long>(limits.deadline.count())) &&
         set(handle, CURLOPT_NOSIGNAL, 1L) && set(handle, CURLOPT_QUICK_EXIT, 1L) &&
         set(handle, CURLOPT_WRITEFUNCTION, take_body) && set(handle, CURLOPT_WRITEDATA, &answer) &&
         set(handle, CURLOPT_HEADERFUNCTION, take_header) && set(handle, CURLOPT_HEADERDATA, &answer);
}

ErrorCode code_of(CURLcode result) {
  switch (result) {
    case CURLE_OPERATION_TIMEDOUT:
      return ErrorCode::deadline_exceeded;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return ErrorCode::failed_precondition;
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_HTTP2:
      return ErrorCode::data_corrupt;
    case CURLE_OUT_OF_MEMORY:
    case CURLE_URL_MALFORMAT:
      return ErrorCode::internal;
    default:
      return ErrorCode::unavailable;
  }
}

Error transfer_error(CURLcode result, const std::string& url, const char* detail, const GetLimits& limits) {
  const std::string why = printable(*detail != '\0' ? detail : curl_easy_strerror(result), 200);
  switch (code_of(result)) {
    case ErrorCode::deadline_exceeded:
      return make_error(ErrorCode::deadline_exceeded,
                        url + " did not answer within " + std::to_string(limits.deadline.count()) + " ms");
    case ErrorCode::failed_precondition:
      return make_error(ErrorCode::failed_precondition,
                        url + " is not trusted, check the CA file of the service account volume: " + why);
    default:
      return make_error(code_of(result), url + ": " + why);
  }
}

// The field `message` of the Status object that the API server sends with an error; "" where there is none.
std::string words_of(const std::string& body) {
  const auto status = nlohmann::json::parse(body, nullptr, false);
  if (!status.is_object() || !status.contains("message") || !status["message"].is_string()) return "";
  return ": " + printable(status["message"].get<std::string>(), 300);
}

Error status_error(long status, const std::string& url, const std::string& body) {
  const std::string said = url + " answers " + std::to_string(status) + words_of(body);
  if (status == 401) {
    return make_error(ErrorCode::permission_denied, said + " (the token of the service account is not accepted)");
  }
  if (status == 403) {
    return make_error(ErrorCode::permission_denied, said + " (the service account needs a role that allows it)");
  }
  if (status == 404) return make_error(ErrorCode::not_found, said);
  if (status >= 300 && status < 400)
    return make_error(ErrorCode::failed_precondition, said + ", which is not followed");
  if (status == 429 || status >= 500) return make_error(ErrorCode::unavailable, said);
  return make_error(ErrorCode::data_corrupt, said);
}

}  // namespace

Result<std::string> api_get(const ClusterAccess& access, const std::string& path, const std::string& accept,
                            const GetLimits& limits) {
  const Handle handle(is_library_ready() ? curl_easy_init() : nullptr);
  const std::string url = access.url + path;
  Answer answer;
  answer.max_bytes = limits.max_bytes;
  Headers headers;
  std::array<char, CURL_ERROR_SIZE> detail{};
  const bool is_set =
      handle && add(headers, "Accept: " + accept) && add(headers, "Authorization: Bearer " + access.token) &&
      set(handle.get(), CURLOPT_ERRORBUFFER, detail.data()) && trust_only(handle.get(), access.ca_pem) &&
      set_request(handle.get(), url, headers.get()) && set_limits(handle.get(), limits, answer);
  if (!is_set) return fail(ErrorCode::internal, url + ": libcurl cannot be set up");
  const CURLcode result = curl_easy_perform(handle.get());
  if (answer.is_too_long) {
    return fail(ErrorCode::data_corrupt,
                url + " answers with more than " + std::to_string(limits.max_bytes) + " bytes, or endless headers");
  }
  if (result != CURLE_OK) return fail(transfer_error(result, url, detail.data(), limits));
  long status = 0;
  if (curl_easy_getinfo(handle.get(), CURLINFO_RESPONSE_CODE, &status) != CURLE_OK) status = 0;
  if (status != 200) return fail(status_error(status, url, answer.body));
  return std::move(answer.body);
}

}  // namespace neuron::kube
