// A driver that hangs in the kernel: reads that do not come back (docs/reliability.md#devices).
// test/fakes/faulty_io.cpp.

#include "test/fakes/paths.h"
#include "test/fakes/tcp_client.h"
#include "test/integration/faulty_node.h"
#include "test/integration/metrics_port.h"
#include "test/integration/shell.h"

namespace neuron::fakes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

TEST(Hang, ADeviceThatHangsCostsNobodyElse) {
  FaultyNode node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
  node.rules("hang */neuron3/stats/hardware*\n");
  ASSERT_TRUE(node.sees(kNeuron, 15)) << node.agent->log();
  EXPECT_TRUE(node.sees(kCore, 30));
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"3"}));
  EXPECT_EQ(node.kubelet->capacity(kNeuron), 16);
  EXPECT_TRUE(
      node.wait_log("unit=neuron3 state=unhealthy reason=not_answering: neuron3: reading "
                    "sys/class/neuron_device/neuron3 has not returned since 20"))
      << node.agent->log();

  node.host.set("neuron5", "sram_ecc_uncorrected=1");
  EXPECT_TRUE(node.sees(kNeuron, 14)) << node.agent->log();
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"3", "5"}));
  EXPECT_EQ(node.kubelet->allocatable(kEfa), 8);
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "other", {{kNeuron, 1}})); }), kBudget);
  EXPECT_EQ(count_of(node.agent->log(), "unit=neuron3 state=unhealthy reason=not_answering"), 1) << "logged once:\n"
                                                                                                 << node.agent->log();

  node.rules("");
  EXPECT_TRUE(node.sees(kNeuron, 15)) << node.agent->log();
  EXPECT_EQ(node.kubelet->resource_view(kNeuron).unhealthy, (sim::IdSet{"5"}));
}

TEST(Hang, TheFirstScanHangsInOneDeviceAndTheRestIsRegistered) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang */neuron3/*\n");
  node.start();
  EXPECT_TRUE(node.sees(kEfa, 8)) << node.agent->log();
  EXPECT_TRUE(node.sees(kNeuron, 15));
  EXPECT_TRUE(node.sees(kCore, 30));
  EXPECT_EQ(node.kubelet->capacity(kNeuron), 16) << "it keeps its place";
  EXPECT_EQ(node.kubelet->capacity(kCore), 32);
  node.rules("");
  EXPECT_TRUE(node.sees(kNeuron, 16)) << node.agent->log();
  EXPECT_TRUE(node.sees(kCore, 32));
}

TEST(Hang, EveryDeviceHangsAndTheInterfacesAreThere) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang */neuron_device/neuron*/*\n");
  node.start();
  EXPECT_TRUE(node.sees(kEfa, 8, seconds(20))) << node.agent->log();
  EXPECT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->capacity(kNeuron) == 16; }, kBudget));
  EXPECT_EQ(node.kubelet->allocatable(kNeuron), 0);
  node.rules("");
  EXPECT_TRUE(node.sees(kNeuron, 16)) << node.agent->log();
}

TEST(Hang, AnInterfaceThatHangsIsOutAlone) {
  for (const char* path : {"*/0000:10:19.0/p2p", "*/infiniband_verbs/uverbs*/ibdev"}) {
    FaultyNode node("trn1.32xlarge");
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    node.rules(std::string("hang ") + path + "\n");
    if (std::string(path).ends_with("ibdev")) {
      node.host.set("rdmap16s25", "unbind");  // the join is made anew, and finds no answer
      EXPECT_TRUE(node.sees(kEfa, 0, seconds(20))) << node.agent->log();
    } else {
      EXPECT_TRUE(node.sees(kEfa, 7)) << node.agent->log();
      EXPECT_TRUE(node.wait_log("id=rdmap16s25 reason=not_answering")) << node.agent->log();
    }
    EXPECT_EQ(node.kubelet->allocatable(kNeuron), 16);
    node.host.set("neuron5", "sram_ecc_uncorrected=1");
    EXPECT_TRUE(node.sees(kNeuron, 15)) << node.agent->log();
    node.rules("");
    node.host.set("rdmap16s25", "heal");
    EXPECT_TRUE(node.sees(kEfa, 8)) << node.agent->log();
  }
}

