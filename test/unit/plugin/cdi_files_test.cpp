#include "plugin/kubelet/cdi_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "agent/base/fd.h"
#include "test/fakes/fake_clock.h"
#include "test/unit/grant/nodes.h"

namespace neuron::plugin {
namespace {

using nlohmann::json;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::chrono::milliseconds kEvery{5000};

// One node after another is given to the specs on a thread that is played: jobs run when a test lets them, or hang.
struct CdiSpecsTest : testing::Test {
  struct Posted {
    SteadyTime when;
    std::function<void()> job;
  };
  fakes::FakeClock clock;
  std::string parent = testing::TempDir() + "cdiXXXXXX";
  std::string directory;
  bool hangs = false;  // jobs stay in `jobs`
  std::vector<std::function<void()>> jobs;
  std::vector<Posted> posted;
  std::vector<grant::NodeUnitsPtr> shown;
  int dead = 0;
  std::shared_ptr<CdiSpecs> specs;

  CdiSpecsTest() {
    if (::mkdtemp(parent.data()) == nullptr) std::abort();
    directory = parent + "/cdi";
    specs = make(directory);
  }
  ~CdiSpecsTest() override { std::filesystem::remove_all(parent); }

  std::shared_ptr<CdiSpecs> make(const std::string& where) {
    return std::make_shared<CdiSpecs>(
        CdiSpecs::Settings{where, {"/sim", grant::CoreNumbering::container, true}, kEvery},
        CdiSpecs::Ports{[this](CdiSpecs::Job job) { jobs.push_back(std::move(job)); },
                        [this](SteadyTime when, CdiSpecs::Job job) {
                          posted.push_back({when, std::move(job)});
                        },
                        [this](grant::NodeUnitsPtr node) { shown.push_back(std::move(node)); }, [this] { ++dead; },
                        clock});
  }
  // Until nothing is left to do now.
  void settle() {
    for (;;) {
      const auto due =
          std::find_if(posted.begin(), posted.end(), [this](const Posted& one) { return one.when <= clock.now(); });
      if (due != posted.end()) {
        const auto job = std::move(due->job);
        posted.erase(due);
        job();
      } else if (!jobs.empty() && !hangs) {
        const auto job = std::move(jobs.front());
        jobs.erase(jobs.begin());
        job();
      } else {
        return;
      }
    }
  }
  void wait(std::chrono::milliseconds time) {
    clock.advance(time);
    settle();
  }
  void set_node(const std::string& type) {
    specs->set_node(node_of(type));
    settle();
  }
  [[nodiscard]] std::string path(const char* kind) const { return directory + "/" + kind + ".json"; }
  [[nodiscard]] bool is_written(const char* kind) const { return json::accept(std::ifstream(path(kind))); }
};

constexpr const char* kNeuron = "aws.amazon.com-neuron";
constexpr const char* kEfa = "vpc.amazonaws.com-efa";

TEST_F(CdiSpecsTest, FilesAppearWholeAndGoWithTheHardware) {
  set_node("trn1.32xlarge");
  EXPECT_TRUE(is_written(kNeuron));
  EXPECT_TRUE(is_written(kEfa));
  set_node("inf2.48xlarge");
  EXPECT_FALSE(std::filesystem::exists(path(kEfa)));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory), {}), 1);
  EXPECT_THAT(shown, SizeIs(2));
}

TEST_F(CdiSpecsTest, ANodeIsShownOnceItsSpecsAreThere) {
  hangs = true;
  set_node("trn1.32xlarge");
  EXPECT_THAT(shown, IsEmpty());
  hangs = false;
  settle();
  EXPECT_THAT(shown, SizeIs(1));
  hangs = true;
  set_node("trn1.32xlarge");
  EXPECT_THAT(shown, SizeIs(2)) << "nothing has to be written for it";
}

