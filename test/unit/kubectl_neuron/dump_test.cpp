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

TEST_F(Dump, AMissingListIsSaidAndNotEmpty) {
  path_ = directory_->path() + "/fleet";
  ASSERT_TRUE(write_dump(test::three_nodes(), path_));
  for (const char* kind : {"pods", "resourceslices"}) {
    ASSERT_TRUE(std::filesystem::remove(path_ + "/" + kind + "/0.json"));
    const auto documents = read_dump(path_);
    ASSERT_TRUE(documents) << documents.error().message;
    const std::string name = kind;
    EXPECT_THAT(documents->unknown, testing::Contains(name + " are not known: the dump lacks its list of " + name));
    EXPECT_TRUE(documents->partial.contains(name));
    EXPECT_TRUE(make_fleet(*documents).pods_partial);
  }
}

TEST_F(Dump, AListThatCouldNotBeReadOrIsNotServedIsMissingWithoutASecondWord) {
  Documents documents = test::three_nodes();
  documents.list(Kind::events).clear();
  documents.partial = {"events"};
  for (const Kind kind : {Kind::slices, Kind::claims, Kind::claim_templates, Kind::device_classes})
    documents.list(kind).clear();
  documents.unknown = {"events are not known: forbidden", "the cluster does not serve resource.k8s.io: no claims"};
  for (const bool is_anonymous : {false, true}) {
    path_ = directory_->path() + (is_anonymous ? "/anonymous" : "/plain");
    if (is_anonymous) anonymise(documents);
    ASSERT_TRUE(write_dump(documents, path_));
    const auto again = read_dump(path_);
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->unknown.size(), 2U) << testing::PrintToString(again->unknown);
    EXPECT_EQ(again->partial, documents.partial);
  }
}

TEST_F(Dump, ContentsLargerThanAnyClusterHasAreRefused) {
  const auto error_with = [&](const std::string& page) {
    path_ = directory_->path();
    EXPECT_TRUE(write_by_rename(path_ + "/dump.json", R"({"format":"kubectl-neuron-dump/1"})"));
    std::filesystem::create_directory(path_ + "/nodes");
    EXPECT_TRUE(write_by_rename(path_ + "/nodes/0.json", page));
    const auto documents = read_dump(path_);
    return documents ? "" : documents.error().message;
  };
  EXPECT_EQ(error_with(R"({"items":[{"metadata":{"name":"a"}}]})"), "");
  constexpr std::size_t kMiB = std::size_t{1} << 20U;
  const std::string text = R"("{]")" + std::string(5 * kMiB, ' ');
  EXPECT_THAT(error_with(R"({"items":[{"metadata":{"name":)" + text + "}}]}"),
              AllOf(HasSubstr("nodes/0.json"), HasSubstr("an object of more than 4 MiB")));
  std::string many = R"({"items":[{})";
  for (int i = 0; i <= 250'000; ++i) many += ",{}";
  EXPECT_THAT(error_with(many + "]}"), HasSubstr("more than 250000 objects"));
  EXPECT_THAT(error_with(R"({"items":[)" + std::string(64 * kMiB, ' ') + "]}"), HasSubstr("nodes/0.json"));
}

TEST_F(Dump, ADamagedArchiveIsRefused) {
  ASSERT_TRUE(write_dump(test::three_nodes(), path_));
  const std::string whole = read_text_file(path_, 64 << 20).value();
  for (const std::size_t from_end : {std::size_t{1}, std::size_t{5}}) {  // the length, the sum
    std::string damaged = whole;
    damaged[damaged.size() - from_end] ^= 4;
    std::filesystem::remove(path_);
    ASSERT_TRUE(write_by_rename(path_, damaged));
    const auto documents = read_dump(path_);
    ASSERT_FALSE(documents);
    EXPECT_THAT(documents.error().message, AllOf(HasSubstr(path_), HasSubstr("damaged")));
  }
  std::filesystem::remove(path_);
  ASSERT_TRUE(write_by_rename(path_, whole));
  EXPECT_TRUE(read_dump(path_));
}

TEST_F(Dump, MessagesNameTheArchiveAndNotWhereItIsUnpacked) {
  Documents documents = test::three_nodes();
  documents.list(Kind::nodes) = {R"({"items":[{"x":")" + std::string(std::size_t{5} << 20U, 'a') + "\"}]}"};
  ASSERT_TRUE(write_dump(documents, path_));
  EXPECT_THAT(read_dump(path_).error().message, testing::StartsWith(path_ + ": nodes/0.json: an object"));
}

}  // namespace
}  // namespace neuron::fleet
