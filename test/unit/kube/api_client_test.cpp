#include "agent/kube/api_client.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "agent/kube/object_watch.h"
#include "test/fakes/fake_api_server.h"
#include "test/fakes/sanitized.h"

namespace neuron::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using namespace std::chrono_literals;
using Json = nlohmann::json;
using Lines = std::vector<std::string>;

// A real server with TLS; the last word of the path decides how it answers (test/fakes/fake_api_server.py).
class ApiClientTest : public ::testing::Test {
 protected:
  ApiClientTest() {
    limits_.calls_per_second = 10'000;
    limits_.burst = 1000;
  }
  void SetUp() override {
    ASSERT_TRUE(server_.is_up()) << "python3 or openssl is missing";
    renew();
  }
  void renew() { client_.emplace(server_.api_places(), limits_); }
  static ApiCall get(const std::string& name) { return {.path = "/try/" + name}; }
  Json echo(const ApiCall& call) {
    const auto reply = client_->call(call);
    EXPECT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->status, 200) << reply->body;
    return reply && reply->status == 200 ? Json::parse(reply->body) : Json();
  }
  int connection() { return echo(get("echo"))["connection"].get<int>(); }
  void expect_error(const std::string& name, ErrorCode code, const std::string& words) {
    const auto begin = std::chrono::steady_clock::now();
    const auto reply = client_->call(get(name));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, limits_.http.deadline + 2s) << name;
    ASSERT_FALSE(reply) << name;
    EXPECT_EQ(reply.error().code, code) << reply.error().message;
    EXPECT_THAT(reply.error().message, AllOf(HasSubstr(words), HasSubstr("https://127.0.0.1:"),
                                             HasSubstr("/try/" + name), Not(HasSubstr("good-token"))));
  }
  // The lines of a stream, at most `most`, and how it ended.
  Result<ApiReply> stream(const std::string& name, Lines& lines, std::size_t most = 1000,
                          const std::stop_token& stop = {}) {
    ApiCall call = get(name);
    call.query = "watch=true";
    return client_->stream(
        call,
        [&](std::string_view line) {
          lines.emplace_back(line);
          return lines.size() < most;
        },
        stop);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(server_.dir() + "/" + name) << text;
  }
  [[nodiscard]] std::string read(const std::string& name) const {
    std::ifstream file(server_.dir() + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fakes::FakeApiServer server_;
  ClientLimits limits_;
  std::optional<ApiClient> client_;
};

TEST_F(ApiClientTest, SaysWhatItWants) {
  struct Case {
    Method method;
    std::string verb, content_type;
  };
  for (const Case& one :
       {Case{Method::create, "POST", "application/json"}, Case{Method::replace, "PUT", "application/json"},
        Case{Method::merge_patch, "PATCH", "application/merge-patch+json"},
        Case{Method::apply, "PATCH", "application/apply-patch+yaml"},
        Case{Method::remove, "DELETE", "application/json"}}) {
    const Json seen = echo({.method = one.method, .path = "/try/echo", .query = "a=b%2Fc&d=e", .body = R"({"x":"ä"})"});
    EXPECT_EQ(seen["verb"], one.verb);
    EXPECT_EQ(seen["content_type"], one.content_type);
    EXPECT_EQ(seen["path"], "/try/echo?a=b%2Fc&d=e");
    EXPECT_EQ(seen["body"], R"({"x":"ä"})");
    EXPECT_EQ(seen["accept"], "application/json");
  }
  const Json removed = echo({.method = Method::remove, .path = "/try/echo"});
  EXPECT_EQ(removed["verb"], "DELETE");
  EXPECT_EQ(removed["content_type"], "");
  const Json read = echo({.path = "/try/echo", .accept = kMetadataOnly});
  EXPECT_EQ(read["verb"], "GET");
  EXPECT_EQ(read["accept"], kMetadataOnly);
  const std::string long_body(std::size_t{3} << 20U, 'x');  // more than libcurl would announce first
  EXPECT_EQ(echo({.method = Method::create, .path = "/try/echo", .body = long_body})["body"], long_body);
}

TEST_F(ApiClientTest, OtherPathsAreNotAskedFor) {
  for (const char* path :
       {"", "try", "/../x", "/a/..", "/a/./b", "//a", "/a b", "/a\nb", "/a?b", "/a#b", "/\xc3\xa4", "@evil/"}) {
    EXPECT_EQ(client_->call({.path = path}).error().code, ErrorCode::invalid_argument) << path;
  }
  EXPECT_EQ(client_->call({.path = "/a", .query = "b c"}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(client_->stream({.method = Method::create, .path = "/a"}, {}, {}).error().code,
            ErrorCode::invalid_argument);
  EXPECT_EQ(echo(get("echo"))["connection"], 1);  // nobody was asked before
}

TEST_F(ApiClientTest, ConnectionsAreKept) {
  EXPECT_EQ(connection(), 1);
  EXPECT_EQ(connection(), 1);
  EXPECT_EQ(client_->call(get("status-404"))->status, 404);
  EXPECT_EQ(connection(), 1);
  EXPECT_EQ(echo(get("close"))["connection"], 1);
  EXPECT_EQ(connection(), 2);
  EXPECT_EQ(echo(get("reset"))["connection"], 2);  // is lost while nobody uses it
  EXPECT_EQ(connection(), 3);
  EXPECT_EQ(echo({.method = Method::create, .path = "/try/echo"})["connection"], 4);  // so that it is not sent twice
  EXPECT_EQ(connection(), 4);
}

TEST_F(ApiClientTest, ChildProcessesDoNotGetItsConnections) {
  EXPECT_EQ(connection(), 1);
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::stoi(entry.path().filename());
    sockaddr_storage peer{};
    socklen_t length = sizeof(peer);
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 || peer.ss_family == AF_UNIX) continue;
    EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
    ++count;
  }
  EXPECT_EQ(count, 1);
}

TEST_F(ApiClientTest, StatusesAreAnswers) {
  for (const int status : {201, 302, 400, 403, 404, 409, 410, 422, 500, 503}) {
    const auto reply = client_->call(get("status-" + std::to_string(status)));
    ASSERT_TRUE(reply) << reply.error().message;
    EXPECT_EQ(reply->status, status);
    EXPECT_THAT(reply->body, HasSubstr("as asked"));
  }
  EXPECT_EQ(client_->call(get("redirect"))->status, 302);
}

TEST_F(ApiClientTest, ARotatedTokenCounts) {
  EXPECT_EQ(echo(get("rotate"))["requests"], 2);  // read again after a 401
  EXPECT_EQ(echo(get("echo"))["requests"], 1);
  const std::string token = read("token");
  write("token", "another");
  EXPECT_EQ(client_->call(get("echo"))->status, 401);
  EXPECT_THAT(body_of(*client_->call(get("expel")), get("expel")).error().message,
              HasSubstr("GET /try/expel answers 401: Unauthorized (the token of the service account is not accepted)"));
  write("token", token);
  EXPECT_EQ(echo(get("echo"))["connection"], 1);
  std::filesystem::remove(server_.dir() + "/token");
  EXPECT_EQ(client_->call(get("echo")).error().code, ErrorCode::failed_precondition);
}

TEST_F(ApiClientTest, ARotatedAuthorityCounts) {
  EXPECT_EQ(echo(get("new-ca"))["connection"], 1);
  EXPECT_EQ(connection(), 1);  // whom it trusted it trusts
  write("ca.crt", read("other-ca.crt"));
  EXPECT_EQ(connection(), 2);
  renew();
  write("ca.crt", read("other-ca.crt") + read("other-ca.crt"));
  EXPECT_EQ(connection(), 3);
}

TEST_F(ApiClientTest, OnlyTheGivenAuthorityIsTrusted) {
  write("ca.crt", read("other-ca.crt"));
  expect_error("echo", ErrorCode::failed_precondition, "is not trusted; check the CA file");
  EXPECT_EQ(client_->stream(get("watch"), {}, {}).error().code, ErrorCode::failed_precondition);
}

TEST_F(ApiClientTest, AnswersThatAreNone) {
  limits_.http.max_bytes = std::size_t{1} << 20U;
  renew();
  expect_error("garbage", ErrorCode::data_corrupt, "");
  expect_error("huge", ErrorCode::data_corrupt, "more than 1048576 bytes");
  expect_error("headers", ErrorCode::data_corrupt, "endless headers");
  expect_error("cut", ErrorCode::unavailable, "");
  expect_error("reset-before", ErrorCode::unavailable, "");
  EXPECT_EQ(client_->call(get("drip"))->body, std::string(20, ' '));
}

TEST_F(ApiClientTest, NothingTakesLongerThanItsDeadline) {
  limits_.http.deadline = fakes::kSanitized ? 3000ms : 300ms;
  const std::string words = "did not answer within " + std::to_string(limits_.http.deadline.count()) + " ms";
  renew();
  expect_error("slow", ErrorCode::deadline_exceeded, words);
  expect_error("silent", ErrorCode::deadline_exceeded, words);
  Lines lines;
  EXPECT_EQ(stream("watch-late", lines).error().code, ErrorCode::deadline_exceeded);
  EXPECT_EQ(echo(get("echo"))["verb"], "GET");
}

TEST_F(ApiClientTest, WhoWouldWaitTooLongIsToldAtOnce) {
  limits_.calls_per_second = 0.01;
  limits_.burst = 2;
  renew();
  echo(get("echo"));
  echo(get("echo"));
  EXPECT_THAT(client_->call(get("echo")).error().message, HasSubstr("is reached"));
  limits_.calls_per_second = 1000;
  limits_.http.deadline = 500ms;
  renew();
  EXPECT_EQ(client_->call(get("retry-3"))->status, 429);
  EXPECT_EQ(client_->call(get("echo")).error().code, ErrorCode::unavailable);
}

TEST_F(ApiClientTest, ManyThreadsAtOnce) {
  const auto fds = [] { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}); };
  const auto before = fds();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([this, i] {
        for (int j = 0; j < 10; ++j) {
          const std::string name = "/try/echo/" + std::to_string(i) + "-" + std::to_string(j);
          EXPECT_EQ(echo({.path = name})["path"], name);
        }
      });
    }
  }
  EXPECT_LE(fds() - before, 2 * 8);  // two idle connections: a socket, and what wakes libcurl
}

