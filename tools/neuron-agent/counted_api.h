#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "agent/kube/api.h"

namespace neuron::agent {

// Counts what is asked of the API server and how it went, watches by their ends. Thread-safe; threads and time as
// `api`, which must outlive it.
class CountedApi final : public kube::Api {
 public:
  explicit CountedApi(kube::Api& api) : api_(api) {}

  [[nodiscard]] Result<kube::ApiReply> call(const kube::ApiCall& call) override;
  [[nodiscard]] Result<kube::ApiReply> stream(const kube::ApiCall& call, const OnLine& on_line,
                                              const std::stop_token& stop) override;

  // "ok": the server did what was asked. "error": it refused, or did not answer.
  [[nodiscard]] std::map<std::string, std::uint64_t> counts() const;

 private:
  Result<kube::ApiReply> counted(Result<kube::ApiReply> reply);

  kube::Api& api_;
  std::atomic<std::uint64_t> ok_ = 0;
  std::atomic<std::uint64_t> errors_ = 0;
};

}  // namespace neuron::agent
