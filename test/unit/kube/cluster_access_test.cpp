#include "agent/kube/cluster_access.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace neuron::kube {
namespace {

using ::testing::HasSubstr;

class ClusterAccessTest : public ::testing::Test {
 protected:
  ClusterAccessTest() {
    std::string name = "/tmp/cluster-access-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    places_.host = "10.96.0.1";
    places_.port = "443";
    places_.token_file = write("token", "abc.def\n");
    places_.ca_file = write("ca.crt", "-----BEGIN CERTIFICATE-----\n");
  }
  ~ClusterAccessTest() override { std::filesystem::remove_all(dir_); }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(dir_ + "/" + name) << text;
    return dir_ + "/" + name;
  }
  void expect_error(ErrorCode code, const std::string& words) const {
    const auto access = in_cluster_access(places_);
    ASSERT_FALSE(access);
    EXPECT_EQ(access.error().code, code) << access.error().message;
    EXPECT_THAT(access.error().message, HasSubstr(words));
    EXPECT_THAT(access.error().message, Not(HasSubstr("abc.def")));
  }

  std::string dir_;
  InClusterPlaces places_;
};

TEST_F(ClusterAccessTest, ReadsWhatThePodHas) {
  const auto access = in_cluster_access(places_);
  ASSERT_TRUE(access) << access.error().message;
  EXPECT_EQ(access->url, "https://10.96.0.1:443");
  EXPECT_EQ(access->token, "abc.def");
  EXPECT_EQ(access->ca_pem, "-----BEGIN CERTIFICATE-----\n");
}

TEST_F(ClusterAccessTest, SixthVersionAddressesAreBracketed) {
  places_.host = "fd00:10:96::1";
  EXPECT_EQ(in_cluster_access(places_)->url, "https://[fd00:10:96::1]:443");
}

TEST_F(ClusterAccessTest, OutsideACluster) {
  places_.host = "";
  expect_error(ErrorCode::failed_precondition, "KUBERNETES_SERVICE_HOST");
}

TEST_F(ClusterAccessTest, HostAndPortMayNotMeanAnythingElse) {
  for (const char* host : {"evil/", "a@b", "a b", "a\nb", "a?b", "a#b", "[::1]"}) {
    places_.host = host;
    expect_error(ErrorCode::invalid_argument, "KUBERNETES_SERVICE_HOST is not a host");
  }
  places_.host = "10.96.0.1";
  for (const char* port : {"0", "65536", "443x", "-1", "tcp://10.96.0.1:443"}) {
    places_.port = port;
    expect_error(ErrorCode::invalid_argument, "KUBERNETES_SERVICE_PORT is not a port");
  }
}

TEST_F(ClusterAccessTest, FlagsCountBeforeThePod) {
  const auto url = [this](const std::string& server) {
    const auto places = api_places({.server = server}, places_);
    return places ? places->url : places.error().message;
  };
  for (const char* server :
       {"https://10.0.0.1:6443", "https://api.example", "https://[fd00::1]:6443", "https://[fd00::1]"}) {
    EXPECT_EQ(url(server), server);
  }
  EXPECT_EQ(url("https://api.example:443/"), "https://api.example:443");
  EXPECT_EQ(url(""), "https://10.96.0.1:443");
  for (const char* server :
       {"10.0.0.1:6443", "http://10.0.0.1", "https://", "https://:443", "https://a:0", "https://a:99999",
        "https://a:", "https://a/b", "https://u@a", "https://a?b", "https://[fd00::1", "https://[a]", "https://fd00::1",
        "https://a//", "https://a b", "HTTPS://a", "https://[fd00::1]x"}) {
    EXPECT_THAT(url(server), HasSubstr("--api-server is not a URL such as https://10.0.0.1:6443: ")) << server;
  }
  const auto files = api_places({.token_file = "/t", .ca_file = "/c"}, places_);
  EXPECT_EQ(files->token_file + files->ca_file, "/t/c");
  places_.host = "";
  EXPECT_EQ(url("https://a"), "https://a");
  EXPECT_EQ(api_places({}, places_).error().code, ErrorCode::failed_precondition);
  EXPECT_EQ(api_places({.server = "https://a"}, places_)->token_file, places_.token_file);
}

TEST_F(ClusterAccessTest, FilesThatAreNotThere) {
  places_.ca_file = dir_ + "/none";
  expect_error(ErrorCode::failed_precondition, "/none is missing: the pod needs a projected volume");
  places_.token_file = dir_;  // a directory in its place cannot be read, even by root
  expect_error(ErrorCode::data_corrupt, dir_);
}

TEST_F(ClusterAccessTest, FilesAreBoundedAndValidated) {
  write("token", std::string((std::size_t{16} << 10U) + 1, 'a'));
  expect_error(ErrorCode::data_corrupt, "more than 16384 bytes");
  write("token", " \n");
  expect_error(ErrorCode::data_corrupt, "is empty");
  for (const char* token : {"abc def", "abc\r\nX-Evil: 1", "abc\x01", "abc\xc3\xa4"}) {
    write("token", token);
    expect_error(ErrorCode::data_corrupt, "holds no token");
  }
  write("token", "t");
  write("ca.crt", std::string((std::size_t{1} << 20U) + 1, 'a'));
  expect_error(ErrorCode::data_corrupt, "more than 1048576 bytes");
  places_.ca_file = "/dev/zero";  // without end
  expect_error(ErrorCode::data_corrupt, "more than 1048576 bytes");
}

TEST_F(ClusterAccessTest, AFifoDoesNotHoldIt) {
  places_.token_file = dir_ + "/fifo";
  ASSERT_EQ(::mkfifo(places_.token_file.c_str(), 0600), 0);
  expect_error(ErrorCode::data_corrupt, "is empty");
}

}  // namespace
}  // namespace neuron::kube
