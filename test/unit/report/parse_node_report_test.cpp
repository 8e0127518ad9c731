#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "agent/core/catalogue.h"
#include "agent/health/assess.h"
#include "agent/host/fs_root.h"
#include "agent/host/scanner.h"
#include "agent/report/node_report.h"
#include "test/fakes/fake_host.h"

namespace neuron::report {
namespace {

using fakes::FakeHost;
using nlohmann::json;
using testing::HasSubstr;

// As neuron-ls reads it, twice, so that devices can vanish between the two.
class Reader {
 public:
  explicit Reader(const FakeHost& host) : root_(host::FsRoot::open(host.path()).value()) {}
  NodeReport read() {
    model::HostScan scan = scanner_.scan();
    auto empty = empty_lists(scan);
    return make_node_report(health::assess(std::move(scan), memory_, {}).host, std::move(empty));
  }

 private:
  const host::FsRoot root_;
  host::Scanner scanner_{root_, {.with_device_users = true, .kernel_log = host::KernelLogUse::where_allowed}};
  health::AssessMemory memory_;
};

NodeReport read(const FakeHost& host) {
  return Reader(host).read();
}

void expect_same_text(const NodeReport& report, const std::string& what) {
  for (const JsonLayout layout : {JsonLayout::indented, JsonLayout::one_line}) {
    const std::string text = node_report_json(report, layout);
    const auto again = parse_node_report(text);
    ASSERT_TRUE(again) << what << ": " << again.error().message;
    EXPECT_EQ(node_report_json(*again, layout), text) << what;
  }
}

void add_pods(NodeReport& report) {
  report.pods = {{"", "", "", {0}, {0}, {}, ""},
                 {"team", "", "", {}, {}, {"rdmap16s25"}, "nics"},
                 {"default", "a", "main", {1, 2}, {2, 3, 4}, {}, ""},
                 {"default", "b", "m", {3}, {6}, {}, "chips"}};
}

TEST(ParseNodeReport, GivesTheSameTextForEveryInstanceType) {
  for (const core::InstanceType& type : core::all_instance_types()) {
    FakeHost host{std::string(type.name)};
    host.write();
    NodeReport report = read(host);
    expect_same_text(report, std::string(type.name));
    add_pods(report);
    expect_same_text(report, std::string(type.name) + " with pods");
  }
}

TEST(ParseNodeReport, GivesTheSameTextForEveryDriver) {
  for (const char* driver : {"2.24.7.0", "2.25.4.0", "2.27.4.0", "2.28.0.0", "2.30.2.0", "2.31.7.0"}) {
    FakeHost host("trn2.48xlarge");
    host.driver(driver).write();
    expect_same_text(read(host), driver);
  }
}

TEST(ParseNodeReport, GivesTheSameTextForBrokenHosts) {
  FakeHost missing("trn1.32xlarge");
  missing.missing({3, 9}).instance_id("i-0123456789abcdef0").write();
  expect_same_text(read(missing), "missing devices");
  for (const sim::Part part : {sim::Part::efa, sim::Part::uverbs, sim::Part::ioctl, sim::Part::driver}) {
    FakeHost host("trn1.32xlarge");
    host.without(part).write();
    expect_same_text(read(host), "without part " + std::to_string(static_cast<int>(part)));
  }
  FakeHost faulty("trn2.48xlarge");
  faulty.lnc(1).write();
  faulty.set("neuron3", "sram_ecc_uncorrected=1").set("neuron4", "garbage", "core_count").set("neuron5", "vanish");
  expect_same_text(read(faulty), "faults");
  FakeHost vanishing("trn2.48xlarge");
  vanishing.write();
  Reader reader(vanishing);
  static_cast<void>(reader.read());
  vanishing.set("neuron5", "vanish");
  const NodeReport report = reader.read();
  expect_same_text(report, "a device that vanishes");
  const auto again = parse_node_report(node_report_json(report, JsonLayout::one_line));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->host.devices.at(5).presence, model::Presence::vanished);
}

TEST(ParseNodeReport, KeepsWhatIsRare) {
  FakeHost host("trn2.3xlarge");
  host.write();
  NodeReport report = read(host);
  model::NeuronDevice& device = report.host.devices.at(0);
  device.processes = {{4711, 0x81, 1, UINT64_MAX}, {12, std::nullopt, std::nullopt, std::nullopt}};
  report.commands[4711] = "python3 \xe2\x80\xa6 train.py";
  device.health = {model::HealthState::unhealthy, "hw_error", "core 2: 1", "replace the instance"};
  device.core_health.assign(device.cores.size(), {model::HealthState::healthy, "", "", ""});
  device.core_health.at(2) = device.health;
  device.problems = {{model::ProblemKind::absent_neighbours, "sys/x", "3,7"}};
  device.neighbours = {{}, model::Origin::assumed};
  report.host.kernel_log.node_health = {model::HealthState::degraded, "kernel_log_error", "a line", "look"};
  report.host.efas.front().name = "";
  report.host.efas.front().p2p = "";
  expect_same_text(report, "rare values");
  const auto again = parse_node_report(node_report_json(report, JsonLayout::one_line)).value();
  EXPECT_EQ(again.host.devices[0].core_health, device.core_health);
  EXPECT_EQ(again.host.devices[0].processes, device.processes);
  EXPECT_EQ(again.near_efas, report.near_efas);
  EXPECT_EQ(again.core_ids, report.core_ids);
}

// What the document leaves out, since it follows from the rest.
TEST(ParseNodeReport, AddsWhatThePictureShows) {
  FakeHost host("trn2.48xlarge");
  host.write();
  NodeReport report = read(host);
  add_picture(report);
  const auto again = parse_node_report(node_report_json(report, JsonLayout::one_line)).value();
  EXPECT_EQ(again.physical_cores, report.physical_cores);
  EXPECT_EQ(again.pci_keys, report.pci_keys);
  EXPECT_EQ(again.switched, report.switched);
}

json document() {
  FakeHost host("trn2.48xlarge");
  host.write();
  NodeReport report = read(host);
  add_pods(report);
  return json::parse(node_report_json(report, JsonLayout::one_line));
}

TEST(ParseNodeReport, RefusesAnotherFormatAndNamesBoth) {
  json other = document();
  other["format"] = "neuron-ls/\x1b[31m2";
  const auto refused = parse_node_report(other.dump());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::data_corrupt);
  EXPECT_EQ(refused.error().message,
            "the node's document has the format \"neuron-ls/\\x1b[31m2\"; this program reads neuron-ls/1");
  for (const char* text :
       {"", "[]", "{}", "null", "{\"format\":1}", "404 page not found\n", "{\"format\":\"neuron-ls/1\""}) {
    EXPECT_FALSE(parse_node_report(text)) << text;
  }
}

