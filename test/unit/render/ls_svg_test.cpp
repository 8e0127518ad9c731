// neuron-ls --output-format svg on simulated machines of every type.
#include <gmock/gmock.h>

#include <fstream>

#include "agent/core/catalogue.h"
#include "test/unit/render/golden.h"
#include "test/unit/render/ls_program.h"
#include "tools/neuron-ls/node_reader.h"
#include "tools/render/node_report.h"
#include "tools/render/node_svg.h"

namespace neuron {
namespace {

using render::Box;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class LsSvg : public test::LsProgram {
 protected:
  [[nodiscard]] render::NodeReport report() const {
    ls::Options options;
    options.format = ls::Format::svg;
    options.root = host().string();
    auto root = host::FsRoot::open(options.root);
    return ls::NodeReader(std::make_shared<const host::FsRoot>(*std::move(root)), options).read().report;
  }
};

bool overlap(const Box& a, const Box& b) {
  return a.x < b.right() && b.x < a.right() && a.y < b.bottom() && b.y < a.bottom();
}

std::vector<Box> boxes_of(const render::NodeLayout& layout) {
  std::vector<Box> boxes;
  for (const auto& device : layout.devices) boxes.push_back(device.box);
  for (const auto& efa : layout.efas) boxes.push_back(efa.box);
  if (layout.fabric_switch) boxes.push_back(*layout.fabric_switch);
  for (const auto& group : layout.efa_groups) boxes.push_back(group.title);
  for (const auto& wrap : layout.wraps) boxes.push_back({wrap.x - 12, wrap.y - 12, 24, 24});
  return boxes;
}

void expect_apart_and_inside(const render::NodeLayout& layout, int top) {
  const std::vector<Box> boxes = boxes_of(layout);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].x, 0);
    EXPECT_LE(boxes[i].right(), render::kPictureWidth);
    EXPECT_GE(boxes[i].y, top);
    EXPECT_LE(boxes[i].bottom(), layout.bottom);
    for (std::size_t k = 0; k < i; ++k) EXPECT_FALSE(overlap(boxes[i], boxes[k])) << i << " and " << k;
  }
}

bool holds(const Box& outer, const Box& inner) {
  return outer.x <= inner.x && outer.y <= inner.y && outer.right() >= inner.right() && outer.bottom() >= inner.bottom();
}

// Frames of one level do not overlap, and each box is wholly inside or wholly outside each frame.
void expect_frames_to_be_clean(const render::NodeLayout& layout) {
  for (const auto& frame : layout.frames) {
    EXPECT_GE(frame.box.x, 0);
    EXPECT_LE(frame.box.right(), render::kPictureWidth);
    for (const auto& other : layout.frames) {
      if (&frame == &other) continue;
      const bool nested = frame.level != other.level && (holds(frame.box, other.box) || holds(other.box, frame.box));
      EXPECT_TRUE(nested || !overlap(frame.box, other.box)) << frame.title << " and " << other.title;
    }
    for (const auto& device : layout.devices) {
      EXPECT_TRUE(holds(frame.box, device.box) || !overlap(frame.box, device.box)) << frame.title;
    }
    for (const auto& efa : layout.efas) {
      EXPECT_TRUE(holds(frame.box, efa.box) || !overlap(frame.box, efa.box)) << frame.title;
    }
  }
}

// A link ends at boxes and passes through no interface.
void expect_links_to_be_clear(const render::NodeLayout& layout) {
  for (const auto& link : layout.links) {
    const Box line{std::min(link.x1, link.x2), std::min(link.y1, link.y2), std::abs(link.x2 - link.x1) + 1,
                   std::abs(link.y2 - link.y1) + 1};
    for (const auto& efa : layout.efas) EXPECT_FALSE(overlap(line, efa.box));
  }
}

