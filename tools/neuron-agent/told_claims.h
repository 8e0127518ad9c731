#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plugin/dra/claim/claim_request.h"
#include "plugin/dra/serve/node_board.h"
#include "plugin/kubelet/call_figures.h"

namespace neuron::agent {

// Claims that tell the board what they hold, and the loop when a burst of calls is over; and that are counted.
// Thread-safe; what it is given must outlive it.
class ToldClaims final : public plugin::dra::ClaimCalls {
 public:
  ToldClaims(plugin::dra::ClaimCalls& claims, plugin::dra::NodeBoard& board, plugin::CallFigures& figures,
             std::string driver)
      : claims_(claims), board_(board), figures_(figures), driver_(std::move(driver)) {}

  // All names that claims of that driver may be counted by.
  [[nodiscard]] static plugin::CallFigures::Names counted_names(const std::string& driver);

  std::map<std::string, plugin::dra::PrepareAnswer> prepare(const std::vector<plugin::dra::ClaimRef>& claims,
                                                            const std::stop_token& stop) override;
  std::map<std::string, std::string> unprepare(const std::vector<plugin::dra::ClaimRef>& claims) override;

  // Somebody has called since it was asked last, and nobody waits for an answer now.
  [[nodiscard]] bool take_quiet() { return running_ == 0 && called_.exchange(false); }

 private:
  template <typename Ask, typename Failed>
  auto told(std::string_view method, const Ask& ask, const Failed& failed);

  plugin::dra::ClaimCalls& claims_;
  plugin::dra::NodeBoard& board_;
  plugin::CallFigures& figures_;
  const std::string driver_;
  std::atomic<int> running_ = 0;
  std::atomic<bool> called_ = false;
};

}  // namespace neuron::agent
