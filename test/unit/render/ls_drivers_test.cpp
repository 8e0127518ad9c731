// neuron-ls against every driver generation, and against machines that are large, small, odd, slow or in motion.
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <regex>
#include <thread>

#include "agent/core/catalogue.h"
#include "test/unit/render/golden.h"
#include "test/unit/render/json_schema.h"
#include "test/unit/render/ls_program.h"

namespace neuron {
namespace {

namespace fs = std::filesystem;
using test::Outcome;
using ::testing::HasSubstr;
using ::testing::Not;

class LsDrivers : public test::LsProgram {};
class LsDriversOf : public test::LsProgram, public ::testing::WithParamInterface<std::string> {};

const std::vector<std::string> kDrivers = {"2.24.7.0", "2.27.4.0", "2.28.0.0", "2.30.2.0"};

bool drives(const std::string& driver, model::Family family) {
  const bool old = driver == kDrivers.front();
  return family == model::Family::inferentia ? old : family != model::Family::trainium3 || !old;
}

// The goldens of neuron_ls_test.cpp, one per type, hold whatever the driver.
TEST_P(LsDriversOf, AllDriversShowTheSame) {
  const core::InstanceType& type = *core::find_instance_type(GetParam());
  for (const std::string& driver : kDrivers) {
    if (!drives(driver, *type.family)) continue;
    simulate(type.name, driver);
    const Outcome outcome = run("");
    EXPECT_EQ(outcome.exit_code, 0) << driver << ": " << outcome.err;
    test::expect_golden("host/" + type.name + ".txt", outcome.out);
    const auto official = test::parse_strictly(run("-j").out);
    ASSERT_TRUE(official) << driver;
    EXPECT_EQ(official->size(), static_cast<std::size_t>(type.device_count));
  }
}

std::vector<std::string> neuron_types() {
  std::vector<std::string> names;
  for (const core::InstanceType& type : core::all_instance_types()) {
    if (type.family) names.push_back(type.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Types, LsDriversOf, ::testing::ValuesIn(neuron_types()), [](const auto& type) {
  return std::regex_replace(type.param, std::regex("[^A-Za-z0-9]"), "_");
});

TEST_F(LsDrivers, BusyNodes) {
  simulate("trn1.32xlarge");
  occupy({0, 1, 4});
  test::expect_golden("host/trn1.32xlarge.busy.txt", run("").out);
  test::expect_golden("host/trn1.32xlarge.busy-all.txt", run("-a").out);
  simulate("trn2.48xlarge");
  occupy({0, 15});
  test::expect_golden("host/trn2.48xlarge.busy.txt", run("").out);
}

TEST_F(LsDrivers, ContainerWithFourDevices) {
  simulate("trn2.48xlarge");
  occupy({4, 5});
  for (int i = 0; i < 16; ++i) {
    if (i < 4 || i > 7) fs::remove(host() / "dev" / ("neuron" + std::to_string(i)));
  }
  fs::remove_all(host() / "proc");  // its own proc tells nothing about the host's processes
  test::expect_golden("host/trn2.48xlarge.container.txt", run("").out);
}

TEST_F(LsDrivers, BrokenNode) {
  sim::HostPlan plan;
  plan.instance_type = "trn1.32xlarge";
  plan.missing = {6};
  simulate(plan);
  set("neuron3", "sram_ecc_uncorrected=4");
  set("neuron7", "garbage", "serial_number");
  set("rdmap16s25", "unbind");
  test::expect_golden("host/trn1.32xlarge.broken.txt", run("").out);
  test::expect_golden("host/trn1.32xlarge.broken-topology.txt", run("-t").out);
  test::expect_golden("host/trn1.32xlarge.broken-health.txt", run("--health --efa").out);
}

TEST_F(LsDrivers, UnknownLayoutKeepsWhatIsKnown) {
  simulate("trn2.3xlarge", "2.31.7.0");
  const Outcome outcome = run("--health");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("has a layout unknown to this program"));
  EXPECT_THAT(outcome.out, Not(HasSubstr("all healthy")));
}

TEST_F(LsDrivers, CommaDecimalLocaleChangesNothing) {
  simulate("trn1.2xlarge");
  occupy({0});
  const Outcome plain = run("-a -w");
  for (const char* locale : {"de_DE.UTF-8", "fr_FR.UTF-8", "tr_TR.UTF-8", "C"}) {
    const Outcome other = run_raw("-a -w --root " + host().string(), std::string("LC_ALL=") + locale);
    EXPECT_EQ(other.out, plain.out) << locale;
  }
  EXPECT_EQ(run_raw("--output-format json --root " + host().string(), "LC_ALL=de_DE.UTF-8").out,
            run("--output-format json").out);
}

// No instance has more than 16, but the driver's own bound is 64.
TEST_F(LsDrivers, SixtyFourDevicesAndOne) {
  simulate("trn1.32xlarge");
  for (int i = 16; i < 64; ++i) {
    const std::string name = "neuron" + std::to_string(i);
    fs::copy(host() / "sys/class/neuron_device" / ("neuron" + std::to_string(i % 16)),
             host() / "sys/class/neuron_device" / name, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    write("dev/" + name, "");
  }
  const Outcome many = run("");
  EXPECT_EQ(many.exit_code, 0);
  EXPECT_THAT(many.out, HasSubstr("| 63     | 2      | 126-127  | 32 GB  |"));
  const auto list = test::parse_strictly(run("-j").out);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->size(), 64U);
  EXPECT_THAT(run("-t").out, HasSubstr("Neuron Device Topology"));
  simulate("inf1.xlarge");
  EXPECT_EQ(test::parse_strictly(run("-j").out)->size(), 1U);
}

void replace_by_fifo(const fs::path& path) {
  fs::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0644), 0);
}

TEST_F(LsDrivers, FilesThatBlockCostOneUnknownValue) {
  simulate("trn1.32xlarge");
  replace_by_fifo(host() / "sys/class/neuron_device/neuron2/connected_devices");
  replace_by_fifo(host() / "sys/class/neuron_device/neuron3/info/serial_number");
  replace_by_fifo(host() / "neuron-ioctl/neuron4.json");
  const Outcome outcome = run("");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.out, HasSubstr("| 2      | 2      | 4-5      | 32 GB  | 14, 1, 6, 3 "));  // from the table
  EXPECT_THAT(outcome.out, HasSubstr("| 4      | 2      | 8-9      | 32 GB  | 0, 7, 8, 5    | NA  "));
  const auto report = test::parse_strictly(run("--output-format json").out);
  ASSERT_TRUE(report);
  EXPECT_EQ((*report)["devices"][2]["connected_to"]["origin"], "assumed");
  EXPECT_TRUE((*report)["devices"][3]["serial"].is_null());
  EXPECT_FALSE((*report)["devices"][3]["problems"].empty());
  EXPECT_TRUE((*report)["devices"][5]["problems"].empty());
}

