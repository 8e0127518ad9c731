#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "agent/base/fd.h"
#include "agent/kube/cluster_access.h"
#include "test/fakes/paths.h"

namespace neuron::fakes {

// test/fakes/fake_api_server.py as long as the object lives: a real TLS server on a port of loopback, with the files of
// a service account volume in a directory of its own. is_up() is false when it did not start within half a minute.
class FakeApiServer {
 public:
  // `script`: the server's, in test/fakes.
  explicit FakeApiServer(const std::string& script = "fake_api_server.py") {
    std::string name = "/tmp/fake-api-server-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    const std::string port = dir_ + "/port";  // a pipe with a name, since popen() has one direction only
    if (::mkfifo(port.c_str(), 0600) != 0) return;
    const Fd output(::open(port.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    input_ =
        ::popen(("exec python3 -B " + source_dir() + "/test/fakes/" + script + " " + dir_ + " >" + port).c_str(), "w");
    pollfd printed{output.get(), POLLIN, 0};
    std::array<char, 16> text{};
    if (::poll(&printed, 1, 30'000) == 1 && ::read(output.get(), text.data(), text.size() - 1) > 0) port_ = text.data();
  }
  ~FakeApiServer() {
    if (input_ != nullptr) ::pclose(input_);  // it ends with its standard input
    std::filesystem::remove_all(dir_);
  }
  FakeApiServer(const FakeApiServer&) = delete;
  FakeApiServer& operator=(const FakeApiServer&) = delete;

  [[nodiscard]] bool is_up() const { return !port_.empty(); }
  [[nodiscard]] const std::string& dir() const { return dir_; }

  [[nodiscard]] kube::InClusterPlaces places() const {
    kube::InClusterPlaces places;
    places.host = "127.0.0.1";
    places.port = port_;
    places.token_file = dir_ + "/token";
    places.ca_file = dir_ + "/ca.crt";
    return places;
  }
  [[nodiscard]] kube::ApiPlaces api_places() const {
    return {"https://127.0.0.1:" + port_, dir_ + "/token", dir_ + "/ca.crt"};
  }

 private:
  std::string dir_;
  std::string port_;
  std::FILE* input_ = nullptr;
};

}  // namespace neuron::fakes