TEST(Hang, ListsAndTextsThatHangKeepWhatWasSeenLast) {
  for (const char* path : {"*/id/product_name", "*/sys/bus/pci/devices"}) {
    FaultyNode node("trn1.32xlarge");
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    node.rules(std::string("hang ") + path + "\n");
    ASSERT_TRUE(node.wait_log("has not returned since")) << path;
    node.host.set("neuron5", "sram_ecc_uncorrected=1");
    EXPECT_TRUE(node.sees(kNeuron, 15)) << path << node.agent->log();
    EXPECT_EQ(node.kubelet->allocatable(kEfa), 8) << path;
    EXPECT_TRUE(node.sees(kCore, 30)) << path;
  }
}

// A list that fails is no empty list, whatever the error: EMFILE, EACCES, EIO.
TEST(Unread, AListThatFailsTakesNothingAway) {
  for (const char* rule : {"nofile */sys/class/neuron_device", "deny */sys/class/neuron_device",
                           "deny */sys/bus/pci/devices", "nofile */sys/class/infiniband", "nofile */sys/*"}) {
    FaultyNode node("trn1.32xlarge");
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    node.rules(std::string(rule) + "\n");
    ASSERT_TRUE(node.wait_log(std::string(rule).starts_with("deny") ? "Permission denied" : "Too many open files"))
        << rule;
    if (!std::string(rule).ends_with("/sys/*")) {
      node.host.set("neuron5", "sram_ecc_uncorrected=1");
      EXPECT_TRUE(node.sees(kNeuron, 15)) << rule << node.agent->log();
      node.host.set("neuron5", "heal");
      EXPECT_TRUE(node.sees(kNeuron, 16)) << rule << node.agent->log();
    }
    EXPECT_EQ(node.kubelet->allocatable(kEfa), 8) << rule;
    EXPECT_TRUE(node.sees(kCore, 32)) << rule;
    EXPECT_THAT(node.agent->log(), Not(HasSubstr("vanished"))) << rule;
    EXPECT_THAT(node.agent->log(), Not(HasSubstr("instance-type=unknown"))) << rule;
    node.rules("");
    node.host.set("neuron6", "vanish");
    EXPECT_TRUE(node.sees(kNeuron, 15)) << "lists count again: " << rule << node.agent->log();
  }
}

// What pods hold is not called vanished because the agent could not read yet which devices there are.
TEST(Unread, AFirstScanThatCannotListTheDevicesTakesNoHeldOneAway) {
  for (const char* rule : {"nofile */sys/class/neuron_device", "eio */sys/class/neuron_device",
                           "nofile */sys/bus/pci/devices", "eio */sys/bus/pci/devices"}) {
    FaultyNode node("trn1.32xlarge");
    node.start();
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8));
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
    ASSERT_TRUE(starts(node, "holder", {{kNeuron, 2}, {kEfa, 2}}));
    node.agent->signal(SIGKILL);
    ASSERT_TRUE(node.agent->wait(kPatience));
    node.rules(std::string(rule) + "\n");
    node.start_agent();
    const char* const held = std::string(rule).ends_with("pci/devices") ? kEfa : kNeuron;
    ASSERT_TRUE(node.kubelet->wait_for([&] { return node.kubelet->capacity(held) == 2; }, kPatience))
        << rule << node.agent->log();
    EXPECT_EQ(node.kubelet->allocatable(held), 2) << rule << node.agent->log();
    node.rules("");
    ASSERT_TRUE(node.wait_allocatable(kNeuron, 16)) << rule << node.agent->log();
    ASSERT_TRUE(node.wait_allocatable(kEfa, 8)) << rule << node.agent->log();
    EXPECT_THAT(node.agent->log(), Not(HasSubstr("vanished"))) << rule;
    EXPECT_THAT(node.agent->log(), Not(HasSubstr("hardware missing"))) << rule;
  }
}

