// The server over TLS: certificates that come, change and are wrong, and clients that are slow.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <csignal>
#include <deque>
#include <filesystem>
#include <fstream>

#include "agent/base/mutex.h"
#include "agent/metrics/http_server.h"
#include "test/fakes/tls_client.h"

namespace neuron::metrics {
namespace {

namespace fs = std::filesystem;
using fakes::http_get;
using fakes::https_get;
using fakes::TcpClient;
using fakes::TlsClient;
using fakes::write_certificate;
using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr std::chrono::seconds kPatience{20};

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::signal(SIGPIPE, SIG_IGN);
    ASSERT_NE(::mkdtemp(directory_.data()), nullptr);
  }
  void TearDown() override { fs::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const { return directory_ + "/" + name; }
  // As the kubelet mounts a secret: tls.crt and tls.key lead through ..data to a folder, which is changed in one step.
  void mount(const std::string& folder) const {
    fs::create_directory(path(folder));
    write_certificate(folder, path(folder + "/tls.crt"), path(folder + "/tls.key"));
    show(folder);
  }
  void show(const std::string& folder) const {
    fs::create_directory_symlink(folder, path("..data_tmp"));
    fs::rename(path("..data_tmp"), path("..data"));
    for (const std::string name : {"tls.crt", "tls.key"}) {
      if (!fs::is_symlink(path(name))) fs::create_symlink("..data/" + name, path(name));
    }
  }
  [[nodiscard]] TlsFiles files() {
    return {path("tls.crt"), path("tls.key"), [this](const std::string& problem) {
              const MutexLock lock(mutex_);
              told_.push_back(problem);
            }};
  }
  [[nodiscard]] std::vector<std::string> told() {
    const MutexLock lock(mutex_);
    return told_;
  }
  [[nodiscard]] Result<std::unique_ptr<HttpServer>> start() {
    return HttpServer::start(
        {"127.0.0.1", 0},
        [this](const HttpRequest& request) {
          if (request.path == "/long") return HttpAnswer{200, "", "text/plain", long_};
          return HttpAnswer{200, "path " + std::string(request.path) + "\n"};
        },
        files());
  }
  // Who the server says it is, once that is `want`; the last answer.
  static std::string await_server(const HttpServer& server, const std::string& want) {
    const auto until = steady_clock::now() + kPatience;
    for (;;) {
      std::string is = TlsClient(server.port()).server();
      if (is == want || steady_clock::now() > until) return is;
    }
  }

  std::string directory_ = "/tmp/neuron-tls-XXXXXX";
  std::shared_ptr<const std::string> long_ = std::make_shared<const std::string>(600'000, 'z');
  Mutex mutex_;
  std::vector<std::string> told_ GUARDED_BY(mutex_);
};

TEST_F(TlsTest, AnswersOverTlsAndNotWithout) {
  mount("one");
  const auto server = start();
  ASSERT_TRUE(server) << server.error().message;
  const std::uint16_t port = (*server)->port();
  EXPECT_EQ(https_get(port, "/readyz").body, "path /readyz\n");
  EXPECT_EQ(https_get(port, "/long").body, *long_);
  EXPECT_EQ(http_get(port, "/readyz").status, 0);
  EXPECT_EQ(TlsClient(port).server(), "one");
  EXPECT_EQ(TlsClient(port).version(), TLS1_3_VERSION);
}

TEST_F(TlsTest, OldVersionsAreRefused) {
  mount("one");
  const auto server = start();
  ASSERT_TRUE(server);
  EXPECT_TRUE(TlsClient((*server)->port(), TLS1_2_VERSION).connected());
  EXPECT_FALSE(TlsClient((*server)->port(), TLS1_1_VERSION).connected());
}

TEST_F(TlsTest, ANewPairIsUsedWithoutARestart) {
  mount("one");
  const auto server = start();
  ASSERT_TRUE(server);
  ASSERT_EQ(TlsClient((*server)->port()).server(), "one");
  mount("two");
  EXPECT_EQ(await_server(**server, "two"), "two");
  EXPECT_THAT(told(), testing::ElementsAre(""));
}

TEST_F(TlsTest, APairThatCannotBeUsedKeepsTheOldAndIsToldOnce) {
  mount("one");
  const auto server = start();
  ASSERT_TRUE(server);
  mount("two");
  ASSERT_EQ(await_server(**server, "two"), "two");
  fs::create_directory(path("broken"));
  std::ofstream(path("broken/tls.crt")) << "no certificate\n";
  fs::copy_file(path("two/tls.key"), path("broken/tls.key"));
  show("broken");
  const auto until = steady_clock::now() + kPatience;
  while (told().size() < 2 && steady_clock::now() < until) EXPECT_EQ(TlsClient((*server)->port()).server(), "two");
  const auto looked_again = steady_clock::now() + 2 * TlsIdentity::kCheckInterval;
  while (steady_clock::now() < looked_again) EXPECT_EQ(TlsClient((*server)->port()).server(), "two");
  ASSERT_EQ(told().size(), 2U) << "once";
  EXPECT_THAT(told().back(), HasSubstr("tls.crt holds no PEM certificate"));
  mount("three");
  EXPECT_EQ(await_server(**server, "three"), "three");
  EXPECT_EQ(told().back(), "");
}

TEST_F(TlsTest, AKeyOfAnotherCertificateIsNotUsed) {
  mount("one");
  write_certificate("other", path("other.crt"), path("other.key"));
  const auto mixed = TlsIdentity::load({path("tls.crt"), path("other.key")});
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, ErrorCode::data_corrupt);
  EXPECT_THAT(mixed.error().message, HasSubstr("other.key"));
}

TEST_F(TlsTest, WhatIsNoPairOfFilesIsAnError) {
  const auto missing = start();
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr("tls.crt"));
  mount("one");
  ASSERT_EQ(::mkfifo(path("fifo").c_str(), 0600), 0);
  EXPECT_FALSE(TlsIdentity::load({path("fifo"), path("tls.key")})) << "would wait for a writer";
  EXPECT_FALSE(TlsIdentity::load({path(""), path("tls.key")}));
  std::ofstream(path("large")) << std::string(2 << 20, 'x');
  EXPECT_FALSE(TlsIdentity::load({path("large"), path("tls.key")}));
}

