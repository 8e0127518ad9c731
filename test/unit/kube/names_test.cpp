#include "agent/kube/api.h"

#include <gmock/gmock.h>

namespace neuron::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(Names, OfNodesAreThoseOfRfc1123) {
  for (const std::string& name : {std::string("n"), std::string("ip-10-1-2-3.eu-west-1.compute.internal"),
                                  std::string("0"), std::string(253, 'a')}) {
    EXPECT_TRUE(check_node_name(name)) << name;
  }
  for (const std::string& name :
       {std::string(), std::string(".."), std::string("../x"), std::string("a/b"), std::string("A"), std::string("-a"),
        std::string("a-"), std::string("a..b"), std::string("a."), std::string("a_b"), std::string("a b"),
        std::string(" a"), std::string("$(NODE_NAME)"), std::string(254, 'a')}) {
    EXPECT_FALSE(check_node_name(name)) << name;
  }
  EXPECT_EQ(check_node_name("../x").error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(check_node_name("../x").error().message,
              AllOf(HasSubstr("\"../x\" is not a node name"), HasSubstr("kubectl get nodes")));
}

TEST(Names, OfLabelsHaveADomainOrNone) {
  for (const std::string& key : {std::string("neuron-agent/simulate"), std::string("a"), std::string("A_b.c-1"),
                                 std::string("node.kubernetes.io/instance-type"), std::string(63, 'a')}) {
    EXPECT_TRUE(check_label_key(key)) << key;
  }
  for (const std::string& key : {std::string(), std::string("/a"), std::string("a/"), std::string("a/b/c"),
                                 std::string("A/b"), std::string("_a"), std::string("a-"), std::string("a b"),
                                 std::string("../a"), std::string(64, 'a'), std::string(254, 'a') + "/a"}) {
    EXPECT_FALSE(check_label_key(key)) << key;
  }
  EXPECT_EQ(check_label_key("a b").error().code, ErrorCode::invalid_argument);
  EXPECT_THAT(check_label_key("a b").error().message, HasSubstr("as in neuron-agent/simulate"));
}

}  // namespace
}  // namespace neuron::kube
