#pragma once

#include <stdlib.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::fakes {

// A simulated host in a temporary directory of its own, removed at the end. Link neuron::sim. For tests: what cannot be
// done ends the program with a message. Not copyable; one thread at a time.
//
//   FakeHost host("trn1.32xlarge");
//   host.driver("2.28.0.0").missing({3}).write();
//   host.set("neuron4", "sram_ecc_uncorrected=1");
class FakeHost {
 public:
  explicit FakeHost(std::string instance_type) {
    std::string pattern = parent() + "/neuron-host-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) give_up("mkdtemp " + pattern);
    path_ = pattern;
    plan_.instance_type = std::move(instance_type);
  }
  ~FakeHost() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;

  // What write() will make; see sim::HostPlan.
  FakeHost& driver(std::string version) {
    return change([&] { plan_.driver_version = std::move(version); });
  }
  FakeHost& lnc(int value) {
    return change([&] { plan_.lnc = value; });
  }
  FakeHost& missing(std::vector<int> indices) {
    return change([&] { plan_.missing = std::move(indices); });
  }
  FakeHost& without(sim::Part part) {
    return change([&] { plan_.without.insert(part); });
  }
  // "busy", "alone", "2", "4" or "4:3".
  FakeHost& ultraserver(std::string_view state) {
    return change([&] {
      const auto plan = sim::parse_ultraserver(state);
      if (!plan) give_up(plan.error().message);
      plan_.ultraserver = *plan;
    });
  }
  FakeHost& instance_id(std::string id) {
    return change([&] { plan_.instance_id = std::move(id); });
  }
  FakeHost& naming(sim::RdmaNaming naming) {
    return change([&] { plan_.naming = naming; });
  }
  FakeHost& file(const std::string& path, std::string text) {
    return change([&] { plan_.files[path] = std::move(text); });
  }

  // Writes the directory, or writes it again.
  FakeHost& write() {
    if (const auto written = sim::write_host(plan_, path_); !written) give_up(written.error().message);
    return *this;
  }

  // One or more actions of `neuron-sim set`: set("neuron3", "vanish"), set("neuron3", "garbage", "core_count").
  template <typename... Words>
  FakeHost& set(const std::string& target, Words&&... words) {
    const auto applied = sim::apply_fault(path_, target, {std::string(std::forward<Words>(words))...});
    if (!applied) give_up(applied.error().message);
    return *this;
  }

  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  template <typename Change>
  FakeHost& change(Change&& change) {
    change();
    return *this;
  }
  // Memory where there is plenty: thousands of files come and go much faster there than on ext4.
  [[nodiscard]] static std::string parent() {
    constexpr std::uintmax_t kPlenty = std::uintmax_t{512} << 20U;
    std::error_code error;
    const auto memory = std::filesystem::space("/dev/shm", error);
    if (::getenv("TMPDIR") == nullptr && !error && memory.available >= kPlenty && ::access("/dev/shm", W_OK) == 0) {
      return "/dev/shm";
    }
    return std::filesystem::temp_directory_path().string();
  }
  [[noreturn]] static void give_up(const std::string& message) {
    std::fprintf(stderr, "FakeHost: %s\n", message.c_str());
    std::abort();
  }

  std::string path_;
  sim::HostPlan plan_;
};

}  // namespace neuron::fakes
