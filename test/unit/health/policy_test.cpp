#include "agent/health/assess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "test/unit/core/make_host.h"

namespace neuron::test {
namespace {

using model::Health;
using model::HealthState;
using model::HostScan;
using model::NeuronDevice;
using ::testing::HasSubstr;

constexpr std::size_t kDevice = 5;

// One way to break a device, and what must be said about it.
struct Fault {
  std::string name;
  std::function<void(NeuronDevice&)> apply;
  std::string reason;
  std::string in_sentence;
  std::string in_action;
  HealthState state = HealthState::unhealthy;
};

std::vector<Fault> faults() {
  using D = NeuronDevice;
  return {
      {"sram", [](D& d) { d.signals.sram_ecc_uncorrected = 2; }, "sram_ecc_uncorrected", "2 uncorrected SRAM",
       "replace"},
      {"sram_v1", [](D& d) { d.signals.sram_ecc_errors = 1; }, "sram_ecc_uncorrected", "sram_ecc_err_count", "replace"},
      {"hbm", [](D& d) { d.signals.mem_ecc_uncorrected = 7; }, "mem_ecc_uncorrected", "7 uncorrected HBM", "replace"},
      {"hbm_v1", [](D& d) { d.signals.hbm_ecc_errors = 7; }, "mem_ecc_uncorrected", "hbm_ecc_err_count", "replace"},
      {"repairable", [](D& d) { d.signals.mem_ecc_repairable_uncorrected = 1; }, "mem_ecc_repairable_uncorrected",
       "1 repairable HBM", "reload"},
      {"repairable_v1", [](D& d) { d.signals.repairable_hbm_ecc_errors = 1; }, "mem_ecc_repairable_uncorrected",
       "repairable_hbm_ecc_err_count", "reload"},
      {"components",
       [](D& d) {
         d.signals.unhealthy_components = {{"hbm", "link_efa"}};
       },
       "unhealthy_components", "hbm, link_efa", "replace"},
      {"unreachable", [](D& d) { d.signals.unreachable = true; }, "device_unreachable", "device_unreachable",
       "replace"},
      {"nothing",
       [](D& d) {
         const int index = d.index;
         d = D();
         d.index = index;
         d.node_present = true;
         d.problems = {
             {model::ProblemKind::file, "sys/class/neuron_device/neuron5/info/serial_number", "Input/output error"}};
       },
       "nothing_readable", "Input/output error", "reload"},
      {"invalid", [](D& d) { d.signals.reset_state = 2; }, "device_invalid", "reset reads 2", "reboot"},
      {"resetting", [](D& d) { d.signals.reset_state = 0; }, "resetting", "being reset", "", HealthState::degraded},
      {"node", [](D& d) { d.node_present = false; }, "device_node_missing", "dev/neuron5", "udev"},
      {"hw_error", [](D& d) { d.cores[1].hw_error = 3; }, "hw_error", "core 1 counted 3", "replace"},
      {"hw_hbm_ue", [](D& d) { d.cores[0].hw_hbm_ue_error = 1; }, "hw_hbm_ue_error", "core 0", "replace"},
      {"hw_nc_ue", [](D& d) { d.cores[1].hw_nc_ue_error = 1; }, "hw_nc_ue_error", "core 1", "replace"},
      {"hw_dma", [](D& d) { d.cores[1].hw_dma_abort_error = 1; }, "hw_dma_abort_error", "core 1", "replace"},
      {"hw_repairable", [](D& d) { d.cores[1].hw_repairable_hbm_ue_error = 1; }, "hw_repairable_hbm_ue_error", "core 1",
       "reload"},
      {"all_ones", [](D& d) { d.signals.sram_ecc_uncorrected = 65535; }, "reads_all_ones", "65535", "",
       HealthState::unknown},
  };
}

class EveryFault : public ::testing::TestWithParam<Fault> {};

TEST_P(EveryFault, BreaksOneDeviceAndHeals) {
  health::HealthMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  HostScan scan = sound;
  for (const Health& health : health::evaluate(scan, memory).devices)
    EXPECT_EQ(health, (Health{HealthState::healthy, "", "", ""}));

  for (int again = 0; again < 2; ++again) {
    scan = sound;
    GetParam().apply(scan.devices[kDevice]);
    const health::HealthResult broken = health::evaluate(scan, memory);
    ASSERT_EQ(broken.devices.size(), 16U);
    for (std::size_t i = 0; i < broken.devices.size(); ++i) {
      EXPECT_EQ(broken.devices[i].state, i == kDevice ? GetParam().state : HealthState::healthy) << i;
    }
    EXPECT_EQ(broken.devices[kDevice].reason, GetParam().reason);
    EXPECT_THAT(broken.devices[kDevice].sentence, HasSubstr(GetParam().in_sentence));
    EXPECT_THAT(broken.devices[kDevice].action, HasSubstr(GetParam().in_action));
  }

  scan = sound;
  EXPECT_EQ(health::evaluate(scan, memory).devices[kDevice].state, HealthState::healthy);
}

INSTANTIATE_TEST_SUITE_P(HealthPolicy, EveryFault, ::testing::ValuesIn(faults()),
                         [](const auto& suite) { return suite.param.name; });

TEST(HealthPolicy, CountersFromBeforeOurTimeAreTheBaseline) {
  health::HealthMemory memory;
  const HostScan sound = scan_of("trn1.2xlarge");
  const auto state_with = [&](std::uint64_t count) {
    HostScan scan = sound;
    scan.devices[0].cores[0].hw_error = count;
    return health::evaluate(scan, memory).devices[0].state;
  };
  EXPECT_EQ(state_with(10), HealthState::healthy);
  EXPECT_EQ(state_with(11), HealthState::unhealthy);
  EXPECT_EQ(state_with(10), HealthState::healthy);
  EXPECT_EQ(state_with(0), HealthState::healthy) << "cleared: starts afresh";
  EXPECT_EQ(state_with(1), HealthState::unhealthy) << "counted from the new start";
}

TEST(HealthPolicy, ACounterNobodyCanReadForAWhileKeepsItsBaseline) {
  health::HealthMemory memory;
  const HostScan sound = scan_of("trn1.2xlarge");
  HostScan scan = sound;
  (void)health::evaluate(scan, memory);
  scan = sound;
  scan.devices[0].cores.clear();
  (void)health::evaluate(scan, memory);
  scan = sound;
  scan.devices[0].cores[1].hw_error = 1;
  EXPECT_EQ(health::evaluate(scan, memory).devices[0].state, HealthState::unhealthy);
}

TEST(HealthPolicy, UnknownWhenNothingIsKnown) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn1.2xlarge");
  scan.devices[0].signals = {};
  scan.devices[0].cores.clear();
  const Health silent = health::evaluate(scan, memory).devices[0];
  EXPECT_EQ(silent.state, HealthState::unknown);
  EXPECT_EQ(silent.reason, "no_signals");
}

Health unread_after(const std::function<void(NeuronDevice&)>& change) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn2.48xlarge");
  change(scan.devices[kDevice]);
  const health::HealthResult result = health::evaluate(scan, memory);
  for (std::size_t i = 0; i < result.devices.size(); ++i) {
    if (i == kDevice) continue;
    EXPECT_EQ(result.devices[i].state, HealthState::healthy) << i;
  }
  return result.devices[kDevice];
}

