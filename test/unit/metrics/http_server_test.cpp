#include "agent/metrics/http_server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/resource.h>

#include <atomic>
#include <ctime>
#include <deque>
#include <filesystem>

#include "agent/base/fd.h"
#include "test/fakes/tcp_client.h"

namespace neuron::metrics {
namespace {

using fakes::http_get;
using fakes::TcpClient;
using std::chrono::steady_clock;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::unique_ptr<HttpServer> start(const std::string& address = "127.0.0.1:0") {
    auto started = HttpServer::start(*parse_listen_address(address), [this](const HttpRequest& request) {
      const std::string_view path = request.path;
      ++handled_;
      if (path == "/long") return HttpAnswer{200, std::string(kLong, 'x')};
      if (path == "/shared") return HttpAnswer{200, "", "text/x-shared", shared_};
      if (path == "/accept") return HttpAnswer{200, std::string(request.accept)};
      return HttpAnswer{path == "/no" ? 503 : 200, "path " + std::string(path) + "\n"};
    });
    EXPECT_TRUE(started) << started.error().message;
    return started ? *std::move(started) : nullptr;
  }
  static std::string answer_to(const HttpServer& server, const std::string& request) {
    TcpClient client(server.port());
    client.send(request);
    return client.receive();
  }

  static constexpr std::size_t kLong = 8'000'000;  // more than the kernel keeps for a client that does not read
  std::atomic<int> handled_ = 0;
  std::shared_ptr<const std::string> shared_ = std::make_shared<const std::string>(kLong, 'y');
};

TEST_F(HttpServerTest, GetAnswersStatusAndBodyAndCloses) {
  const auto server = start();
  const std::string all = answer_to(*server, "GET /a%20b?x=1 HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(all, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(all, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(all, HasSubstr("Connection: close\r\n"));
  EXPECT_THAT(all, EndsWith("\r\n\r\npath /a%20b\n")) << "as it was sent, without the query";
  EXPECT_EQ(http_get(server->port(), "/no").status, 503);
  EXPECT_EQ(http_get(server->port(), "/../../etc/passwd").body, "path /../../etc/passwd\n") << "a name, no file";
}

TEST_F(HttpServerTest, TheHandlerSeesWhatTheClientAccepts) {
  const auto server = start();
  EXPECT_THAT(answer_to(*server, "GET /accept HTTP/1.1\r\nHost: h\r\naccept: text/plain;q=0.3\r\n\r\n"),
              EndsWith("\r\n\r\ntext/plain;q=0.3"));
  EXPECT_THAT(answer_to(*server, "GET /accept HTTP/1.1\r\nHost: h\r\n\r\n"), EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, ASharedTextIsNeitherCopiedNorKept) {
  const auto server = start();
  {
    std::deque<TcpClient> slow;
    for (int i = 0; i < 10; ++i) {
      slow.emplace_back(server->port()).take_little();
      slow.back().send("GET /shared HTTP/1.1\r\nHost: h\r\n\r\n");
    }
    const std::string all = answer_to(*server, "GET /shared HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_THAT(all, HasSubstr("Content-Type: text/x-shared\r\n"));
    EXPECT_THAT(all, EndsWith("\r\n\r\n" + *shared_));
    const auto until = steady_clock::now() + std::chrono::seconds(20);
    while (shared_.use_count() < 11) ASSERT_LT(steady_clock::now(), until) << "a reference for each who reads";
  }
  const auto until = steady_clock::now() + std::chrono::seconds(20);
  while (shared_.use_count() > 1) ASSERT_LT(steady_clock::now(), until) << "kept for clients who have left";
}

TEST_F(HttpServerTest, AClientThatReadsEverSoLittleIsDroppedInTheEnd) {
  const auto server = start();
  TcpClient trickle(server->port());
  trickle.take_little();
  trickle.send("GET /shared HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto asked = steady_clock::now();
  const auto is_kept = [this] { return shared_.use_count() > 1; };
  while (!is_kept() && steady_clock::now() < asked + std::chrono::seconds(20)) {
  }
  while (is_kept() && steady_clock::now() < asked + std::chrono::seconds(20)) {
    ASSERT_FALSE(trickle.receive_some(20'000, std::chrono::seconds(20)).empty());
    static_cast<void>(TcpClient(server->port()).receive(std::chrono::milliseconds(100)));  // time passes
  }
  EXPECT_FALSE(is_kept());
  EXPECT_GE(steady_clock::now() - asked, HttpServer::kIdle) << "it was busy all the time";
}

TEST_F(HttpServerTest, HeadIsGetWithoutTheBody) {
  const auto server = start();
  const std::string all = answer_to(*server, "HEAD /no HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(all, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(all, HasSubstr("Content-Length: 9\r\n"));
  EXPECT_THAT(all, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, OtherMethodsAreRefused) {
  const auto server = start();
  for (const std::string method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"}) {
    const std::string all = answer_to(*server, method + " /readyz HTTP/1.1\r\nHost: h\r\n\r\n");
    EXPECT_THAT(all, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(all, HasSubstr("Allow: GET, HEAD\r\n")) << method;
  }
  EXPECT_THAT(answer_to(*server, "BREW /readyz HTTP/1.1\r\nHost: h\r\n\r\n"), StartsWith("HTTP/1.1 501 "));
  EXPECT_EQ(handled_, 0);
}

TEST_F(HttpServerTest, BodiesAreRefusedUnread) {
  const auto server = start();
  for (const std::string method : {"GET", "POST", "PUT", "DELETE", "OPTIONS"}) {
    for (const std::string head :
         {"Content-Length: 1000000000\r\n\r\nbody", "Transfer-Encoding: chunked\r\n\r\n10\r\nbody",
          "Expect: 100-continue\r\nContent-Length: 1\r\n\r\n"}) {
      EXPECT_THAT(answer_to(*server, method + " /readyz HTTP/1.1\r\nHost: h\r\n" + head), StartsWith("HTTP/1.1 413 "))
          << method << " " << head;
    }
  }
  EXPECT_EQ(handled_, 0);
}

TEST_F(HttpServerTest, TunnelsAreRefusedAndDropped) {
  const auto server = start();
  TcpClient to_host(server->port());
  to_host.send("CONNECT h:80 HTTP/1.1\r\nHost: h\r\n\r\n");
  TcpClient to_path(server->port());
  to_path.send("CONNECT /readyz HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(to_host.receive(), StartsWith("HTTP/1.1 405 ")) << "until the server closes";
  EXPECT_THAT(to_path.receive(), StartsWith("HTTP/1.1 405 "));
  EXPECT_EQ(handled_, 0);
}

TEST_F(HttpServerTest, AClientThatSendsNoMoreIsAnswered) {
  const auto server = start();
  TcpClient client(server->port());
  client.send("GET /long HTTP/1.1\r\nHost: h\r\n\r\n");
  client.end_sending();
  EXPECT_GT(client.receive().size(), kLong);
}

TEST_F(HttpServerTest, AClientThatLeavesBeforeItsAnswerEndsNothing) {
  const auto server = start();
  for (int i = 0; i < 10; ++i) {
    TcpClient client(server->port());
    client.take_little();
    client.send("GET /long HTTP/1.1\r\nHost: h\r\n\r\n");
  }
  EXPECT_EQ(http_get(server->port(), "/").status, 200);
}

TEST_F(HttpServerTest, WithoutDescriptorsClientsWaitAndNobodySpins) {
  const auto server = start();
  Fd last(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit few{static_cast<rlim_t>(last.get()) + 1, usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  std::deque<Fd> others;
  do others.emplace_back(::dup(last.get()));
  while (others.back().valid());
  last.reset();
  TcpClient client(server->port());  // has the one descriptor that was left
  client.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  const std::clock_t used = std::clock();
  const std::string nothing = client.receive(std::chrono::milliseconds(200));
  const std::clock_t spent = std::clock() - used;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(nothing, "");
  EXPECT_LT(spent, CLOCKS_PER_SEC / 20);
  EXPECT_THAT(client.receive(), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, WhatIsNoHttpOrTooLargeReachesNobody) {
  const auto server = start();
  const std::string large(HttpServer::kRequestBytes, 'a');
  for (const std::string& request :
       {std::string("\x16\x03\x01 no http\r\n\r\n"), "GET /" + large + " HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: h\r\nX: " + large + "\r\n\r\n", std::string("GET / HTTP/9.9\r\nHost: h\r\n\r\n")}) {
    EXPECT_THAT(answer_to(*server, request), testing::Not(HasSubstr("200 OK"))) << request.substr(0, 40);
  }
  EXPECT_EQ(handled_, 0);
  EXPECT_EQ(http_get(server->port(), "/").status, 200);
}

TEST_F(HttpServerTest, SlowClientsHoldUpNobodyAndAreDropped) {
  const auto server = start();
  TcpClient unread(server->port());
  unread.take_little();
  unread.send("GET /long HTTP/1.1\r\nHost: h\r\n\r\n");
  const auto asked = steady_clock::now();
  EXPECT_EQ(http_get(server->port(), "/").status, 200);
  std::deque<TcpClient> silent;
  for (int i = 0; i < 5; ++i) silent.emplace_back(server->port()).send("GET /half HTTP");
  EXPECT_EQ(http_get(server->port(), "/").status, 200);
  EXPECT_LT(steady_clock::now() - asked, HttpServer::kIdle) << "waited for the slow ones";
  for (TcpClient& client : silent) {
    EXPECT_EQ(client.receive(), "") << "until the server closes";
  }
  TcpClient later(server->port());
  later.send("GET /half HTTP");
  EXPECT_EQ(later.receive(), "");
  EXPECT_LT(unread.receive().size(), kLong) << "dropped before that one, with what the kernels had taken";
}

TEST_F(HttpServerTest, OneHostCannotTakeAllConnections) {
  const auto server = start();
  std::deque<TcpClient> crowd;
  for (unsigned i = 0; i < HttpServer::kMostClients; ++i) {
    crowd.emplace_back(server->port()).send("GET /half HTTP");
  }
  // 127.0.0.1 has used up its share; a client from another address of this machine has not.
  TcpClient other(server->port(), "127.0.0.1", "127.0.0.2");
  other.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_THAT(other.receive(), StartsWith("HTTP/1.1 200 "));
  crowd.clear();
  const auto until = steady_clock::now() + std::chrono::seconds(20);
  while (http_get(server->port(), "/").status != 200) ASSERT_LT(steady_clock::now(), until) << "the places stay taken";
}

// 127.0.0.1 to 127.0.0.5, so that no share of one host is used up.
std::string host_of(unsigned client) {
  return "127.0.0." + std::to_string(1 + client % 5);
}

TEST_F(HttpServerTest, ClientsThatDoNotAskGiveWayToOneThatDoes) {
  const auto server = start(":0");
  std::deque<TcpClient> silent;
  for (unsigned i = 0; i < HttpServer::kMostClients; ++i) {
    silent.emplace_back(server->port(), "127.0.0.1", host_of(i)).send("GET /half HTTP");
  }
  const auto asked = steady_clock::now();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(http_get(server->port(), "/").status, 200);
  EXPECT_LT(steady_clock::now() - asked, HttpServer::kIdle / 2) << "waited until they were dropped for their silence";
}

TEST_F(HttpServerTest, ClientsOfTheSameHostThatDoNotAskGiveWayToo) {
  const auto server = start();
  std::deque<TcpClient> silent;
  for (unsigned i = 0; i < HttpServer::kMostClientsOfOneHost; ++i) {
    silent.emplace_back(server->port()).send("GET /half HTTP");
  }
  EXPECT_EQ(http_get(server->port(), "/").status, 200) << "as a kubelet beside other programs of the node's network";
}

TEST_F(HttpServerTest, SlowReadersOfLongAnswersLeavePlacesForShortOnes) {
  const auto server = start(":0");
  std::deque<TcpClient> slow;
  unsigned refused = 0;
  for (unsigned i = 0; i < HttpServer::kMostClients; ++i) {
    slow.emplace_back(server->port(), "127.0.0.1", host_of(i)).take_little();
    slow.back().send("GET /shared HTTP/1.1\r\nHost: h\r\n\r\n");
    // One after the other: of clients whose requests the server has not read yet it drops the oldest.
    if (slow.back().receive_some(12, std::chrono::seconds(20)) == "HTTP/1.1 503") ++refused;
  }
  const auto asked = steady_clock::now();
  EXPECT_EQ(http_get(server->port(), "/").status, 200);
  EXPECT_LT(steady_clock::now() - asked, HttpServer::kIdle);
  EXPECT_EQ(refused, HttpServer::kMostClients - HttpServer::kMostLong);
}

TEST_F(HttpServerTest, ARequestOfManyShortLinesCostsLittle) {
  const auto server = start(":0");
  std::string lines = "GET / HTTP/1.1\r\n";
  while (lines.size() + 4 < HttpServer::kRequestBytes) lines += "a:\n";
  const std::size_t before = ::mallinfo2().uordblks;
  std::deque<TcpClient> clients;
  for (unsigned i = 0; i < HttpServer::kMostClients - 1; ++i) {
    clients.emplace_back(server->port(), "127.0.0.1", host_of(i)).send(lines);
  }
  const auto sent = steady_clock::now();
  ASSERT_EQ(http_get(server->port(), "/").status, 200) << "the others have been read";
  EXPECT_LT(::mallinfo2().uordblks, before + (4U << 20U));
  for (TcpClient& client : clients) EXPECT_EQ(client.receive(), "") << "dropped";
  EXPECT_LT(steady_clock::now() - sent, HttpServer::kIdle) << "at once";
  std::string usual = "GET / HTTP/1.1\r\nHost: h\r\n";
  for (unsigned i = 0; i + 4 < HttpServer::kRequestLines; ++i) usual += "X-" + std::to_string(i) + ": y\r\n";
  EXPECT_THAT(answer_to(*server, usual + "\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, AfterARestTheLimitOfClientsStands) {
  const auto server = start(":0");
  Fd last(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  std::deque<TcpClient> clients;
  for (unsigned i = 0; i < 2 * HttpServer::kMostClients; ++i) {
    clients.emplace_back(server->port(), "127.0.0.1", host_of(i));
  }
  rlimit usual{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit few{static_cast<rlim_t>(last.get()), usual.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  static_cast<void>(clients.front().receive_some(1, std::chrono::milliseconds(100)));  // time for accept() to fail
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &usual), 0);
  EXPECT_EQ(http_get(server->port(), "/").status, 200) << "after the rest";
  std::size_t open = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(entry, gone).string().starts_with("socket:")) ++open;
  }
  EXPECT_LE(open, clients.size() + HttpServer::kMostClients + 4) << "ours, and those that the server has accepted";
}

TEST_F(HttpServerTest, EveryAddressIsIpv4AndIpv6) {
  const auto server = start(":0");
  EXPECT_EQ(http_get(server->port(), "/").status, 200);
  if (!open_listen_socket({"::1", 0})) GTEST_SKIP() << "no IPv6 here";
  EXPECT_EQ(http_get(server->port(), "/", "::1").status, 200);
}

TEST_F(HttpServerTest, OneAddressIsNoOther) {
  const auto server = start("127.0.0.1:0");
  EXPECT_FALSE(TcpClient(server->port(), "127.0.0.2").connected());
  if (!open_listen_socket({"::1", 0})) GTEST_SKIP() << "no IPv6 here";
  EXPECT_FALSE(TcpClient(server->port(), "::1").connected());
  const auto ipv6 = start("[::1]:0");
  EXPECT_EQ(http_get(ipv6->port(), "/", "::1").status, 200);
  EXPECT_FALSE(TcpClient(ipv6->port()).connected());
}

TEST_F(HttpServerTest, APortThatIsTakenIsUnavailableUntilItIsFree) {
  auto first = start(":0");
  const ListenAddress same{"", first->port()};
  const auto second = HttpServer::start(same, [](const HttpRequest&) { return HttpAnswer{}; });
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::unavailable);
  EXPECT_THAT(second.error().message, HasSubstr(to_string(same)));
  EXPECT_EQ(http_get(first->port(), "/").status, 200);
  first.reset();
  EXPECT_NE(start(to_string(same)), nullptr) << "connections that linger do not count";
}

TEST_F(HttpServerTest, AnAddressOfAnotherMachineIsNotFound) {
  const auto server = HttpServer::start({"192.0.2.1", 0}, [](const HttpRequest&) { return HttpAnswer{}; });
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::not_found);
}

TEST_F(HttpServerTest, EndsAtOnceWhateverItsClientsDo) {
  auto server = start();
  TcpClient half(server->port());
  half.send("GET /half HTTP");
  TcpClient unread(server->port());
  unread.send("GET /long HTTP/1.1\r\nHost: h\r\n\r\n");
  ASSERT_EQ(http_get(server->port(), "/").status, 200);
  const auto asked = steady_clock::now();
  server.reset();
  EXPECT_LT(steady_clock::now() - asked, std::chrono::milliseconds(500));
  EXPECT_EQ(half.receive(), "");
}

}  // namespace
}  // namespace neuron::metrics