TEST_F(CdiSpecsTest, ADirectoryThatHangsHoldsUpNothingForLong) {
  hangs = true;
  set_node("trn1.32xlarge");
  wait(CdiWriter::kPatience - std::chrono::milliseconds(1));
  EXPECT_THAT(shown, IsEmpty());
  wait(std::chrono::milliseconds(1));
  EXPECT_THAT(shown, SizeIs(1));
  set_node("inf2.48xlarge");
  EXPECT_THAT(shown, SizeIs(2)) << "at once, while it hangs";
  for (int i = 0; i < 5; ++i) wait(kEvery);
  EXPECT_THAT(jobs, SizeIs(1)) << "one that hangs is not joined by others";
  hangs = false;
  settle();
  EXPECT_TRUE(is_written(kNeuron));
  EXPECT_FALSE(std::filesystem::exists(path(kEfa))) << "the newest node's";
}

TEST_F(CdiSpecsTest, TheNewestOfSeveralNodesIsShown) {
  hangs = true;
  set_node("trn1.32xlarge");
  set_node("trn1.2xlarge");
  set_node("inf2.48xlarge");
  hangs = false;
  settle();
  ASSERT_THAT(shown, SizeIs(1));
  EXPECT_EQ(shown[0]->units(model::Resource::neuron).size(), 12U);
  EXPECT_EQ(read_text_file(path(kNeuron), 1U << 20U).value(),
            cdi_texts(*shown[0], {"/sim", {}, true}, directory)[path(kNeuron)]);
}

TEST_F(CdiSpecsTest, WhatIsRemovedOrChangedComesBack) {
  set_node("trn1.32xlarge");
  std::filesystem::remove(path(kNeuron));
  std::ofstream(path(kEfa)) << "{}";
  wait(kEvery);
  EXPECT_TRUE(is_written(kNeuron));
  EXPECT_GT(std::filesystem::file_size(path(kEfa)), 10U);
  std::filesystem::remove_all(directory);
  wait(kEvery);
  EXPECT_TRUE(is_written(kNeuron));
}

TEST_F(CdiSpecsTest, ADirectoryThatAppearsLaterIsFilled) {
  std::ofstream(parent + "/file") << "in the way";
  directory = parent + "/file/cdi";
  specs = make(directory);
  set_node("trn1.32xlarge");
  EXPECT_THAT(shown, SizeIs(1)) << "all but CDI works";
  EXPECT_EQ(dead, 0);
  std::filesystem::remove(parent + "/file");
  wait(kEvery);
  EXPECT_TRUE(is_written(kNeuron));
  EXPECT_TRUE(is_written(kEfa));
}

TEST_F(CdiSpecsTest, WhatStandsInAFilesPlaceIsReplaced) {
  std::filesystem::create_directory(directory);
  ASSERT_EQ(::mkfifo(path(kNeuron).c_str(), 0600), 0);
  ASSERT_EQ(::mkfifo((path(kEfa) + ".new").c_str(), 0600), 0);
  std::ofstream(parent + "/elsewhere") << "other's";
  std::filesystem::create_symlink(parent + "/elsewhere", path(kNeuron) + ".new");
  set_node("trn1.32xlarge");
  EXPECT_TRUE(is_written(kNeuron));
  EXPECT_TRUE(is_written(kEfa));
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path(kNeuron))));
  EXPECT_EQ(read_text_file(parent + "/elsewhere", 100).value(), "other's");
}

TEST_F(CdiSpecsTest, ADirectoryThatIsDeadBehindItsMountIsReported) {
  std::filesystem::create_directory(directory);
  const Fd held(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  specs = make("/proc/self/fd/" + std::to_string(held.get()));
  set_node("trn1.32xlarge");
  EXPECT_TRUE(is_written(kNeuron));
  EXPECT_EQ(dead, 0);
  std::filesystem::remove_all(directory);
  wait(kEvery);
  EXPECT_EQ(dead, 1);
}

TEST_F(CdiSpecsTest, AJobThatOutlivesTheSpecsTouchesNothing) {
  hangs = true;
  set_node("trn1.32xlarge");
  specs.reset();
  hangs = false;
  wait(kEvery);
  EXPECT_THAT(shown, IsEmpty());
}

}  // namespace
}  // namespace neuron::plugin
