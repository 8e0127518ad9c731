#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "test/integration/node.h"

namespace neuron::fakes {

// The port that the agent's log names last: agents of tests listen on any that is free.
inline std::uint16_t metrics_port(Node& node) {
  const std::string said = "probe server listening address=127.0.0.1:";
  EXPECT_TRUE(node.wait_log(said)) << node.agent->log();
  const std::string log = node.agent->log();
  std::uint16_t port = 0;
  const std::size_t at = log.rfind(said);
  if (at != std::string::npos) std::from_chars(log.data() + at + said.size(), log.data() + log.size(), port);
  return port;
}

}  // namespace neuron::fakes
