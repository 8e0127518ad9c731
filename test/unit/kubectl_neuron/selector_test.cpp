// CEL expressions of classes and requests: the usual shapes are evaluated, and nothing else is guessed.
#include "tools/kubectl-neuron/selector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace neuron::fleet::test {
namespace {

SliceDevice device() {
  SliceDevice one;
  one.name = "neuron-device-3";
  one.attributes["resourceType"].text = "neuron_device";
  one.attributes["deviceId"].number = 3;
  one.attributes["lnc"].number = 2;
  one.attributes["neuronDriverVersion"].text = "2.21.0";
  one.attributes["draDriverVersion"].text = "0.1.0";
  one.attributes["whole"].flag = true;
  one.attributes["resource.aws.com/devicegroup4_id"].text = "00ff";
  one.capacity["cores"] = "8";
  one.capacity["memory"] = "96Gi";
  return one;
}

struct Row {
  const char* expression;
  Match match;
};

TEST(Selector, EvaluatesTheUsualShapesAndGuessesNothing) {
  const std::vector<Row> rows = {
      {"device.driver == 'neuron.aws.com'", Match::yes},
      {"device.driver == \"gpu.example.com\"", Match::no},
      {"device.attributes['neuron.aws.com'].resourceType == 'neuron_device'", Match::yes},
      {"device.attributes[\"neuron.aws.com\"].resourceType in ['neuron_device', 'neuron_node']", Match::yes},
      {"device.attributes['neuron.aws.com'].resourceType in []", Match::no},
      {"device.attributes['neuron.aws.com'].deviceId < 4 && device.attributes['neuron.aws.com'].deviceId >= 2",
       Match::yes},
      {"device.attributes['neuron.aws.com'].lnc == 1", Match::no},
      {"!(device.attributes['neuron.aws.com'].lnc == 1)", Match::yes},
      {"device.attributes['neuron.aws.com'].lnc != 1 || device.driver == 'x'", Match::yes},
      {"device.attributes['resource.aws.com'].devicegroup4_id == '00ff'", Match::yes},
      {"device.attributes['resource.aws.com']['devicegroup4_id'] == '00ff'", Match::yes},
      {"device.attributes['neuron.aws.com'].?whole.orValue(false)", Match::yes},
      {"device.attributes['neuron.aws.com'].?none.orValue(false)", Match::no},
      {"device.attributes['neuron.aws.com'].?none.hasValue()", Match::no},
      {"'lnc' in device.attributes['neuron.aws.com']", Match::yes},
      {"'none' in device.attributes['neuron.aws.com']", Match::no},
      {"device.attributes['neuron.aws.com'].neuronDriverVersion.startsWith('2.')", Match::yes},
      {"device.capacity['neuron.aws.com'].memory.compareTo(quantity('64Gi')) > 0", Match::yes},
      {"device.capacity['neuron.aws.com'].cores.isLessThan(quantity('8'))", Match::no},
      {"device.allowMultipleAllocations", Match::no},
      // A side that decides makes an error of the other one void, on either side.
      {"device.attributes['neuron.aws.com'].none == 1 && device.driver == 'x'", Match::no},
      {"(device.attributes['neuron.aws.com'].none == 1 || device.driver == 'neuron.aws.com')", Match::yes},
      // A name that the device lacks is an error, and what is not understood is not evaluated.
      {"device.attributes['neuron.aws.com'].none == 1", Match::unknown},
      {"device.attributes['neuron.aws.com'].draDriverVersion.compareTo(semver('0.1.0')) == 0", Match::unknown},
      {"device.attributes['neuron.aws.com'].neuronDriverVersion.matches('2.*')", Match::unknown},
      {"cel.bind(a, device.driver, a == 'x')", Match::unknown},
      {"device.driver == 'x' ? true : true", Match::unknown},
      {"device.driver == 'x' && true ? true : true", Match::unknown},
      {"device.driver == 'x' // && false", Match::unknown},
      {"device.driver == 'a\\'b'", Match::unknown},
      {"", Match::unknown},
      {"device.driver == 'neuron.aws.com' &&", Match::unknown},
      {"((((((((((((((((((((((((((((((((((((((((((((((((((((((true", Match::unknown},
      // What is not understood does not matter where another part is false.
      {"device.driver == 'x' && device.attributes['x'].a.matches('b')", Match::no},
  };
  for (const Row& row : rows) {
    EXPECT_EQ(selects(row.expression, "neuron.aws.com", device()).match, row.match) << row.expression;
  }
}

TEST(Selector, NamesThePartThatIsFalse) {
  const SelectorAnswer answer = selects(
      "device.driver == 'neuron.aws.com' && device.attributes['neuron.aws.com'].lnc == 1", "neuron.aws.com", device());
  EXPECT_EQ(answer.part, "device.attributes['neuron.aws.com'].lnc == 1");
}

}  // namespace
}  // namespace neuron::fleet::test