TEST(HealthPolicy, ASignalThatItsSiblingsHaveAndItHasNotIsUnknown) {
  const std::vector<std::pair<std::string, std::function<void(NeuronDevice&)>>> changes = {
      {"stats/hardware/sram_ecc_uncorrected", [](auto& d) { d.signals.sram_ecc_uncorrected.reset(); }},
      {"stats/hardware/mem_ecc_uncorrected", [](auto& d) { d.signals.mem_ecc_uncorrected.reset(); }},
      {"stats/hardware/mem_ecc_repairable_uncorrected",
       [](auto& d) { d.signals.mem_ecc_repairable_uncorrected.reset(); }},
      {"stats/hardware/health_status/unhealthy_components", [](auto& d) { d.signals.unhealthy_components.reset(); }},
      {"stats/hardware/health_status/healthcheck_heartbeat", [](auto& d) { d.signals.heartbeat.reset(); }},
      {"neuron_core1/stats/status/hw_nc_ue_error/total", [](auto& d) { d.cores[1].hw_nc_ue_error.reset(); }},
      {"neuron_core*/stats/status/hw_nc_ue_error", [](auto& d) { d.cores.clear(); }},
  };
  for (const auto& [path, change] : changes) {
    const Health health = unread_after(change);
    EXPECT_EQ(health.state, HealthState::unknown) << path;
    EXPECT_EQ(health.reason, "signal_unreadable");
    EXPECT_THAT(health.sentence, HasSubstr(path));
  }
}