// A port whose admin queue is closed: drivers before r1.14 count with the port, and reading it fails with ENODEV.
TEST(Unread, APortThatReadsENODEVIsADeadInterfaceAndOneThatReadsEIOIsNot) {
  FaultyNode node("trn1.32xlarge");
  node.host.write();
  const std::string device = node.host.path() + "/sys/class/infiniband/rdmap16s25/";
  std::filesystem::create_directories(device + "ports/1/hw_counters");
  std::filesystem::rename(device + "hw_counters/no_completion_cmds", device + "ports/1/hw_counters/no_completion_cmds");
  node.start_kubelet().start_agent();
  ASSERT_TRUE(node.wait_allocatable(kEfa, 8)) << node.agent->log();
  node.rules("eio */ports/1/hw_counters/no_completion_cmds\n");
  ASSERT_TRUE(node.wait_log("Input/output error")) << node.agent->log();
  EXPECT_EQ(node.kubelet->allocatable(kEfa), 8);
  node.rules("nodev */ports/1/hw_counters/no_completion_cmds\n");
  EXPECT_TRUE(node.sees(kEfa, 7)) << node.agent->log();
  EXPECT_EQ(node.kubelet->resource_view(kEfa).unhealthy, (sim::IdSet{"rdmap16s25"}));
  EXPECT_TRUE(node.wait_log("no_completion_cmds")) << node.agent->log();
  EXPECT_TRUE(node.wait_log("its counters are no longer readable")) << node.agent->log();
  node.rules("");
  EXPECT_TRUE(node.sees(kEfa, 8)) << node.agent->log();
}

// As on a node where other programs have taken all that fs.inotify.max_user_instances allows.
TEST(Unread, WithoutInotifyTheKubeletsDirectoryIsPolled) {
  FaultyNode node("trn1.2xlarge");
  node.rules("nofile inotify\n");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 1)) << node.agent->log();
  EXPECT_TRUE(node.wait_log("raise the sysctl fs.inotify.max_user_instances")) << node.agent->log();
  EXPECT_TRUE(starts(node, "pod", {{kNeuron, 1}}));
  ASSERT_TRUE(node.kubelet->restart());
  EXPECT_TRUE(node.wait_allocatable(kNeuron, 1)) << "registered again:\n" << node.agent->log();
  node.rules("");
  EXPECT_TRUE(node.wait_log("kubelet directory watch restored"));
}

// The usage sampler reads this file, and the scan as a part of its own, since no verdict rests on it.
TEST(Hang, UsageOfOtherDevicesGoesOnWhileOneHangs) {
  constexpr const char* kMemory = "stats/memory_usage/device_mem/total";
  FaultyNode node("trn1.32xlarge");
  node.extra_arguments = {"--metrics-address", "127.0.0.1:0"};
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  const std::uint16_t port = metrics_port(node);
  const auto shows = [&](const std::string& core, const std::string& bytes, seconds within) {
    node.host.set(core, std::string(kMemory) + "=" + bytes);
    const auto until = std::chrono::steady_clock::now() + within;
    while (std::chrono::steady_clock::now() < until) {
      if (http_get(port, "/metrics").body.find(bytes) != std::string::npos) return true;
      static_cast<void>(node.agent->wait(milliseconds(20)));
    }
    return false;
  };
  ASSERT_TRUE(shows("neuron5/core0", "123456789", kPatience));
  node.rules("hang */neuron3/neuron_core0/" + std::string(kMemory) + "\n");
  EXPECT_TRUE(
      node.wait_log("usage metrics incomplete: reading "
                    "sys/class/neuron_device/neuron3 has not returned since 20"))
      << node.agent->log();
  EXPECT_TRUE(shows("neuron5/core0", "223456789", kBudget + kSlack)) << node.agent->log();
  EXPECT_TRUE(shows("neuron5/core0", "323456789", kBudget + kSlack)) << "and again";
  EXPECT_TRUE(node.wait_log("reading the memory in use below sys/class/neuron_device/neuron3 has not returned since"))
      << node.agent->log();
  EXPECT_EQ(node.kubelet->allocatable(kNeuron), 16) << "no verdict rests on this file\n" << node.agent->log();
  EXPECT_THAT(node.agent->log(), Not(HasSubstr("not_answering")));
  node.rules("");
  EXPECT_TRUE(node.wait_log("usage metrics complete again"));
  EXPECT_TRUE(shows("neuron3/core0", "423456789", kBudget + kSlack));
}