TEST_F(ApiClientTest, SoManyCallsAtOnceAndTheOthersAfterThem) {
  limits_.at_once = 2;
  renew();
  std::mutex mutex;
  std::set<int> connections;
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        const int number = connection();
        const std::lock_guard lock(mutex);
        connections.insert(number);
      });
    }
  }
  EXPECT_LE(connections.size(), 2U) << "which are kept";
}

TEST_F(ApiClientTest, StreamsLines) {
  Lines lines;
  const auto reply = stream("watch", lines);
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->status, 200);
  ASSERT_THAT(lines, SizeIs(3));
  EXPECT_EQ(Json::parse(lines[2])["type"], "DELETED");
  EXPECT_EQ(connection(), 1);  // it was read to its end
}

TEST_F(ApiClientTest, HowStreamsEnd) {
  limits_.http.idle = fakes::kSanitized ? 500ms : 200ms;
  limits_.http.max_line = std::size_t{1} << 20U;
  renew();
  Lines lines;
  EXPECT_EQ(stream("watch-hang", lines)->status, 200);
  EXPECT_THAT(lines, SizeIs(2));
  lines.clear();
  EXPECT_EQ(stream("watch-cut", lines).error().code, ErrorCode::unavailable);
  EXPECT_THAT(lines, SizeIs(2));
  lines.clear();
  EXPECT_EQ(stream("watch-flood", lines, 5000)->status, 200);
  EXPECT_THAT(lines, SizeIs(5000));
  lines.clear();
  EXPECT_THAT(stream("watch-long", lines).error().message, HasSubstr("a line of more than 1048576 bytes"));
  lines.clear();
  EXPECT_EQ(stream("watch-drip", lines, 30)->status, 200);  // longer than `idle` in all
  EXPECT_THAT(lines, SizeIs(30));
  lines.clear();
  const auto gone = stream("watch-410", lines);
  EXPECT_EQ(gone->status, 410);
  EXPECT_THAT(gone->body, HasSubstr("too old"));
  EXPECT_TRUE(lines.empty());
}

