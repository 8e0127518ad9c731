#include "tools/neuron-agent/counted_api.h"

#include <utility>

namespace neuron::agent {

Result<kube::ApiReply> CountedApi::counted(Result<kube::ApiReply> reply) {
  constexpr int kFirstError = 400;
  const bool ok = reply && reply->status < kFirstError;
  ++(ok ? ok_ : errors_);
  return reply;
}

Result<kube::ApiReply> CountedApi::call(const kube::ApiCall& call) {
  return counted(api_.call(call));
}

Result<kube::ApiReply> CountedApi::stream(const kube::ApiCall& call, const OnLine& on_line,
                                          const std::stop_token& stop) {
  return counted(api_.stream(call, on_line, stop));
}

std::map<std::string, std::uint64_t> CountedApi::counts() const {
  return {{"ok", ok_.load()}, {"error", errors_.load()}};
}

}  // namespace neuron::agent
