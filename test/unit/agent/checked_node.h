#pragma once

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "test/fakes/fake_host.h"
#include "tools/neuron-agent/reports.h"

namespace neuron::agent::test {

// A simulated host that a check finds nothing wrong with, and a kubelet's directory beside it.
class CheckedNode {
 public:
  explicit CheckedNode(const std::string& type) : host(type) {
    host.file("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "21121\n");
    host.file("etc/containerd/config.toml", "version = 3\n");
    std::string pattern = std::filesystem::temp_directory_path().string() + "/neuron-check-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    kubelet = pattern;
    touch("device-plugins/kubelet.sock");
    touch("pod-resources/kubelet.sock");
  }
  ~CheckedNode() {
    std::error_code error;
    std::filesystem::remove_all(kubelet, error);
  }
  CheckedNode(const CheckedNode&) = delete;
  CheckedNode& operator=(const CheckedNode&) = delete;

  void touch(const std::string& path, const std::string& text = "") const {
    const std::filesystem::path full = kubelet + '/' + path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  // Takes a file or folder out of the written host.
  void erase(const std::string& path) const { std::filesystem::remove_all(host.path() + '/' + path); }

  [[nodiscard]] Options options() const {
    Options options;
    options.root = host.path();
    options.kubelet_dir = kubelet;
    options.kubelet_dir_set = true;
    return options;
  }
  [[nodiscard]] Report check() const { return check_node(options()); }
  [[nodiscard]] nlohmann::json check_json() const {
    Options json = options();
    json.output = ReportForm::json;
    return nlohmann::json::parse(check_node(json).output);
  }
  [[nodiscard]] std::vector<std::string> codes() const {
    std::vector<std::string> codes;
    const nlohmann::json document = check_json();
    for (const auto& finding : document.at("findings")) codes.push_back(finding.at("code"));
    return codes;
  }

  fakes::FakeHost host;
  std::string kubelet;
};

}  // namespace neuron::agent::test