TEST_F(TlsTest, SlowHandshakesHoldUpNobodyAndAreDropped) {
  mount("one");
  const auto server = start();
  ASSERT_TRUE(server);
  std::deque<TcpClient> slow;
  for (int i = 0; i < 8; ++i) slow.emplace_back((*server)->port()).send(i % 2 == 0 ? "" : "\x16\x03\x01\x02");
  const auto asked = steady_clock::now();
  EXPECT_EQ(https_get((*server)->port(), "/").status, 200);
  EXPECT_LT(steady_clock::now() - asked, HttpServer::kIdle);
  for (TcpClient& client : slow) EXPECT_EQ(client.receive(), "") << "until the server closes";
  EXPECT_LT(steady_clock::now() - asked, HttpServer::kAnswerDue + std::chrono::seconds(5));
}

TEST_F(TlsTest, GarbageReachesNobodyAndEndsNothing) {
  mount("one");
  const auto server = start();
  ASSERT_TRUE(server);
  for (const std::string& bytes : {std::string("GET / HTTP/1.1\r\nHost: h\r\n\r\n"), std::string(5000, '\0'),
                                   std::string("\x16\x03\x01\xff\xff") + std::string(5000, 'a')}) {
    TcpClient client((*server)->port());
    client.send(bytes);
    client.end_sending();
    EXPECT_THAT(client.receive(), testing::Not(HasSubstr("path")));
  }
  EXPECT_EQ(https_get((*server)->port(), "/").status, 200);
}

TEST_F(TlsTest, ClientsOfOneHostAreBoundedAndTheirPlacesComeBack) {
  mount("one");
  const auto server = start();
  ASSERT_TRUE(server);
  std::deque<TcpClient> crowd;
  for (unsigned i = 0; i < HttpServer::kMostClients; ++i) crowd.emplace_back((*server)->port()).send("\x16");
  crowd.clear();
  const auto until = steady_clock::now() + kPatience;
  while (https_get((*server)->port(), "/").status != 200) ASSERT_LT(steady_clock::now(), until);
}

}  // namespace
}  // namespace neuron::metrics
