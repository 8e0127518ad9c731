#include "agent/grant/grant.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "test/unit/grant/nodes.h"

namespace neuron::grant {
namespace {

using nlohmann::json;

GrantOptions with_names() {
  return {"/sim", CoreNumbering::container, true};
}

TEST(Cdi, EveryUnitIsADeviceWithTheNodesThatAllocateGives) {
  const NodeUnitsPtr node = node_of("trn1.32xlarge");
  const json neuron = json::parse(cdi_spec(*node, model::Resource::neuron, with_names()));
  EXPECT_EQ(neuron["cdiVersion"], "0.5.0");
  EXPECT_EQ(neuron["kind"], "aws.amazon.com/neuron");
  ASSERT_EQ(neuron["devices"].size(), 16U);
  EXPECT_EQ(neuron["devices"][3]["name"], "3");
  const json path = neuron["devices"][3]["containerEdits"]["deviceNodes"][0];
  EXPECT_EQ(path["path"], "/dev/neuron3");
  EXPECT_EQ(path["hostPath"], "/sim/dev/neuron3");
  EXPECT_EQ(path["permissions"], "rw");
  EXPECT_EQ(json::parse(cdi_spec(*node, model::Resource::efa, with_names()))["devices"].size(), 8U);
}

TEST(Cdi, NamesInAnswersAreNamesInTheSpec) {
  const NodeUnitsPtr node = node_of("trn1.32xlarge");
  const Grant answer = grant_of_cores(*node, {2}, {4, 5}, with_names());
  const json spec = json::parse(cdi_spec(*node, model::Resource::neuron, with_names()));
  EXPECT_EQ(answer.cdi_names.at(0),
            spec["kind"].get<std::string>() + "=" + spec["devices"][2]["name"].get<std::string>());
}

}  // namespace
}  // namespace neuron::grant
