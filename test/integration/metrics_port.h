#pragma once

#include <charconv>
#include <cstdint>
#include <string>

#include "test/integration/node.h"

namespace neuron::fakes {

// The port that the agent's log names last: agents of tests listen on any that is free.
inline std::uint16_t metrics_port(AgentProcess& agent) {
  const std::string said = "probe server listening address=127.0.0.1:";
  EXPECT_TRUE(wait_log(agent, said)) << agent.log();
  const std::string log = agent.log();
  std::uint16_t port = 0;
  const std::size_t at = log.rfind(said);
  if (at != std::string::npos) std::from_chars(log.data() + at + said.size(), log.data() + log.size(), port);
  return port;
}
inline std::uint16_t metrics_port(Node& node) {
  return metrics_port(*node.agent);
}

}  // namespace neuron::fakes
