#include "plugin/device/listed_units.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::plugin {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ListedUnits, AreThoseOfRegisteredDevices) {
  const ListedUnits listed = parse_listed_units(
      R"({"Data":{"PodDeviceEntries":[{"ResourceName":"aws.amazon.com/neuron","DeviceIDs":{"0":["7"]}}],)"
      R"("RegisteredDevices":{"aws.amazon.com/neuron":["10","4"],"aws.amazon.com/neurondevice":["4","5"],)"
      R"("aws.amazon.com/neuroncore":["1","0"],"vpc.amazonaws.com/efa":["rdmap16s25"]}},"Checksum":1})");
  EXPECT_THAT(listed.devices, ElementsAre(4, 5, 10));
  EXPECT_THAT(listed.cores, ElementsAre(0, 1));
}

TEST(ListedUnits, OddTextGivesNothing) {
  for (const char* text : {"", "{", "[]", "null", R"({"Data":3})", R"({"Data":{"RegisteredDevices":[]}})",
                           R"({"Data":{"RegisteredDevices":{"aws.amazon.com/neuron":{"0":1}}}})",
                           R"({"Data":{"RegisteredDevices":{"aws.amazon.com/neuron":[0,"-1","x","65536",null]}}})"}) {
    EXPECT_THAT(parse_listed_units(text).devices, IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace neuron::plugin
