#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include "agent/base/clock.h"
#include "agent/base/turn_loop.h"
#include "agent/grant/grant.h"
#include "agent/kube/api.h"
#include "agent/kube/limits.h"
#include "plugin/dra/claim/claim_record.h"

// status.devices of prepared claims (KEP-4817): what a claim has on its node, shown where its users may look.
namespace neuron::plugin::dra {

// A ResourceClaim for a server-side apply on its status: of each of the claim's devices that it is prepared, and data
// about it (docs/dra.md#status-of-claims). `node`: nullptr, and hardware that it lacks: without data. Pure.
[[nodiscard]] std::string claim_status_text(const ClaimRecord& record, std::string_view driver,
                                            const grant::NodeUnits* node, std::chrono::system_clock::time_point now);

// Writes it, once for each prepared claim: one PATCH, or at the start of the agent one GET, which shows whether an
// earlier instance did. Nothing waits for it, and no claim for one whose write is refused. The server removes what it
// wrote with the claim's allocation.
//
// changed() from any thread, never blocks; run() and turn() are one thread's.
class ClaimStatusWriter {
 public:
  struct Settings {
    std::string driver;
    std::function<std::chrono::system_clock::time_point()> wall = [] { return std::chrono::system_clock::now(); };
  };
  // Must not block.
  struct Ports {
    std::function<ClaimRecords()> records;        // completed claims
    std::function<grant::NodeUnitsPtr()> node{};  // of the newest scan; nullptr before the first
  };
  static constexpr std::chrono::milliseconds kFirstRetry{1000}, kLongestRetry{60'000};
  static constexpr std::chrono::minutes kRefusedRetry{5};  // 403 and other refusals: an administrator has to act

  // `api` and `clock` must outlive it.
  ClaimStatusWriter(Settings settings, Ports ports, kube::Api& api, const Clock& clock);

  void changed() { loop_.wake(); }  // the records may have

  // Until `stop` is requested and a call in flight has ended (ApiClient::close() ends it).
  void run(const std::stop_token& stop);

  // One step of run(): writes what is not written, until the server fails; the time until the next. For tests.
  [[nodiscard]] std::chrono::milliseconds turn();

 private:
  [[nodiscard]] Result<void> write(const ClaimRecord& record);
  [[nodiscard]] Result<bool> is_written(const ClaimRecord& record);
  [[nodiscard]] Result<std::string> call(const kube::ApiCall& call);
  void finish(const ClaimRecord& record, const Result<void>& written);

  // A refused write of a claim's status, which is retried when its own time has come.
  struct Refusal {
    std::string version{};  // the claim's resourceVersion then
    kube::Backoff backoff{kFirstRetry, kLongestRetry};
    SteadyTime not_before{};
    std::string error{};  // as logged last
  };

  const Settings settings_;
  const Ports ports_;
  kube::Api& api_;
  const Clock& clock_;

  // For the thread in run().
  bool is_down_ = false;  // the server, by the last call: no claim can be written
  kube::Backoff backoff_{kFirstRetry, kLongestRetry};
  SteadyTime not_before_{};
  bool is_first_ = true;                     // claims of an earlier instance are not seen yet
  std::map<std::string, std::string> done_;  // uid of a claim and its resourceVersion as it was prepared
  std::map<std::string, Refusal> refused_;   // by uid
  std::string error_;                        // of the server, as logged last

  TurnLoop loop_;
};

}  // namespace neuron::plugin::dra