TEST_F(ApiClientTest, AStreamCanMakeCalls) {
  ApiCall call = get("watch");
  std::vector<int> connections;
  const auto reply = client_->stream(call, [&](auto) { return connections.push_back(connection()), true; }, {});
  EXPECT_TRUE(reply);
  EXPECT_EQ(connections, (std::vector<int>{2, 2, 2}));
}

TEST_F(ApiClientTest, AStopIsImmediate) {
  for (const char* name : {"watch-hang", "watch-drip", "watch-late"}) {
    std::stop_source stop;
    std::promise<void> begun;
    auto ended = std::async(std::launch::async, [&] {
      ApiCall call = get(name);
      call.query = "watch=true";
      if (std::string(name) == "watch-late") begun.set_value();
      int count = 0;
      const auto reply = client_->stream(
          call, [&](auto) { return ++count == 2 ? begun.set_value(), true : true; }, stop.get_token());
      EXPECT_EQ(reply->status, 200);
      return std::chrono::steady_clock::now();
    });
    begun.get_future().wait();
    const auto stopped = std::chrono::steady_clock::now();
    stop.request_stop();
    EXPECT_LT(ended.get() - stopped, 100ms) << name;
  }
}

TEST_F(ApiClientTest, ClosingEndsEverything) {
  auto call = std::async(std::launch::async, [&] { return client_->call(get("silent")); });
  std::promise<void> begun;
  auto watch = std::async(std::launch::async, [&] {
    int count = 0;
    return client_->stream(get("watch-hang"), [&](auto) { return ++count == 2 ? begun.set_value(), true : true; }, {});
  });
  begun.get_future().wait();
  const auto begin = std::chrono::steady_clock::now();
  client_->close();
  EXPECT_EQ(call.get().error().code, ErrorCode::unavailable);
  EXPECT_EQ(watch.get()->status, 200);
  EXPECT_EQ(client_->call(get("echo")).error().code, ErrorCode::unavailable);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
}

TEST_F(ApiClientTest, CarriesAListAndWatch) {
  class Sink final : public WatchSink {
   public:
    void on_reset() override { lines.emplace_back("reset"); }
    void on_upsert(const ApiObject& object) override { lines.push_back(object.name); }
    void on_remove(const ApiObject&) override {}
    void on_synced() override { lines.emplace_back("synced"); }
    void on_trouble(const Error& error) override { lines.push_back(error.message); }
    Lines lines;
  } sink;
  std::stop_source stop;
  const SystemClock clock;
  ObjectWatch watch(*client_, {"/try/api/list", ""}, sink, clock, {}, [&](auto, const auto&) { stop.request_stop(); });
  watch.run(stop.get_token());
  EXPECT_EQ(sink.lines,
            Lines({"reset", "a", "b", "c", "synced", "d", "watching /try/api/list: the server ended it: too old"}));
}

}  // namespace
}  // namespace neuron::kube
