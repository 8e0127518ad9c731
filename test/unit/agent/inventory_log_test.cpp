#include "plugin/daemon/machine_scans.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <sstream>
#include <utility>

namespace neuron::plugin {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Takes what is logged as long as it lives.
class InventoryLogTest : public ::testing::Test {
 protected:
  InventoryLogTest() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_, true);
    auto logger = std::make_shared<spdlog::logger>("inventory", std::move(sink));
    logger->set_pattern("%l %v");
    spdlog::set_default_logger(std::move(logger));
  }
  ~InventoryLogTest() override { spdlog::set_default_logger(before_); }

  std::string said_of(const model::HostScan& host) {
    auto snapshot = std::make_shared<model::Snapshot>();
    snapshot->host = host;
    log_.log(std::move(snapshot));
    return std::exchange(text_, std::ostringstream()).str();
  }

 private:
  std::shared_ptr<spdlog::logger> before_;
  std::ostringstream text_;

 protected:
  InventoryLog log_{core::OfferPolicy{}};
};

model::HostScan small_node() {
  model::HostScan host;
  host.instance_type = "trn1.2xlarge";
  host.driver_version = "2.30.2.0";
  host.devices.emplace_back().node_present = true;
  host.efas.emplace_back().name = "rdmap16s25";
  return host;
}

TEST_F(InventoryLogTest, DescribesTheNodeOnceAndAgainWhenItIsAnother) {
  model::HostScan host = small_node();
  EXPECT_THAT(said_of(host),
              HasSubstr("info node instance-type=trn1.2xlarge driver=2.30.2.0 layout=none devices=1 efas=1\n"));
  host.devices[0].health.state = model::HealthState::healthy;
  EXPECT_EQ(said_of(host), "") << "what is right needs no word";
  host.devices.clear();
  EXPECT_THAT(said_of(host),
              HasSubstr("devices=0 efas=1\nwarning hardware missing: 0 of 1 Neuron devices of a trn1.2xlarge present"));
}

TEST_F(InventoryLogTest, AnElectionIsLoggedAsItGoesOn) {
  model::HostScan host = small_node();
  host.ultraserver.emplace().busy = true;
  host.devices[0].signals.reset_state = 1;
  EXPECT_THAT(said_of(host), HasSubstr("info UltraServer state changed: the UltraServer election is running"));
  EXPECT_EQ(said_of(host), "");
  host.devices[0].signals.reset_state = 2;
  EXPECT_THAT(said_of(host),
              HasSubstr("warning UltraServer state changed: the UltraServer election cannot begin (ultraserver_mode: "
                        "busy) until every device is reset: neuron0 was given up by the driver (reset reads 2); what "
                        "to do: inspect the kernel log"));
  host.devices[0].signals.reset_state = 1;
  host.ultraserver = model::UltraServer{false, {1, 3, 4}, {{4, "8f10b6e35a7c92d4", 3}}};
  EXPECT_THAT(said_of(host), HasSubstr("info UltraServer state changed: node 3 of 4 of UltraServer 8f10b6e35a7c92d4"));
}

TEST_F(InventoryLogTest, ABareNodeIsToldOnce) {
  model::HostScan host;
  EXPECT_THAT(said_of(host), HasSubstr("info no Neuron device and no EFA interface found; nothing is advertised"));
  host.driver_version = "2.30.2.0";
  EXPECT_THAT(said_of(host), Not(HasSubstr("nothing is advertised")));
}

TEST_F(InventoryLogTest, ProblemsAreToldWhenTheyChangeOfInterfacesToo) {
  model::HostScan host = small_node();
  (void)said_of(host);
  host.devices[0].problems = {{model::ProblemKind::file, "sys/a", "not a number"}};
  EXPECT_EQ(said_of(host), "warning scan found a problem unit=neuron0: sys/a: not a number\n");
  EXPECT_EQ(said_of(host), "");
  host.devices[0].problems.clear();
  host.efas[0].problems = {{model::ProblemKind::file, "sys/b", "Is a directory"}};
  EXPECT_EQ(said_of(host), "warning scan found a problem unit=rdmap16s25: sys/b: Is a directory\n");
  host.efas[0].problems.clear();
  EXPECT_EQ(said_of(host), "");
}