TEST(HealthPolicy, AHealthFileThatCouldNotBeReadIsUnknownUnlessWorseIsSeen) {
  const std::string folder = "sys/class/neuron_device/neuron5/";
  for (const char* file : {"stats/hardware/health_status/healthcheck_heartbeat", "stats/hardware/sram_ecc_corrected",
                           "reset", "neuron_core0/stats/status/hw_error/total"}) {
    const auto garble = [&](NeuronDevice& d) {
      d.problems = {{model::ProblemKind::health_file, folder + file, "not a number: \"x\""}};
    };
    EXPECT_EQ(unread_after(garble).reason, "signal_unreadable") << file;
    const auto worse = [&](NeuronDevice& d) {
      garble(d);
      d.signals.mem_ecc_uncorrected = 1;
    };
    EXPECT_EQ(unread_after(worse).reason, "mem_ecc_uncorrected");
  }
  const auto other = [&](NeuronDevice& d) {
    d.problems = {{model::ProblemKind::file, folder + "info/serial_number", "not 16 hex digits"}};
  };
  EXPECT_EQ(unread_after(other).state, HealthState::healthy) << "health does not rest on it";
}

TEST(HealthPolicy, ALoneDeviceIsMeasuredByItsDriver) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn1.2xlarge");
  scan.devices[0].signals.sram_ecc_uncorrected.reset();
  EXPECT_EQ(health::evaluate(scan, memory).devices[0].reason, "signal_unreadable");
  scan.layout = model::DriverLayout::stats;
  scan.driver_version = "2.13.0.0";  // before 2.14.5 there was no such file
  EXPECT_EQ(health::evaluate(scan, memory).devices[0].state, HealthState::healthy);
}

TEST(HealthPolicy, AllOnesIsNoCountForWhoeverLooksNext) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn1.2xlarge");
  scan.devices[0].signals.sram_ecc_uncorrected = 65535;
  scan.devices[0].signals.sram_ecc_corrected = 65535;
  (void)health::evaluate(scan, memory);
  EXPECT_FALSE(scan.devices[0].signals.sram_ecc_uncorrected);
  EXPECT_FALSE(scan.devices[0].signals.sram_ecc_corrected);
}

TEST(HealthPolicy, OneErrorIsSingular) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn1.2xlarge");
  scan.devices[0].signals.sram_ecc_uncorrected = 1;
  EXPECT_THAT(health::evaluate(scan, memory).devices[0].sentence, HasSubstr(": 1 uncorrected SRAM error ("));
}

TEST(HealthPolicy, UnknownLayoutIsSaidButNodeMissingIsWorse) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn1.2xlarge");
  scan.layout = model::DriverLayout::unknown;
  scan.driver_version = "2.31.7.0";
  const Health health = health::evaluate(scan, memory).devices[0];
  EXPECT_EQ(health.state, HealthState::unknown);
  EXPECT_EQ(health.reason, "unknown_layout");
  EXPECT_THAT(health.sentence, HasSubstr("2.31.7.0"));
  scan.devices[0].node_present = false;  // it was there a moment ago
  EXPECT_EQ(health::evaluate(scan, memory).devices[0].state, HealthState::unhealthy);
}

TEST(HealthPolicy, WithoutAnyVisibleDeviceNodeNobodyCanSayThatOneIsMissing) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn1.32xlarge");  // as an unprivileged pod sees it: all of sysfs, a /dev of its own
  for (auto& device : scan.devices) device.node_present = false;
  for (auto& efa : scan.efas) efa.node_present = false;
  HostScan later = scan;
  const health::HealthResult result = health::evaluate(scan, memory);
  for (const Health& health : result.devices) EXPECT_EQ(health.state, HealthState::healthy) << health.sentence;
  for (const Health& health : result.efas) EXPECT_EQ(health.state, HealthState::healthy) << health.sentence;

  later.devices[0].node_present = true;
  later.efas[0].node_present = true;
  const health::HealthResult seen = health::evaluate(later, memory);
  EXPECT_EQ(seen.devices[0].state, HealthState::healthy);
  EXPECT_EQ(seen.devices[1].reason, "device_node_missing");
  EXPECT_EQ(seen.efas[1].reason, "verbs_node_missing");
}

TEST(HealthPolicy, EfaFaultsAndTheWayBack) {
  health::HealthMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  HostScan scan = sound;
  for (const Health& health : health::evaluate(scan, memory).efas) EXPECT_EQ(health.state, HealthState::healthy);

  scan = sound;
  scan.efas[0].driver_bound = false;
  scan.efas[0].name.clear();
  scan.efas[0].uverbs.reset();
  scan.efas[0].node_present = false;
  scan.efas[1].uverbs.reset();
  scan.efas[1].node_present = false;
  scan.efas[2].node_present = false;
  scan.efas[3].p2p = "";
  scan.efas[4].p2p = "NEURON";
  const health::HealthResult result = health::evaluate(scan, memory);
  EXPECT_EQ(result.efas[0].reason, "efa_driver_unbound");
  EXPECT_EQ(result.efas[1].reason, "verbs_missing");
  EXPECT_EQ(result.efas[2].reason, "verbs_node_missing");
  EXPECT_EQ(result.efas[3].state, HealthState::degraded);
  EXPECT_EQ(result.efas[3].reason, "no_peer_memory");
  EXPECT_EQ(result.efas[4].state, HealthState::healthy);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.efas[i].state, HealthState::unhealthy) << i;
    EXPECT_FALSE(result.efas[i].sentence.empty());
    EXPECT_FALSE(result.efas[i].action.empty());
  }

  scan = sound;
  for (const Health& health : health::evaluate(scan, memory).efas) EXPECT_EQ(health.state, HealthState::healthy);
}