TEST_F(LsDrivers, AHostThatChangesWhileBeingReadIsListedAsItIsFound) {
  simulate("trn1.32xlarge");
  std::atomic<bool> done = false;
  std::thread changer([&] {
    while (!done) {
      set("neuron5", "vanish");
      set("neuron5", "heal");
    }
  });
  for (int round = 0; round < 20; ++round) {
    const Outcome outcome = run("-j");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    const auto list = test::parse_strictly(outcome.out);
    ASSERT_TRUE(list) << outcome.out;
    EXPECT_GE(list->size(), 15U);
    EXPECT_LE(list->size(), 16U);
  }
  done = true;
  changer.join();
}

// As a user who is not root, be it that the tests run as root.
class LsRights : public LsDrivers {
 protected:
  [[nodiscard]] Outcome run_unprivileged() const {
    fs::permissions(directory_, fs::perms::others_read | fs::perms::others_exec, fs::perm_options::add);
    const std::string prefix = ::geteuid() == 0 ? "setpriv --reuid 65534 --regid 65534 --clear-groups" : "";
    return run_raw("--root " + host().string(), prefix);
  }
  void SetUp() override {
    LsDrivers::SetUp();
    if (::geteuid() == 0 && std::system("setpriv --reuid 65534 --regid 65534 --clear-groups true 2>/dev/null") != 0) {
      GTEST_SKIP() << "setpriv does not work here";
    }
  }
};

TEST_F(LsRights, OldDriversTellOnlyRootUnlessTheTypeIsKnown) {
  simulate("trn1.32xlarge", "2.27.4.0");
  const Outcome known = run_unprivileged();
  if (known.exit_code == 126 || known.exit_code == 127) GTEST_SKIP() << "another user may not run the program";
  EXPECT_EQ(known.exit_code, 0) << known.err;
  EXPECT_EQ(known.out, run("").out) << "the tables of the instance type fill in";
  write("sys/devices/virtual/dmi/id/product_name", "unheard.of\n");
  const Outcome unknown = run_unprivileged();
  EXPECT_EQ(unknown.exit_code, 1);
  EXPECT_EQ(unknown.out, "");
  EXPECT_EQ(std::count(unknown.err.begin(), unknown.err.end(), '\n'), 2) << unknown.err;
  EXPECT_THAT(unknown.err, HasSubstr("run it as root (required by drivers up to 2.27)"));
  EXPECT_EQ(run("").exit_code, ::geteuid() == 0 ? 0 : 1);
}

TEST_F(LsRights, AClassDirectoryThatMayNotBeRead) {
  simulate("trn1.2xlarge");
  const fs::path directory = host() / "sys/class/neuron_device";
  fs::permissions(directory, fs::perms::owner_write);
  const Outcome outcome = run_unprivileged();
  fs::permissions(directory, fs::perms::owner_all);
  if (outcome.exit_code == 126 || outcome.exit_code == 127) GTEST_SKIP() << "another user may not run the program";
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("this user cannot read " + host().string() + "/sys/class/neuron_device"));
}

TEST_F(LsDrivers, NoVariantOfAMachineBreaksTheJson) {
  for (const std::string driver : {"2.24.7.0", "2.31.7.0"}) {
    simulate("trn1.2xlarge", driver);
    write("sys/devices/virtual/dmi/id/product_name", "\xff\xfe\"\\\n");
    write("sys/module/neuron/version", "\x01\x02");
    for (const char* arguments : {"-j", "-j -a -w", "--output-format json"}) {
      EXPECT_TRUE(test::parse_strictly(run(arguments).out)) << arguments;
    }
  }
}

}  // namespace
}  // namespace neuron
