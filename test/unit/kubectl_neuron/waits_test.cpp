#include "tools/kubectl-neuron/waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <future>

#include "agent/base/fd.h"
#include "agent/host/temporary_directory.h"
#include "tools/kubectl-neuron/documents.h"

namespace neuron::fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;

constexpr std::chrono::minutes kLong{1};

TEST(Waits, SaysWhatTakesLong) {
  std::promise<std::string> said;
  Waits waits([&](const std::string& sentence) { said.set_value(sentence); }, milliseconds(1));
  const Waits::Call first(&waits, "kubectl get --raw /api/v1/nodes", seconds(60));
  std::future<std::string> sentence = said.get_future();
  ASSERT_EQ(sentence.wait_for(kLong), std::future_status::ready);
  EXPECT_EQ(sentence.get(), "waiting for kubectl get --raw /api/v1/nodes, at most 60 s");
  const Waits::Call second(&waits, "kubectl get --raw /api/v1/pods", seconds(60));  // a promise takes one value
}

TEST(Waits, CountsTheOthers) {
  std::promise<std::string> said;
  Waits waits([&](const std::string& sentence) { said.set_value(sentence); }, milliseconds(200));
  const Waits::Call first(&waits, "a", milliseconds(500)), second(&waits, "b", seconds(1)),
      third(&waits, "c", seconds(1));
  EXPECT_EQ(said.get_future().get(), "waiting for a and 2 more calls, at most 500 ms");
}

TEST(Waits, SaysNothingOfWhatEndsOrAfterTheEnd) {
  int count = 0;
  {
    Waits waits([&](const std::string&) { ++count; }, seconds(60));
    { const Waits::Call call(&waits, "a", seconds(60)); }
    const Waits::Call other(&waits, "b", seconds(60));
  }
  {
    Waits waits([&](const std::string&) { ++count; }, milliseconds(0));
    waits.end();
    const Waits::Call call(&waits, "a", seconds(60));
  }
  const Waits::Call none(nullptr, "a", seconds(60));
  EXPECT_EQ(count, 0);
}

// A kubectl that is this script.
class Script {
 public:
  explicit Script(const std::string& text) {
    const std::string file = directory_->path() + "/kubectl";
    EXPECT_TRUE(write_by_rename(file, "#!/bin/sh\n" + text));
    EXPECT_EQ(::chmod(file.c_str(), 0700), 0);
    ::setenv("PATH", (directory_->path() + ":" + path_).c_str(), 1);
  }
  ~Script() { ::setenv("PATH", path_.c_str(), 1); }
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

 private:
  std::unique_ptr<host::TemporaryDirectory> directory_ =
      host::TemporaryDirectory::make(host::temporary_place(0, 1)).value();
  std::string path_ = std::getenv("PATH");
};

TEST(Kubectl, TheCommandThatHangsIsNamed) {
  const Script script("if [ \"$1\" = proxy ]; then exit 1; fi\nexec sleep 600\n");
  auto cluster = open_kubectl({}, nullptr);
  ASSERT_TRUE(cluster);
  const auto reply = (*cluster)->get({.path = "/api/v1/nodes"}, milliseconds(200));
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::deadline_exceeded);
  EXPECT_EQ(reply.error().message, "kubectl get --raw /api/v1/nodes did not end within 200 ms");
}

TEST(Kubectl, AnEndlessAnswerIsBounded) {
  const Script script("if [ \"$1\" = proxy ]; then exit 1; fi\nexec yes\n");
  auto cluster = open_kubectl({}, nullptr);
  ASSERT_TRUE(cluster);
  const auto list = (*cluster)->get({.path = "/api/v1/nodes"}, kLong);
  ASSERT_FALSE(list);
  EXPECT_THAT(list.error().message, HasSubstr("/api/v1/nodes answered with more than 32 MiB"));
  const auto agent = (*cluster)->get({.path = "/api/v1/namespaces/a/pods/http:b:8000/proxy/node"}, kLong);
  ASSERT_FALSE(agent);
  EXPECT_THAT(agent.error().message, HasSubstr("more than 5 MiB"));
}

}  // namespace
}  // namespace neuron::fleet
