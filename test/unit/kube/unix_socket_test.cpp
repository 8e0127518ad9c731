#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <future>

#include "agent/base/fd.h"
#include "agent/kube/transfer.h"

namespace neuron::kube {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Serves one exchange on a socket of its own; the request that it saw is received().
class OneAnswer {
 public:
  explicit OneAnswer(const std::string& answer) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path_.c_str(), sizeof address.sun_path - 1);
    // NOLINTNEXTLINE: as bind() wants it
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 1), 0);
    request_ = std::async(std::launch::async, [this, answer] {
      const Fd peer(::accept(listener_.get(), nullptr, nullptr));
      std::string request;
      std::array<char, 4096> buffer{};
      while (request.find("\r\n\r\n") == std::string::npos) {
        const ssize_t got = ::read(peer.get(), buffer.data(), buffer.size());
        if (got <= 0) break;
        request.append(buffer.data(), static_cast<std::size_t>(got));
      }
      static_cast<void>(write_all(peer.get(), answer, "the client"));
      return request;
    });
  }
  ~OneAnswer() { ::unlink(path_.c_str()); }
  OneAnswer(const OneAnswer&) = delete;
  OneAnswer& operator=(const OneAnswer&) = delete;

  [[nodiscard]] ClusterAccess access() const {
    ClusterAccess access;
    access.url = "http://localhost";
    access.token = "must-not-be-sent";
    access.unix_socket = path_;
    return access;
  }
  std::string received() { return request_.get(); }

 private:
  std::string path_ = testing::TempDir() + "/kube-" + std::to_string(::getpid()) + ".socket";
  Fd listener_{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::future<std::string> request_;
};

TEST(UnixSocket, AProxyIsCalledWithoutToken) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
  Connection connection;
  const HttpRequest request{.target = "/api/v1/nodes?limit=5"};
  const auto answer = connection.call(server.access(), request, {}, {});
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "{}");
  const std::string seen = server.received();
  EXPECT_THAT(seen, StartsWith("GET /api/v1/nodes?limit=5 HTTP/1.1\r\n"));
  EXPECT_THAT(seen, HasSubstr("Host: localhost\r\n"));  // kubectl proxy refuses others
  EXPECT_THAT(seen, Not(HasSubstr("must-not-be-sent")));
}

TEST(UnixSocket, HalfAnAnswerAndNoSocketAreErrors) {
  OneAnswer server("HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\n{");
  Connection connection;
  const HttpRequest request{.target = "/"};
  EXPECT_FALSE(connection.call(server.access(), request, {}, {}));
  ClusterAccess nowhere = server.access();
  nowhere.unix_socket += ".no";
  const auto answer = Connection().call(nowhere, request, {}, {});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace neuron::kube
