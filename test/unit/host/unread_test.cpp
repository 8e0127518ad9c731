// Reads that fail though the thing is there: nothing is concluded from them, and what was known stands.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "agent/health/assess.h"
#include "agent/host/scanner.h"
#include "test/fakes/fake_host.h"
#include "test/unit/host/no_descriptors.h"

namespace neuron::host {
namespace {

using model::HostScan;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

struct Unread : testing::Test {
  fakes::FakeHost host{"trn1.32xlarge"};
  std::optional<FsRoot> root;
  std::shared_ptr<LastSeen> last = std::make_shared<LastSeen>();
  health::AssessMemory memory;
  SteadyTime now{std::chrono::hours(1)};

  void SetUp() override {
    host.write();
    auto opened = FsRoot::open(host.path());
    ASSERT_TRUE(opened);
    root.emplace(*std::move(opened));
  }
  // Those of one test share what they read last, as one that takes over from another does.
  [[nodiscard]] Scanner scanner() const { return {*root, {.with_topology = false, .with_processes = true}, last}; }
  [[nodiscard]] Scanner fresh() const { return {*root, {.with_topology = false, .with_processes = true}}; }
  HostScan assess(Scanner& scanner) {
    now += std::chrono::seconds(5);
    return health::assess(scanner.scan(), memory, now).host;
  }
  [[nodiscard]] std::string at(const std::string& path) const { return host.path() + '/' + path; }
  // Puts something in the place of `path` that fails when it is read as what it was.
  void spoil(const std::string& path) const {
    const std::filesystem::path place = at(path);
    const bool is_folder = std::filesystem::is_directory(place) && !std::filesystem::is_symlink(place);
    std::filesystem::rename(place, at("spoilt"));
    if (is_folder) {
      std::ofstream(place) << "no folder\n";
    } else {
      std::filesystem::create_directory(place);
    }
  }
  void mend(const std::string& path) const {
    std::filesystem::remove(at(path));
    std::filesystem::rename(at("spoilt"), at(path));
  }
};

// An old heartbeat is worth nothing, and what is said of health for that.
model::NeuronDevice without_heartbeat(model::NeuronDevice device) {
  device.signals.heartbeat.reset();
  device.problems.clear();
  device.health = {};
  device.core_health.clear();
  return device;
}

// Everything but the problems, which say that it could not be read.
void expect_same_node(const HostScan& scan, const HostScan& before) {
  EXPECT_EQ(scan.instance_type, before.instance_type);
  EXPECT_EQ(scan.instance_id, before.instance_id);
  EXPECT_EQ(scan.driver_version, before.driver_version);
  EXPECT_EQ(scan.efa_driver_version, before.efa_driver_version);
  EXPECT_EQ(scan.lnc, before.lnc);
  EXPECT_EQ(scan.layout, before.layout);
  EXPECT_EQ(scan.neuron_pci_functions, before.neuron_pci_functions);
  ASSERT_EQ(scan.devices.size(), before.devices.size());
  for (std::size_t i = 0; i < scan.devices.size(); ++i) {
    EXPECT_NE(scan.devices[i].health.state, model::HealthState::unhealthy) << i;
    EXPECT_EQ(without_heartbeat(scan.devices[i]), without_heartbeat(before.devices[i])) << i;
  }
  ASSERT_EQ(scan.efas.size(), before.efas.size());
  for (std::size_t i = 0; i < scan.efas.size(); ++i) EXPECT_EQ(scan.efas[i], before.efas[i]) << i;
}

TEST_F(Unread, WithoutDescriptorsEverythingStaysAsItWasSeenLast) {
  Scanner scanner = this->scanner();
  const HostScan before = assess(scanner);
  ASSERT_THAT(before.problems, IsEmpty());
  HostScan without;
  HostScan of_another;
  {
    Scanner another = this->scanner();  // as after a read that hung
    const NoDescriptors now_there_are_none;
    without = assess(scanner);
    of_another = assess(another);
  }
  expect_same_node(without, before);
  expect_same_node(of_another, before);
  for (const HostScan* scan : {&without, &of_another}) {
    EXPECT_THAT(sentences(scan->problems), Contains("sys/class/neuron_device: Too many open files"));
    EXPECT_THAT(sentences(scan->problems), Contains("sys/bus/pci/devices: Too many open files"));
    EXPECT_THAT(sentences(scan->problems), Contains("sys/class/infiniband: Too many open files"));
    EXPECT_THAT(sentences(scan->problems), Contains("sys/devices/virtual/dmi/id/product_name: Too many open files"));
  }
  EXPECT_EQ(assess(scanner), before) << "and is read as ever afterwards";
}

TEST_F(Unread, AProcessShortOfDescriptorsMistakesNoHeartbeatForAStuckOne) {
  Scanner scanner = this->scanner();
  const HostScan before = assess(scanner);
  const NoDescriptors now_there_are_none;
  for (int i = 0; i < 100; ++i) expect_same_node(assess(scanner), before);
}

TEST_F(Unread, TheFirstScanWithoutDescriptorsIsMadeUpForByTheNext) {
  Scanner scanner = this->scanner();
  {
    const NoDescriptors now_there_are_none;
    static_cast<void>(assess(scanner));
  }
  const HostScan later = assess(scanner);
  Scanner fresh = this->fresh();
  health::AssessMemory none;
  EXPECT_EQ(later, health::assess(fresh.scan(), none, now).host);
}

TEST_F(Unread, AnUltraServersFileThatFailsKeepsItsValue) {
  fakes::FakeHost linked("trn2u.48xlarge");
  linked.ultraserver("4:3").write();
  const auto opened = FsRoot::open(linked.path());
  ASSERT_TRUE(opened);
  const Scanner::Options options{.with_topology = false, .with_processes = true};
  Scanner scanner(*opened, options, last);
  const HostScan before = scanner.scan();
  ASSERT_TRUE(before.ultraserver);
  ASSERT_THAT(before.ultraserver->memberships, Not(IsEmpty()));
  for (const char* name : {"ultraserver_mode", "node_id_4", "server_id_4"}) {
    const std::string path = linked.path() + "/sys/class/neuron_device/" + name;
    std::filesystem::rename(path, linked.path() + "/spoilt");
    std::filesystem::create_directory(path);
    const HostScan scan = scanner.scan();
    Scanner another(*opened, options, last);
    EXPECT_EQ(scan.ultraserver, before.ultraserver) << name;
    EXPECT_EQ(another.scan().ultraserver, before.ultraserver) << name << ", by a scanner that took over";
    EXPECT_THAT(sentences(scan.problems), Contains(HasSubstr(std::string(name) + ": ")));
    EXPECT_THAT(sentences(scan.problems), Contains(HasSubstr("what was read last stands")));
    std::filesystem::remove(path);
    std::filesystem::rename(linked.path() + "/spoilt", path);
  }
  HostScan without;
  {
    const NoDescriptors now_there_are_none;
    without = scanner.scan();
  }
  EXPECT_EQ(without.ultraserver, before.ultraserver);
  EXPECT_EQ(scanner.scan(), before);
}

// That nothing is there is known only of a list that was read.
TEST_F(Unread, AListThatWasNeverReadIsNamed) {
  using Kind = model::ScanPart::Kind;
  const std::vector<model::ScanPart> all = {{Kind::devices}, {Kind::pci}, {Kind::efa_classes}};
  Scanner scanner = this->scanner();
  {
    const NoDescriptors now_there_are_none;
    EXPECT_EQ(scanner.scan().unread_lists, all);
    EXPECT_EQ(scanner.scan().unread_lists, all) << "for as long as it lasts";
  }
  EXPECT_THAT(scanner.scan().unread_lists, IsEmpty());
  {
    const NoDescriptors now_there_are_none;
    EXPECT_THAT(scanner.scan().unread_lists, IsEmpty()) << "what was read last stands";
  }
  for (const auto& [list, part] :
       std::map<std::string, model::ScanPart>{{"sys/class/neuron_device", {Kind::devices}},
                                              {"sys/bus/pci/devices", {Kind::pci}},
                                              {"sys/class/infiniband", {Kind::efa_classes}}}) {
    last = std::make_shared<LastSeen>();
    Scanner first = this->scanner();
    spoil(list);
    EXPECT_EQ(first.scan().unread_lists, std::vector{part}) << list;
    mend(list);
    EXPECT_THAT(first.scan().unread_lists, IsEmpty()) << list;
  }
}

// Its default counts where the file is missing, not where it cannot be read.
TEST_F(Unread, AnLncFileThatWasNeverReadLeavesLncUnknown) {
  fakes::FakeHost trn2("trn2.48xlarge");
  trn2.write();
  const auto opened = FsRoot::open(trn2.path());
  ASSERT_TRUE(opened);
  const Scanner::Options options{.with_topology = false, .with_processes = true};
  const std::filesystem::path file = trn2.path() + "/opt/aws/neuron/logical_nc_config";
  std::filesystem::create_directories(file);  // fails as no absence does
  Scanner scanner(*opened, options, last);
  for (int i = 0; i < 2; ++i) {
    const HostScan scan = assess(scanner);
    EXPECT_TRUE(scan.lnc_is_unread);
    EXPECT_EQ(scan.lnc, std::nullopt);
    EXPECT_THAT(sentences(scan.problems), Contains(HasSubstr("are not offered before it has been read")));
  }
  std::filesystem::remove(file);
  EXPECT_EQ(assess(scanner).lnc, (model::Sourced<int>{2, model::Origin::assumed})) << "it is absent";
  std::filesystem::create_directories(file);
  HostScan scan = assess(scanner);
  EXPECT_FALSE(scan.lnc_is_unread) << "its absence was read last";
  EXPECT_EQ(scan.lnc->value, 2);
  std::filesystem::remove(file);
  std::ofstream(file) << "NEURON_LOGICAL_NC_CONFIG=1\n";
  EXPECT_EQ(assess(scanner).lnc->value, 1);
  {
    const NoDescriptors now_there_are_none;
    Scanner another(*opened, options, last);
    scan = assess(another);
  }
  EXPECT_EQ(scan.lnc->value, 1) << "what was read last stands";
}

TEST_F(Unread, AnUltraServersFileThatWasNeverReadIsNoAbsence) {
  for (const char* name : {"ultraserver_mode", "node_id_4", "server_id_4", "server_id_2"}) {
    fakes::FakeHost linked("trn2u.48xlarge");
    linked.ultraserver("4:3").write();
    const auto opened = FsRoot::open(linked.path());
    ASSERT_TRUE(opened);
    const std::string path = linked.path() + "/sys/class/neuron_device/" + name;
    std::filesystem::rename(path, linked.path() + "/spoilt");
    std::filesystem::create_directory(path);
    Scanner scanner(*opened, {.with_topology = false, .with_processes = true});
    EXPECT_TRUE(scanner.scan().ultraserver_is_unread) << name;
    std::filesystem::remove(path);
    std::filesystem::rename(linked.path() + "/spoilt", path);
    const HostScan scan = scanner.scan();
    EXPECT_FALSE(scan.ultraserver_is_unread) << name;
    EXPECT_THAT(scan.ultraserver.value_or(model::UltraServer{}).memberships, Not(IsEmpty()));
  }
  Scanner lone = this->scanner();
  spoil("sys/class/neuron_device");
  EXPECT_TRUE(lone.scan().ultraserver_is_unread) << "the list may have them";
  mend("sys/class/neuron_device");
  EXPECT_FALSE(lone.scan().ultraserver_is_unread);
}

// The node's group depends on it, for as long as the agent runs.
TEST_F(Unread, AnInstanceTypeThatCannotBeReadIsAnError) {
  const std::string file = "sys/devices/virtual/dmi/id/product_name";
  EXPECT_EQ(read_instance_type(*root).value(), "trn1.32xlarge");
  spoil(file);
  EXPECT_FALSE(read_instance_type(*root));
  mend(file);
  std::filesystem::rename(at(file), at("gone"));
  EXPECT_EQ(read_instance_type(*root).value(), "");
}

TEST_F(Unread, AnInterfaceIsNotCalledBrokenForAListThatWasNeverRead) {
  Scanner scanner = this->scanner();
  spoil("sys/class/infiniband_verbs");
  const HostScan scan = assess(scanner);
  mend("sys/class/infiniband_verbs");
  ASSERT_THAT(scan.efas, SizeIs(8));
  for (const auto& efa : scan.efas) {
    EXPECT_EQ(efa.health.state, model::HealthState::unknown);
    EXPECT_EQ(efa.health.reason, "unread");
    EXPECT_THAT(efa.health.sentence, HasSubstr("Not a directory"));
  }
  for (const auto& efa : assess(scanner).efas) EXPECT_EQ(efa.health.state, model::HealthState::healthy);
  memory = {};
  last = std::make_shared<LastSeen>();
  Scanner another = this->scanner();
  spoil("sys/class/infiniband");
  const HostScan named = assess(another);
  mend("sys/class/infiniband");
  for (const auto& efa : named.efas) EXPECT_EQ(efa.health.state, model::HealthState::healthy) << "the function has it";
}

TEST_F(Unread, OneListThatFailsTakesNothingAway) {
  for (const char* list :
       {"sys/class/neuron_device", "sys/bus/pci/devices", "sys/class/infiniband", "sys/class/infiniband_verbs"}) {
    memory = {};
    last = std::make_shared<LastSeen>();
    Scanner scanner = this->scanner();
    const HostScan before = assess(scanner);
    spoil(list);
    const HostScan scan = assess(scanner);
    Scanner another = this->scanner();
    const HostScan of_another = assess(another);
    mend(list);
    EXPECT_THAT(sentences(scan.problems), Contains(HasSubstr(std::string(list) + ": Not a directory")));
    for (const HostScan* one : {&scan, &of_another}) {
      EXPECT_EQ(one->devices.size(), before.devices.size()) << list;
      ASSERT_EQ(one->efas.size(), before.efas.size()) << list;
      for (const auto& device : one->devices) EXPECT_NE(device.presence, model::Presence::vanished) << list;
      for (std::size_t i = 0; i < one->efas.size(); ++i) {
        EXPECT_EQ(one->efas[i].name, before.efas[i].name) << list;
        EXPECT_EQ(one->efas[i].uverbs, before.efas[i].uverbs) << list;
        EXPECT_EQ(one->efas[i].health, before.efas[i].health) << list;
      }
    }
    EXPECT_EQ(assess(scanner), before) << list;
  }
}

TEST_F(Unread, AListThatIsGoneIsAnEmptyOne) {
  Scanner scanner = this->scanner();
  ASSERT_THAT(assess(scanner).devices, SizeIs(16));
  std::filesystem::rename(at("sys/class/neuron_device"), at("gone"));
  for (const auto& device : assess(scanner).devices) EXPECT_EQ(device.presence, model::Presence::vanished);
}

TEST_F(Unread, AFunctionWhoseIdsCouldNotBeReadIsFoundOnceTheyCan) {
  Scanner fresh = this->fresh();
  const HostScan whole = fresh.scan();
  for (const std::string file : {"/vendor", "/device"}) {
    memory = {};
    last = std::make_shared<LastSeen>();
    const std::string path = "sys/bus/pci/devices/" + to_string(whole.efas[2].bdf) + file;
    spoil(path);
    Scanner scanner = this->scanner();
    const HostScan first = assess(scanner);
    EXPECT_THAT(first.efas, SizeIs(7)) << "nothing is known of it yet";
    EXPECT_THAT(sentences(first.problems), Contains(HasSubstr(path)));
    mend(path);
    const HostScan second = assess(scanner);
    EXPECT_THAT(second.efas, SizeIs(8));
    EXPECT_THAT(second.problems, IsEmpty());
  }
}

TEST_F(Unread, AFunctionThatIsKnownStaysWhileItsIdsCannotBeRead) {
  Scanner scanner = this->scanner();
  const HostScan before = assess(scanner);
  const std::string path = "sys/bus/pci/devices/" + to_string(before.efas[2].bdf) + "/device";
  spoil(path);
  std::filesystem::create_directory(at("sys/bus/pci/devices/0000:ff:1f.0"));  // another list: all are identified anew
  const HostScan scan = assess(scanner);
  Scanner another = this->scanner();
  const HostScan of_another = assess(another);
  mend(path);
  for (const HostScan* one : {&scan, &of_another}) {
    ASSERT_THAT(one->efas, SizeIs(8));
    EXPECT_EQ(one->efas[2].health, before.efas[2].health);
    EXPECT_EQ(one->efas[2].name, before.efas[2].name);
  }
}

TEST_F(Unread, AnInterfaceWhoseDriverLinkFailsIsNotUnbound) {
  Scanner scanner = this->scanner();
  const HostScan before = assess(scanner);
  const std::string link = "sys/bus/pci/devices/" + to_string(before.efas[2].bdf) + "/driver";
  std::filesystem::rename(at(link), at("spoilt"));
  std::ofstream(at(link)) << "no link\n";
  const HostScan scan = assess(scanner);
  EXPECT_TRUE(scan.efas[2].driver_bound);
  EXPECT_EQ(scan.efas[2].health, before.efas[2].health);
  EXPECT_THAT(sentences(scan.efas[2].problems), Contains(HasSubstr("not a symbolic link")));
  std::filesystem::remove(at(link));
  EXPECT_FALSE(assess(scanner).efas[2].driver_bound) << "without a link no driver is bound";
}

TEST_F(Unread, APlaceThatCouldNotBeReadIsReadAgain) {
  Scanner fresh = this->fresh();
  const HostScan whole = fresh.scan();
  const std::string path = "sys/bus/pci/devices/" + to_string(whole.efas[2].bdf) + "/numa_node";
  spoil(path);
  Scanner scanner = this->scanner();
  EXPECT_EQ(scanner.scan().efas[2].numa_node, std::nullopt);
  mend(path);
  EXPECT_EQ(scanner.scan(), whole);
}

TEST_F(Unread, FactsOfADeviceThatCouldNotBeReadAreReadAgain) {
  Scanner fresh = this->fresh();
  const HostScan whole = fresh.scan();
  for (const std::string file : {"info/architecture/arch_type", "core_count"}) {
    const std::string path = "sys/class/neuron_device/neuron3/" + file;
    spoil(path);
    Scanner scanner = this->scanner();
    EXPECT_THAT(scanner.scan().devices[3].problems, Not(IsEmpty())) << file;
    mend(path);
    EXPECT_EQ(scanner.scan(), whole) << file;
  }
}

TEST_F(Unread, AFileThatCouldNotBeOpenedMayStillNotExist) {
  std::filesystem::remove(at("sys/class/neuron_device/neuron3/stats/hardware/sram_ecc_uncorrected"));
  Scanner scanner = this->scanner();
  const HostScan whole = scanner.scan();
  {
    const NoDescriptors now_there_are_none;
    static_cast<void>(scanner.scan());
  }
  EXPECT_EQ(scanner.scan(), whole);
}

}  // namespace
}  // namespace neuron::host
