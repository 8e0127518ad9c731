#include "agent/kube/api_get.h"

#include "agent/kube/api.h"

namespace neuron::kube {

Result<std::string> api_get(const ClusterAccess& access, const std::string& path, const std::string& accept,
                            const GetLimits& limits) {
  HttpRequest request;
  request.target = path;
  request.accept = accept;
  Connection connection;
  HttpLimits http;
  http.deadline = limits.deadline;
  http.max_bytes = limits.max_bytes;
  TRY_ASSIGN(HttpAnswer answer, connection.call(access, request, http, {}));
  if (answer.status == 200) return std::move(answer.body);
  return fail(status_error({answer.status, std::move(answer.body)}, access.url + path));
}

}  // namespace neuron::kube
