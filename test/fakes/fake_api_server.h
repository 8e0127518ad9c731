#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "agent/kube/cluster_access.h"

namespace neuron::fakes {

// test/fakes/fake_api_server.py as long as the object lives: a real TLS server on a port of loopback, with the files of
// a service account volume in a directory of its own. is_up() is false when it did not start within half a minute.
class FakeApiServer {
 public:
  FakeApiServer() {
    std::string name = "/tmp/fake-api-server-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    input_ = ::popen(("exec python3 " NEURON_SOURCE_DIR "/test/fakes/fake_api_server.py " + dir_).c_str(), "w");
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (port_.empty() && std::chrono::steady_clock::now() < deadline) {
      std::ifstream(dir_ + "/port") >> port_;
      if (port_.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
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

 private:
  std::string dir_;
  std::string port_;
  std::FILE* input_ = nullptr;
};

}  // namespace neuron::fakes