TEST(ParseNodeReport, IgnoresUnknownKeysAndTakesMissingOnesAsUnknown) {
  json changed = document();
  changed["new"] = {{"deep", json::array({1, 2})}};
  changed["devices"][0]["new"] = true;
  changed["devices"][0].erase("serial");
  changed["devices"][0]["processes"] = nullptr;
  changed.erase("pods");
  const auto report = parse_node_report(changed.dump());
  ASSERT_TRUE(report) << report.error().message;
  EXPECT_FALSE(report->host.devices[0].serial);
  EXPECT_FALSE(report->host.devices[0].processes);
  EXPECT_FALSE(report->pods);
  const auto least = parse_node_report(R"({"format":"neuron-ls/1"})");
  ASSERT_TRUE(least);
  EXPECT_TRUE(least->host.devices.empty());
}

TEST(ParseNodeReport, RefusesWhatIsWrongAndNamesTheKey) {
  const json good = document();
  const std::string long_text(5000, 'x');
  const std::vector<std::tuple<std::string, json, std::string>> cases = {
      {"/devices", 7, "devices is not a list of at most 64"},
      {"/devices", json(65, json::object()), "devices is not a list of at most 64"},
      {"/devices/1", "x", "devices is not a list of objects"},
      {"/devices/1/index", 0, "devices[1].index is not above the one before"},
      {"/devices/1/index", nullptr, "devices[1].index"},
      {"/devices/1/index", 1.5, "devices[1].index is not a whole number from 0 to 63"},
      {"/devices/3/core_ids", {1, "x"}, "devices[3].core_ids is not a list of whole numbers from 0 to 9999"},
      {"/devices/3/core_ids", {5, 4}, "devices[3].core_ids is not ascending"},
      {"/devices/3/core_ids", {5, 5}, "devices[3].core_ids is not ascending"},
      {"/devices/3/memory_bytes", -1, "devices[3].memory_bytes"},
      {"/devices/3/bdf/value", "nowhere", "devices[3].bdf.value is not a PCI address"},
      {"/devices/3/bdf/origin", "guessed", "devices[3].bdf.origin is not live or assumed"},
      {"/devices/3/cpus/value", "7-1", "devices[3].cpus.value is not a list of CPUs"},
      {"/devices/3/family", "Trainium9", "devices[3].family"},
      {"/devices/3/health/state", "fine", "devices[3].health.state"},
      {"/devices/3/physical_cores/2/health", "fine", "devices[3].physical_cores[2].health"},
      {"/devices/3/physical_cores/2/physical_index", 32, "devices[3].physical_cores[2].physical_index"},
      {"/devices/3/signals/heartbeat", "1", "devices[3].signals.heartbeat"},
      {"/devices/3/nearest_efa_interfaces", {"rdmap99s99"}, "devices[3].nearest_efa_interfaces"},
      {"/devices/3/device_node", "yes", "devices[3].device_node is not true or false"},
      {"/devices/3/logical_to_physical", {99}, "devices[3].logical_to_physical"},
      {"/efa_interfaces/0/bdf", nullptr, "efa_interfaces[0].bdf"},
      {"/efa_interfaces/0/pci_device_id", "0x10000", "efa_interfaces[0].pci_device_id"},
      {"/efa_interfaces/0/name", long_text, "efa_interfaces[0].name is not a text of at most 4096 bytes"},
      {"/pods/1/core_ids", {1000000}, "pods[1].core_ids"},
      {"/pods/1/claim", 3, "pods[1].claim"},
      {"/host", {1}, "host is not an object"},
      {"/host/expected_devices", 18446744073709551615U, "host.expected_devices"},
      {"/driver/layout", "v9", "driver.layout"},
      {"/logical_neuroncore_config/value", 3, "logical_neuroncore_config.value"},
      {"/problems", {7}, "problems is not a list of texts"},
  };
  for (const auto& [where, value, message] : cases) {
    json bad = good;
    bad[json::json_pointer(where)] = value;
    const auto refused = parse_node_report(bad.dump());
    ASSERT_FALSE(refused) << where;
    EXPECT_EQ(refused.error().code, ErrorCode::data_corrupt);
    EXPECT_THAT(refused.error().message, HasSubstr("the node's document: " + message));
  }
}

TEST(ParseNodeReport, IsBounded) {
  EXPECT_FALSE(parse_node_report(std::string(kMostDocumentBytes + 1, ' ')));
  EXPECT_FALSE(parse_node_report(std::string(1 << 17, '[')));
  std::string deep = R"({"format":"neuron-ls/1","x":)" + std::string(1 << 17, '[') + std::string(1 << 17, ']') + "}";
  EXPECT_TRUE(parse_node_report(deep)) << "of an unknown key";
  json many = document();
  for (int i = 0; i < 4097; ++i) many["pods"].push_back(json::object());
  EXPECT_FALSE(parse_node_report(many.dump()));
  const std::string whole = document().dump();
  for (std::size_t length = 0; length < whole.size(); length += 9973) {
    EXPECT_FALSE(parse_node_report(whole.substr(0, length)));
  }
}

}  // namespace
}  // namespace neuron::report
