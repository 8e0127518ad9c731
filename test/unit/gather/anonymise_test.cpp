#include "tools/neuron-gather/capture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/gather/capture_of.h"

namespace neuron::gather {
namespace {

const std::string kNeuron = "sys/devices/virtual/neuron_device/neuron";
const std::string kTag = "sys/devices/virtual/dmi/id/board_asset_tag";

Capture sample() {
  Capture capture;
  capture.add_file(kNeuron + "0/info/serial_number", "7c627e54393ae198\n");
  capture.add_file(kNeuron + "1/info/serial_number", "7c627f54393aee67\n");
  capture.add_file(kNeuron + "2/info/serial_number", "0000000000000000\n");
  capture.add_file(kNeuron + "3/info/serial_number", "unavailable\n");
  capture.add_file(kTag, "i-08c5d36b2392f845e\n");
  capture.add_file("NOTE", "seen on i-08c5d36b2392f845e, chip 7c627f54393aee67\n");
  capture.add_file("sys/x/infiniband/a/node_guid", "02f2:54ff:feda:189e\n");
  capture.add_file("sys/x/infiniband/a/sys_image_guid", "0000:0000:0000:0000\n");
  capture.add_file("sys/x/infiniband/a/ports/1/gids/0", "fe80:0000:0000:0000:02f2:54ff:feda:189e\n");
  capture.add_file("sys/x/infiniband/b/node_guid", "0243:5eff:fef6:9320\n");
  capture.add_file("sys/class/neuron_device/server_id_4", "92f5a1b2c3d4e5f6\n");
  capture.add_link("sys/link", "NOTE", "");
  return capture;
}

TEST(AnonymiseTest, ReplacesConsistentlyAndInTheSameFormat) {
  Capture capture = sample();
  anonymise(capture);
  EXPECT_EQ(text_in(capture, "sys/class/neuron_device/server_id_4"), "0000000000000001\n");
  EXPECT_EQ(text_in(capture, kNeuron + "0/info/serial_number"), "0000000000000002\n");
  EXPECT_EQ(text_in(capture, kNeuron + "1/info/serial_number"), "0000000000000003\n");
  EXPECT_EQ(text_in(capture, kTag), "i-00000000000000001\n");
  EXPECT_EQ(text_in(capture, "NOTE"), "seen on i-00000000000000001, chip 0000000000000003\n");
  EXPECT_EQ(text_in(capture, "sys/x/infiniband/a/node_guid"), "0200:0000:0000:0001\n");
  EXPECT_EQ(text_in(capture, "sys/x/infiniband/a/ports/1/gids/0"), "fe80:0000:0000:0000:0200:0000:0000:0001\n");
  EXPECT_EQ(text_in(capture, "sys/x/infiniband/b/node_guid"), "0200:0000:0000:0002\n");
}

TEST(AnonymiseTest, LeavesZerosAndOddTextsAlone) {
  Capture capture = sample();
  anonymise(capture);
  EXPECT_EQ(text_in(capture, kNeuron + "2/info/serial_number"), "0000000000000000\n");
  EXPECT_EQ(text_in(capture, kNeuron + "3/info/serial_number"), "unavailable\n");
  EXPECT_EQ(text_in(capture, "sys/x/infiniband/a/sys_image_guid"), "0000:0000:0000:0000\n");
  EXPECT_EQ(text_in(capture, "sys/link"), "../NOTE");
}

TEST(AnonymiseTest, TwiceIsOnce) {
  Capture once = sample();
  anonymise(once);
  Capture twice = once;
  anonymise(twice);
  EXPECT_EQ(twice.entries(), once.entries());
}

TEST(AnonymiseTest, TellsNothingOfTheOldOnes) {
  Capture first = sample();
  Capture second = sample();
  second.add_file(kNeuron + "0/info/serial_number", "00c0ffee00c0ffee\n");
  anonymise(first);
  anonymise(second);
  EXPECT_EQ(text_in(first, kNeuron + "0/info/serial_number"), text_in(second, kNeuron + "0/info/serial_number"));
}

}  // namespace
}  // namespace neuron::gather
