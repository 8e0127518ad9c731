#include "tools/neuron-agent/reports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/agent/checked_node.h"
#include "test/unit/render/golden.h"

namespace neuron::agent::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// As it is printed for a simulated host without more: `neuron-agent check --root DIR`.
Report check_plainly(const fakes::FakeHost& host, ReportForm output = ReportForm::text) {
  Options options;
  options.root = host.path();
  options.output = output;
  return check_node(options);
}

void expect_text(const std::string& golden, const fakes::FakeHost& host, Verdict verdict) {
  const Report report = check_plainly(host);
  EXPECT_EQ(report.verdict, verdict);
  EXPECT_EQ(report.error, "");
  neuron::test::expect_golden("../../agent/golden/" + golden, report.output);
}

TEST(CheckCommand, HealthyTrn1) {
  fakes::FakeHost host("trn1.32xlarge");
  expect_text("healthy_trn1.txt", host.write(), Verdict::good);
}

TEST(CheckCommand, WithoutDriver) {
  fakes::FakeHost host("trn1.32xlarge");
  expect_text("without_driver.txt", host.without(sim::Part::driver).write(), Verdict::findings);
}

TEST(CheckCommand, WithoutUverbs) {
  fakes::FakeHost host("trn1.32xlarge");
  expect_text("without_uverbs.txt", host.without(sim::Part::uverbs).write(), Verdict::findings);
}

TEST(CheckCommand, WithAMissingDevice) {
  fakes::FakeHost host("trn1.32xlarge");
  expect_text("missing_device.txt", host.missing({3}).write(), Verdict::findings);
}

TEST(CheckCommand, EfaOnlyGpuNode) {
  fakes::FakeHost host("p5.48xlarge");
  expect_text("gpu_node.txt", host.write(), Verdict::good);
}

// Several things at once, in the order they are told.
TEST(CheckCommand, SickNode) {
  CheckedNode node("trn2.48xlarge");
  node.host.file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "0\n").write();
  node.host.set("neuron4", "sram_ecc_uncorrected=2").set("neuron9", "unhealthy_components=hbm,link_efa");
  node.host.set("rdmap201s0", "p2p=").set("rdmap202s0", "unbind");
  node.touch("device-plugins/neuron-devplugin.sock");
  const Report report = node.check();
  EXPECT_EQ(report.verdict, Verdict::findings);
  std::string text = report.output;
  for (auto at = text.find(node.kubelet); at != std::string::npos; at = text.find(node.kubelet)) {
    text.replace(at, node.kubelet.size(), "/var/lib/kubelet");
  }
  // Where words break depends on the length of the temporary path, so only the rest is compared.
  EXPECT_THAT(text, HasSubstr("/var/lib/kubelet/device-plugins/neuron-devplugin.sock"));
  neuron::test::expect_golden("../../agent/golden/sick_trn2.txt", text.substr(0, text.find("warning: AWS's")));
}

TEST(CheckCommand, JsonHoldsTheSame) {
  fakes::FakeHost host("trn1.32xlarge");
  host.missing({3}).write();
  const Report report = check_plainly(host, ReportForm::json);
  EXPECT_EQ(report.verdict, Verdict::findings);
  neuron::test::expect_golden("../../agent/golden/missing_device.json", report.output);
}

TEST(CheckCommand, ArchiveAsRoot) {
  fakes::FakeHost host("trn1.2xlarge");
  host.write();
  const std::string archive = host.path() + "/../" + std::filesystem::path(host.path()).filename().string() + ".tar.gz";
  ASSERT_EQ(std::system(("tar -C " + host.path() + " -czf " + archive + " .").c_str()), 0);
  Options options;
  options.root = archive;
  const Report report = check_node(options);
  EXPECT_THAT(report.output, HasSubstr("nothing wrong: trn1.2xlarge, 1 device, no EFA interface"));
  std::filesystem::remove(archive);
}

void expect_cannot_tell(Options options, const std::string& why) {
  const Report text = check_node(options);
  EXPECT_EQ(text.verdict, Verdict::cannot_tell);
  EXPECT_EQ(text.output, "");
  EXPECT_THAT(text.error, HasSubstr(why));
  EXPECT_THAT(text.error, Not(HasSubstr("\n")));
  options.output = ReportForm::json;
  const auto document = nlohmann::json::parse(check_node(options).output);
  EXPECT_EQ(document.at("schema"), "neuron-check/1");
  EXPECT_EQ(document.at("verdict"), "cannot_tell");
  EXPECT_THAT(document.at("reason").get<std::string>(), HasSubstr(why));
}

TEST(CheckCommand, CannotTellWithoutAMachine) {
  Options options;
  options.root = "/no/such/root";
  expect_cannot_tell(options, "/no/such/root");
  expect_cannot_tell(options, "set --root");
  std::string empty = std::filesystem::temp_directory_path().string() + "/neuron-check-XXXXXX";
  ASSERT_NE(::mkdtemp(empty.data()), nullptr);
  options.root = empty;
  expect_cannot_tell(options, "contains no sys/ of a machine");
  std::filesystem::remove(empty);
}

// hwloc waits for a writer of this FIFO for ever, as a read of a driver that hangs would.
TEST(CheckCommand, CannotTellWhenReadingTakesTooLong) {
  fakes::FakeHost host("trn1.32xlarge");
  host.write();
  Options options;
  options.root = host.path();
  options.timeout = std::chrono::milliseconds(1);  // a process is not even started in that
  expect_cannot_tell(options, "took longer than 1 ms");
}

TEST(CheckCommand, AFileThatBlocksHoldsNothingUp) {
  fakes::FakeHost host("trn1.2xlarge");
  host.write().set("host", "fifo", "proc/cpuinfo");
  EXPECT_EQ(check_plainly(host).verdict, Verdict::good);
}

TEST(CheckCommand, KubeletIsLookedAtOnlyWhereItBelongs) {
  fakes::FakeHost host("trn1.2xlarge");
  host.write();
  EXPECT_THAT(check_plainly(host).output, HasSubstr("kubelet: not examined"));
  CheckedNode node("trn1.2xlarge");
  node.host.write();
  EXPECT_THAT(node.check().output, Not(HasSubstr("kubelet")));
}

TEST(CheckCommand, FabricThatIsNotAskedIsSaidSo) {
  CheckedNode node("trn1.32xlarge");
  node.host.write();
  EXPECT_THAT(node.check().output, HasSubstr("libfabric: not tried: the root is a captured or simulated machine"));
  Options options = node.options();
  options.no_fabric = true;
  EXPECT_THAT(check_node(options).output, HasSubstr("libfabric: not tried: --no-fabric is given"));
}

}  // namespace
}  // namespace neuron::agent::test
