// Scans that leave parts of the machine out, since an earlier read of them hangs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "agent/host/scanner.h"
#include "test/fakes/fake_host.h"

namespace neuron::host {
namespace {

using model::HostScan;
using model::Presence;
using model::ScanPart;
using testing::Contains;
using testing::IsEmpty;
using testing::SizeIs;
using Kind = ScanPart::Kind;

struct ScannerParts : testing::Test {
  fakes::FakeHost host{"trn1.32xlarge"};
  std::optional<FsRoot> root;

  void SetUp() override {
    host.write();
    auto opened = FsRoot::open(host.path());
    ASSERT_TRUE(opened);
    root.emplace(*std::move(opened));
  }
  [[nodiscard]] Scanner scanner() const { return {*root, {.with_topology = false, .with_processes = true}}; }
  static model::MayRead all_but(ScanPart part) {
    return [part](const ScanPart& one) { return one != part; };
  }
  // What one scan asks for, each part once.
  [[nodiscard]] std::vector<ScanPart> parts() const {
    std::vector<ScanPart> asked;
    (void)scanner().scan([&](const ScanPart& part) {
      if (std::find(asked.begin(), asked.end(), part) == asked.end()) asked.push_back(part);
      return true;
    });
    return asked;
  }
};

TEST_F(ScannerParts, WhateverWasLeftOutIsReadOnceItMayBe) {
  const HostScan whole = scanner().scan();
  const auto asked = parts();
  EXPECT_THAT(asked, SizeIs(4 + 16 + 16 + 16 + 1 + 8 + 8));
  for (const ScanPart& part : asked) {
    Scanner scanner = this->scanner();
    const HostScan scan = scanner.scan(all_but(part));
    EXPECT_EQ(scan == whole, part.kind == Kind::topology) << to_string(part);  // this scanner asks no hwloc
    EXPECT_THAT(scan.problems, IsEmpty()) << to_string(part);
    for (const auto& device : scan.devices) EXPECT_THAT(device.problems, IsEmpty()) << to_string(part);
    EXPECT_EQ(scanner.scan(), whole) << to_string(part);
  }
}

TEST_F(ScannerParts, NothingMayBeRead) {
  EXPECT_EQ(scanner().scan([](const ScanPart&) { return false; }), HostScan{});
}

TEST_F(ScannerParts, ADeviceLeftOutKeepsItsPlace) {
  const HostScan whole = scanner().scan();
  const HostScan scan = scanner().scan(all_but({Kind::device, 3}));
  ASSERT_THAT(scan.devices, SizeIs(16));
  EXPECT_EQ(scan.devices[3].index, 3);
  EXPECT_EQ(scan.devices[3].presence, Presence::not_answering);
  EXPECT_EQ(scan.devices[3].family, whole.devices[3].family) << "which PCI tells";
  EXPECT_EQ(scan.devices[2], whole.devices[2]);
  EXPECT_EQ(scan.layout, whole.layout);
  EXPECT_EQ(scan.efas, whole.efas);
}

TEST_F(ScannerParts, MemoryLeftOutLeavesTheDeviceAndItsHealth) {
  const HostScan whole = scanner().scan();
  const HostScan scan = scanner().scan(all_but({Kind::memory, 3}));
  HostScan expected = whole;
  for (model::CoreSignals& core : expected.devices[3].cores) core.device_memory_bytes.reset();
  EXPECT_NE(expected, whole);
  EXPECT_EQ(scan, expected);
}

TEST_F(ScannerParts, ADriverThatIsNotAskedLeavesTheFilesOfItsDevice) {
  const HostScan scan = scanner().scan(all_but({Kind::driver, 3}));
  EXPECT_EQ(scan.devices[3].presence, Presence::not_answering);
  EXPECT_EQ(scan.devices[3].signals.sram_ecc_uncorrected, 0U);
  EXPECT_FALSE(scan.devices[3].bdf);
}

TEST_F(ScannerParts, AnInterfaceLeftOutKeepsItsName) {
  const HostScan whole = scanner().scan();
  const HostScan scan = scanner().scan(all_but({Kind::efa, 0, whole.efas[2].bdf}));
  ASSERT_THAT(scan.efas, SizeIs(8));
  EXPECT_EQ(scan.efas[2].presence, Presence::not_answering);
  EXPECT_EQ(scan.efas[2].name, whole.efas[2].name);
  EXPECT_EQ(scan.efas[1], whole.efas[1]);
  EXPECT_THAT(parts(), Contains(ScanPart{Kind::verbs, 0}));
}

}  // namespace
}  // namespace neuron::host
