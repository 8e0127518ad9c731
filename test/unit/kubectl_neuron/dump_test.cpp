#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "agent/base/fd.h"
#include "agent/host/temporary_directory.h"
#include "test/unit/kubectl_neuron/simulated_fleet.h"
#include "tools/kubectl-neuron/commands.h"
#include "tools/kubectl-neuron/dump.h"

namespace neuron::fleet {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

class Dump : public testing::Test {
 protected:
  std::unique_ptr<host::TemporaryDirectory> directory_ =
      host::TemporaryDirectory::make(host::temporary_place(0, 1)).value();
  std::string path_ = directory_->path() + "/fleet.tar.gz";
};

std::string everything(const Documents& documents) {
  const Fleet fleet = make_fleet(documents);
  return nodes_listing(fleet, Output::json) + pods_listing(fleet, {}, Output::json, "");
}

TEST_F(Dump, ReadBackShowsTheSame) {
  Documents documents = test::three_nodes();
  documents.unknown = {"events are not known: forbidden"};
  documents.partial = {"pods"};
  ASSERT_TRUE(write_dump(documents, path_));
  const auto again = read_dump(path_);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(everything(*again), everything(documents));
  EXPECT_TRUE(make_fleet(*again).pods_partial);
  EXPECT_FALSE(make_fleet(*again).claims_partial);
  EXPECT_FALSE(write_dump(documents, path_));  // nothing is overwritten
}

TEST_F(Dump, OtherFilesAreRefusedWithAReason) {
  EXPECT_FALSE(read_dump(path_));
  ASSERT_TRUE(write_by_rename(path_, "no archive"));
  EXPECT_THAT(read_dump(path_).error().message, HasSubstr("fleet.tar.gz"));
  ASSERT_TRUE(write_by_rename(directory_->path() + "/dump.json", R"({"format":"kubectl-neuron-dump/9"})"));
  EXPECT_THAT(read_dump(directory_->path()).error().message,
              AllOf(HasSubstr("kubectl-neuron-dump/9"), HasSubstr("use the version that wrote it")));
}

TEST_F(Dump, NoFileOutsideIsRead) {
  ASSERT_TRUE(write_by_rename(directory_->path() + "/dump.json", R"({"format":"kubectl-neuron-dump/1","agents":{
      "n1":{"file":"../../etc/hostname"},"n2":{"file":"agents/7.json"},"n3":7}})"));
  const auto documents = read_dump(directory_->path());
  ASSERT_TRUE(documents) << documents.error().message;
  for (const auto& [node, answer] : documents->agents) {
    EXPECT_EQ(answer.body, "") << node;
    EXPECT_NE(answer.missing, "") << node;
  }
}

}  // namespace
}  // namespace neuron::fleet