model::Health verdict(model::HealthState state, const std::string& reason) {
  return {state, reason, "what was seen", "what to do"};
}

TEST_F(InventoryLogTest, WhatIsDegradedOrUnknownIsToldOncePerChange) {
  model::HostScan host = small_node();
  model::Health& health = host.devices[0].health;
  (void)said_of(host);
  health = verdict(model::HealthState::degraded, "heartbeat_stuck");
  EXPECT_EQ(said_of(host),
            "warning health changed unit=neuron0 state=degraded reason=heartbeat_stuck: what was seen; what to do\n");
  health.sentence = "what was seen since";
  EXPECT_EQ(said_of(host), "");
  health = verdict(model::HealthState::unknown, "reads_all_ones");
  EXPECT_EQ(said_of(host),
            "warning health changed unit=neuron0 state=unknown reason=reads_all_ones: what was seen; what to do\n");
  health = {model::HealthState::healthy, "", "", ""};
  EXPECT_EQ(said_of(host), "info health changed unit=neuron0 state=healthy was=unknown reason=reads_all_ones\n");
  host.efas[0].health = verdict(model::HealthState::degraded, "no_peer_memory");
  EXPECT_EQ(said_of(host),
            "warning health changed unit=rdmap16s25 state=degraded reason=no_peer_memory: what was seen; what to do\n");
}

TEST_F(InventoryLogTest, WhatSeveralHaveIsToldOnce) {
  model::HostScan host = small_node();
  host.devices.emplace_back().index = 1;
  for (auto& device : host.devices) device.health = verdict(model::HealthState::unknown, "signals_missing");
  EXPECT_THAT(said_of(host), HasSubstr("warning health changed unit=neuron0,neuron1 state=unknown "
                                       "reason=signals_missing: what was seen; what to do\n"));
}

TEST_F(InventoryLogTest, AProblemOfTheHostIsNotToldAgainAfterTheHealthThatItGave) {
  model::HostScan host = small_node();
  host.problems = {{model::ProblemKind::file, "sys/c", "not there"}, {model::ProblemKind::file, "sys/d", "not there"}};
  host.devices[0].health = {model::HealthState::unknown, "signals_missing", "sys/c: not there", "look"};
  const std::string said = said_of(host);
  EXPECT_THAT(said, HasSubstr("reason=signals_missing: sys/c: not there; look\n"));
  EXPECT_THAT(said, Not(HasSubstr("unit=node: sys/c"))) << said;
  EXPECT_THAT(said, HasSubstr("warning scan found a problem unit=node: sys/d: not there\n"));
}

TEST_F(InventoryLogTest, LinesThatArePassedOverAreToldWhenTheyHaveDoubled) {
  model::HostScan host = small_node();
  (void)said_of(host);
  for (const auto& [lines, is_told] : {std::pair{1U, true}, {1U, false}, {2U, true}, {3U, false}, {9U, true}}) {
    host.kernel_log.ignored_lines = lines;
    const std::string said = said_of(host);
    EXPECT_EQ(said.find("kernel log lines ignored count=" + std::to_string(lines) + ":") != std::string::npos, is_told)
        << said;
  }
}

TEST_F(InventoryLogTest, WhatIsUnhealthyIsToldAndWhatIsGraver) {
  model::HostScan host = small_node();
  host.devices[0].health = verdict(model::HealthState::unhealthy, "mem_ecc_repairable_uncorrected");
  EXPECT_THAT(
      said_of(host),
      HasSubstr(
          "warning health changed unit=neuron0 state=unhealthy reason=mem_ecc_repairable_uncorrected: what was seen"));
  host.devices[0].health = verdict(model::HealthState::unhealthy, "sram_ecc_uncorrected");
  EXPECT_EQ(
      said_of(host),
      "warning health changed unit=neuron0 state=unhealthy reason=sram_ecc_uncorrected: what was seen; what to do\n");
  host.devices[0].health = {model::HealthState::healthy, "", "", ""};
  EXPECT_EQ(said_of(host),
            "info health changed unit=neuron0 state=healthy was=unhealthy reason=sram_ecc_uncorrected\n");
}

}  // namespace
}  // namespace neuron::plugin