// An unprivileged pod does not see the host's dev; only where some node was seen does a missing one mean anything.
TEST(HealthPolicy, MissingNodesCountOnlyWhereNodesAreVisible) {
  health::HealthMemory memory;
  const HostScan sound = scan_of("trn1.32xlarge");
  HostScan blind = sound;
  for (auto& device : blind.devices) device.node_present = false;
  for (auto& efa : blind.efas) efa.node_present = false;
  const HostScan unseen = blind;
  health::HealthResult result = health::evaluate(blind, memory);
  EXPECT_EQ(result.devices[0].state, HealthState::healthy);
  EXPECT_EQ(result.efas[0].state, HealthState::healthy);
  HostScan scan = sound;
  (void)health::evaluate(scan, memory);
  blind = unseen;
  result = health::evaluate(blind, memory);
  EXPECT_EQ(result.devices[0].reason, "device_node_missing");
  EXPECT_EQ(result.efas[0].reason, "verbs_node_missing");
}

// One unanswered command closes the admin queue until the next bind, and the counter then stands still.
TEST(HealthPolicy, AnEfaThatLeftACommandUnansweredIsDeadUntilItIsBoundAnew) {
  const HostScan sound = scan_of("trn1.32xlarge");
  health::HealthMemory memory;
  const auto verdict_with = [&](std::optional<std::uint64_t> count) {
    HostScan scan = sound;
    scan.efas[2].no_completion_cmds = count;
    const health::HealthResult result = health::evaluate(scan, memory);
    EXPECT_EQ(result.efas[1].state, HealthState::healthy);
    return result.efas[2];
  };
  const Health first = verdict_with(1);
  EXPECT_EQ(first.reason, "no_completion_cmds") << "an agent that starts later must not offer it";
  EXPECT_EQ(first.state, HealthState::unhealthy);
  EXPECT_THAT(first.sentence, HasSubstr("1 command"));
  EXPECT_EQ(verdict_with(1), first) << "the counter stands still, the queue stays closed";
  EXPECT_THAT(verdict_with(3).sentence, HasSubstr("3 commands"));
  EXPECT_EQ(verdict_with(0).state, HealthState::healthy) << "rebound";
  EXPECT_EQ(verdict_with(std::nullopt).reason, "") << "a driver without the counter";
}

// Drivers before r1.14 count with the port, whose counters cannot be read once the queue is closed.
TEST(HealthPolicy, AnEfaWhoseAdminQueueIsClosedIsDeadToo) {
  health::HealthMemory memory;
  HostScan scan = scan_of("trn1.32xlarge");
  scan.efas[2].admin_queue_closed = true;
  const health::HealthResult result = health::evaluate(scan, memory);
  EXPECT_EQ(result.efas[2].reason, "no_completion_cmds");
  EXPECT_THAT(result.efas[2].sentence, HasSubstr("admin queue"));
  EXPECT_EQ(result.efas[1].state, HealthState::healthy);
}

TEST(HealthPolicy, AllVerbsMissingNamesTheModule) {
  health::HealthMemory memory;
  HostScan scan = scan_of("p5.48xlarge");
  for (auto& efa : scan.efas) {
    efa.uverbs.reset();
    efa.node_present = false;
  }
  const health::HealthResult result = health::evaluate(scan, memory);
  ASSERT_EQ(result.efas.size(), 32U);
  EXPECT_EQ(result.efas[31].reason, "ib_uverbs_not_loaded");
  EXPECT_THAT(result.efas[31].sentence, HasSubstr("ib_uverbs"));
  EXPECT_THAT(result.efas[31].action, HasSubstr("modprobe ib_uverbs"));
  EXPECT_EQ(health::without_verbs(false).reason, result.efas[31].reason);
  EXPECT_THAT(health::without_verbs(true).action, HasSubstr("modprobe -r efa ib_uverbs"))
      << "loading it again does nothing";
}

TEST(HealthPolicy, BareNodeIsCalm) {
  health::HealthMemory memory;
  HostScan scan;
  const health::HealthResult result = health::evaluate(scan, memory);
  EXPECT_TRUE(result.devices.empty());
  EXPECT_TRUE(result.efas.empty());
}

}  // namespace
}  // namespace neuron::test