// Programs that read once, whose reader waits for them.
TEST(Hang, ProgramsThatReadOnceLeaveOutWhatHangs) {
  FaultyNode node("trn1.32xlarge");
  node.host.write();
  node.rules("hang */neuron3/*\n");
  std::string before = "timeout 30 env";
  for (const std::string& one : node.extra_environment) before += " '" + one + "'";
  before += ' ' + bin_dir() + '/';
  const std::string root = " --root " + node.host.path() + " 2>&1";
  const std::string said = "reading sys/class/neuron_device/neuron3 has not returned since 20";
  const Ended list = run_line(before + "neuron-ls" + root);
  EXPECT_EQ(list.status, 0) << list.output;
  EXPECT_THAT(list.output, HasSubstr("neuron-ls: " + said));
  EXPECT_THAT(list.output, HasSubstr("| 15     |")) << "the rest is shown";
  const Ended once = run_line(before + "neuron-agent run --once" + root);
  EXPECT_EQ(once.status, 0) << once.output;
  EXPECT_THAT(once.output, HasSubstr(said));
  EXPECT_THAT(once.output, HasSubstr("aws.amazon.com/neuron 15 of 16 allocatable"));
  node.rules("hang */sys/class/neuron_device\n");
  const Ended without = run_line(before + "neuron-ls" + root);
  EXPECT_EQ(without.status, 1) << without.output;
  EXPECT_THAT(without.output, HasSubstr("listing sys/class/neuron_device has not returned since 20"));
}

TEST(Hang, PreStartIsNotHeldUpByADriverThatSaysNothing) {
  FaultyNode node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  node.rules("hang */device_mem/tensors/total\n");  // which no scan reads
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "first", {{kNeuron, 1}})); }), kBudget + kSlack);
  EXPECT_TRUE(
      node.wait_log("device memory state unknown, container start allowed resource=aws.amazon.com/neuron: neuron"))
      << node.agent->log();
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "half", {{kNeuron, 8}})); }), seconds(12));

  node.rules("eio */device_mem/*\n");
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "unreadable", {{kNeuron, 1}})); }), kBudget);
}

TEST(Hang, TheEndComesAtOnce) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang */neuron3/stats/*\nhang */neuron8/stats/*\n");
  node.start();
  ASSERT_TRUE(node.sees(kNeuron, 14, seconds(12))) << node.agent->log();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(milliseconds(1500)), 0) << node.agent->log();
}

TEST(Hang, AScanThatHangsBeforeAnythingIsKnownDoesNotHoldUpTheEnd) {
  FaultyNode node("trn1.32xlarge");
  node.rules("hang *product_name\n");
  node.start();
  ASSERT_TRUE(node.wait_log("starting"));
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(milliseconds(1500)), 0) << node.agent->log();
}

TEST(Hang, ACheckpointThatHangsStopsNeitherListsNorAnswersNorTheEnd) {
  FaultyNode node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  ASSERT_TRUE(starts(node, "before", {{kNeuron, 1}}));
  ASSERT_TRUE(node.wait_allocatable(kCore, 30)) << "what one device holds is known";
  node.rules("hang *kubelet_internal_checkpoint\n");
  node.host.set("neuron5", "sram_ecc_uncorrected=1");
  EXPECT_TRUE(node.sees(kNeuron, 15)) << node.agent->log();
  EXPECT_TRUE(node.sees(kCore, 28)) << "what was held stays held\n" << node.agent->log();
  EXPECT_LT(took([&] { EXPECT_TRUE(starts(node, "meanwhile", {{kNeuron, 1}})); }), kBudget + kSlack);
  EXPECT_TRUE(node.wait_log("has not returned")) << node.agent->log();
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(seconds(5)), 0) << node.agent->log();
}

TEST(Hang, ACheckpointThatHangsFromTheStartIsReadWhenItComesBack) {
  FaultyNode node("trn1.32xlarge");
  node.start();
  ASSERT_TRUE(node.wait_allocatable(kNeuron, 16));
  ASSERT_TRUE(node.wait_allocatable(kCore, 32));
  ASSERT_TRUE(starts(node, "before", {{kNeuron, 1}}));
  ASSERT_TRUE(node.wait_allocatable(kCore, 30));
  node.agent->signal(SIGKILL);
  ASSERT_TRUE(node.agent->wait(kPatience));
  node.rules("hang *kubelet_internal_checkpoint\n");
  node.start_agent();
  EXPECT_TRUE(node.sees(kCore, 30)) << "the kubelet's list says it\n" << node.agent->log();
  ASSERT_TRUE(node.wait_log("has not returned")) << node.agent->log();
  node.rules("");
  EXPECT_TRUE(node.wait_log("checkpoint readable again")) << node.agent->log();
  node.rules("hang *kubelet_internal_checkpoint\n");
  node.agent->signal(SIGTERM);
  EXPECT_EQ(node.agent->wait(seconds(5)), 0) << node.agent->log();
}

}  // namespace
}  // namespace neuron::fakes