TEST_F(LsSvg, EveryTypeFitsWithoutOverlapsAndIsWellFormed) {
  std::string files;
  for (const core::InstanceType& type : core::all_instance_types()) {
    SCOPED_TRACE(type.name);
    simulate(type.name);
    const render::NodeReport node = report();
    const render::NodeLayout layout = render::lay_out(node, 100);
    EXPECT_EQ(layout.devices.size(), static_cast<std::size_t>(type.device_count));
    EXPECT_EQ(layout.efas.size(), static_cast<std::size_t>(type.efa_count));
    expect_apart_and_inside(layout, 100);
    expect_frames_to_be_clean(layout);
    expect_links_to_be_clear(layout);
    const std::string file = (directory_ / (type.name + ".svg")).string();
    std::ofstream(file, std::ios::binary) << render::node_svg(node);
    files += ' ' + file;
  }
  const std::string parse =
      "python3 -c 'import sys, xml.etree.ElementTree as e; [e.parse(f) for f in sys.argv[1:]]'" + files;
  EXPECT_EQ(std::system(parse.c_str()), 0);
}

// The torus is rotated so that the pairs on a switch, which wrap around in the order of their numbers, are side by
// side.
TEST_F(LsSvg, SwitchesAndNumaNodesAreFrames) {
  for (const auto& [type, frames] : std::map<std::string, std::size_t>{
           {"trn2.48xlarge", 8 + 2}, {"trn1.32xlarge", 4 + 2}, {"trn1n.32xlarge", 4 + 2}, {"inf1.24xlarge", 4}}) {
    simulate(type);
    EXPECT_EQ(render::lay_out(report(), 100).frames.size(), frames) << type;
  }
}

TEST_F(LsSvg, SmallMachinesAsGolden) {
  simulate("trn2.3xlarge");
  test::expect_golden("host/trn2.3xlarge.svg", run("--output-format svg").out);
  simulate("inf2.24xlarge");
  set("neuron4", "mem_ecc_uncorrected=2");
  test::expect_golden("host/inf2.24xlarge.ill.svg", run("--output-format svg").out);
}

TEST_F(LsSvg, FaultsOfDevicesCoresAndInterfacesAreToldApart) {
  simulate("trn2.48xlarge");
  set("neuron5", "core_count=9");
  set("rdmap202s0", "unbind");
  set("rdmap201s0", "p2p=");
  const auto outcome = run("--output-format svg");
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("neuron5 is unhealthy: core_missing"));
  EXPECT_THAT(outcome.out, HasSubstr("0000:ca:00.0 is unhealthy: efa_driver_unbound"));
  EXPECT_THAT(outcome.out, HasSubstr("rdmap201s0 is degraded: no_peer_memory"));
}

TEST_F(LsSvg, WhatCouldNotBeReadAndWhatIsOfTheNodeIsSaid) {
  simulate("trn1.32xlarge");
  set("neuron3", "garbage", "connected_devices");
  EXPECT_THAT(run("--output-format svg").out, HasSubstr("no problem found, 1 value unread"));
  set("host", "kernel_log=NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR");
  const std::string out = run("--output-format svg").out;
  EXPECT_THAT(out, HasSubstr("1 unhealthy, 1 value unread"));
  EXPECT_THAT(out, HasSubstr("this node is unhealthy: sram_ecc_uncorrected"));
}

TEST_F(LsSvg, InAContainerTheDevicesOfOthersArePale) {
  simulate("inf2.24xlarge");
  EXPECT_THAT(run("--output-format svg").out, Not(HasSubstr("not in this container")));
  for (int i = 1; i < 6; ++i) std::filesystem::remove(host() / "dev" / ("neuron" + std::to_string(i)));
  const std::string out = run("--output-format svg").out;
  EXPECT_THAT(out, HasSubstr("pale: not in this container"));
  EXPECT_THAT(out, HasSubstr("no problem found"));
}

TEST_F(LsSvg, ANodeWithInterfacesAloneIsDrawnToo) {
  simulate("p5.48xlarge");
  const auto outcome = run("--output-format svg");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("32 EFA interfaces"));
}

TEST_F(LsSvg, IsOfTheWholeMachineAndDrawnOnce) {
  simulate("inf2.24xlarge");
  EXPECT_EQ(run("--output-format svg --device 3").out, run("--output-format svg").out);
  const auto outcome = run("--output-format svg --watch 1");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_THAT(outcome.out, IsEmpty());
  EXPECT_THAT(outcome.err, HasSubstr("--watch cannot be combined with --output-format svg"));
}

}  // namespace
}  // namespace neuron
