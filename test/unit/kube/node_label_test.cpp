#include "agent/kube/api_client.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

#include "test/fakes/fake_api_server.h"

namespace neuron::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;
using namespace std::chrono_literals;

constexpr const char* kLabel = "neuron-agent/simulate";

// A real server with TLS; the last word of the path decides how it answers (fake_api_server.py).
class NodeLabel : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.is_up()) << "python3 or openssl is missing";
    const auto access = in_cluster_access(server_.places());
    ASSERT_TRUE(access) << access.error().message;
    access_ = *access;
  }
  Result<std::optional<std::string>> ask(const std::string& node, std::chrono::milliseconds deadline = 10s) const {
    return node_label(access_, node, kLabel, {deadline, std::size_t{1} << 20U});
  }
  void expect_error(const std::string& node, ErrorCode code, const std::string& words,
                    std::chrono::milliseconds deadline = 10s) const {
    const auto begin = std::chrono::steady_clock::now();
    const auto label = ask(node, deadline);
    EXPECT_LT(std::chrono::steady_clock::now() - begin, deadline + 2s) << node;
    ASSERT_FALSE(label) << node;
    EXPECT_EQ(label.error().code, code) << label.error().message;
    EXPECT_THAT(label.error().message, HasSubstr(words));
    EXPECT_THAT(label.error().message, HasSubstr(access_.url));
    EXPECT_THAT(label.error().message, Not(HasSubstr(access_.token)));
  }

  fakes::FakeApiServer server_;
  ClusterAccess access_;
};

TEST_F(NodeLabel, IsReadWhereTheNodeHasIt) {
  EXPECT_THAT(*ask("trn2"), Optional(std::string("trn2.3xlarge")));
  EXPECT_EQ(*ask("plain"), std::nullopt);
  EXPECT_EQ(*ask("bare"), std::nullopt);
}

TEST_F(NodeLabel, NamesThatAreNoNodesAreNotAskedFor) {
  for (const char* name : {"", "..", "../pods", "a/b", "A", "a b", "a?b", "a%2f"}) {
    const auto label = ask(name);
    ASSERT_FALSE(label) << name;
    EXPECT_EQ(label.error().code, ErrorCode::invalid_argument) << name;
  }
}

TEST_F(NodeLabel, TheServersOwnWordsAreTold) {
  expect_error("forbidden", ErrorCode::permission_denied, "403: nodes \"forbidden\" is forbidden: User");
  expect_error("missing", ErrorCode::not_found, "404: nodes \"missing\" not found");
  expect_error("busy", ErrorCode::unavailable, "503: the server is not ready");
  access_.token = "another";
  expect_error("trn2", ErrorCode::permission_denied, "401: Unauthorized (the token of the service account");
}

TEST_F(NodeLabel, AServerThatTheCaDidNotSignGetsNoToken) {
  auto places = server_.places();
  places.ca_file = server_.dir() + "/other-ca.crt";
  access_ = *in_cluster_access(places);
  expect_error("trn2", ErrorCode::failed_precondition, "is not trusted; check the CA file");
  access_.ca_pem = "no certificate at all\n";
  expect_error("trn2", ErrorCode::failed_precondition, "is not trusted");
}

TEST_F(NodeLabel, ACertificateForAnotherNameIsRefused) {
  auto places = server_.places();
  places.host = "localhost";  // the certificate is for 127.0.0.1
  access_ = *in_cluster_access(places);
  expect_error("trn2", ErrorCode::failed_precondition, "is not trusted");
}

TEST_F(NodeLabel, ARedirectIsNotFollowed) {
  expect_error("redirect", ErrorCode::failed_precondition, "302, which is not followed");
}

TEST_F(NodeLabel, AnswersThatAreNone) {
  expect_error("garbage", ErrorCode::data_corrupt, "");
  expect_error("list", ErrorCode::data_corrupt, "not an API object");
  expect_error("number", ErrorCode::data_corrupt, "is not a string");
  expect_error("huge", ErrorCode::data_corrupt, "more than 1048576 bytes");
  expect_error("headers", ErrorCode::data_corrupt, "endless headers");
  expect_error("cut", ErrorCode::unavailable, "");
}

TEST_F(NodeLabel, NothingTakesLongerThanItsDeadline) {
  expect_error("slow", ErrorCode::deadline_exceeded, "did not answer within 300 ms", 300ms);
  expect_error("silent", ErrorCode::deadline_exceeded, "did not answer within 300 ms", 300ms);
}

TEST_F(NodeLabel, NobodyListens) {
  access_.url = "https://127.0.0.1:1";
  expect_error("trn2", ErrorCode::unavailable, "127.0.0.1:1");
}

TEST_F(NodeLabel, AProxyOfTheEnvironmentIsNotAsked) {
  ASSERT_EQ(::setenv("https_proxy", "http://127.0.0.1:1", 1), 0);
  ASSERT_EQ(::setenv("ALL_PROXY", "http://127.0.0.1:1", 1), 0);
  EXPECT_THAT(*ask("trn2"), Optional(std::string("trn2.3xlarge")));
}

// The system's authorities are in SSL_CERT_FILE as well: they count as little as the others.
TEST_F(NodeLabel, OnlyTheGivenAuthorityCounts) {
  ASSERT_EQ(::setenv("SSL_CERT_FILE", (server_.dir() + "/ca.crt").c_str(), 1), 0);
  ASSERT_EQ(::setenv("SSL_CERT_DIR", server_.dir().c_str(), 1), 0);
  auto places = server_.places();
  places.ca_file = server_.dir() + "/other-ca.crt";
  access_ = *in_cluster_access(places);
  expect_error("trn2", ErrorCode::failed_precondition, "is not trusted");
}

}  // namespace
}  // namespace neuron::kube
