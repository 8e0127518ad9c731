// /metrics of the real agent beside a simulated trn2.48xlarge and a kubelet: what it says, how soon, and what it costs.
#include <cstdio>
#include <fstream>

#include "plugin/device/refusals.h"
#include "test/fakes/sanitized.h"
#include "test/fakes/tcp_client.h"
#include "test/fakes/tls_client.h"
#include "test/integration/metrics_port.h"
#include "test/integration/node.h"

namespace neuron::fakes {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;

constexpr milliseconds kScanInterval{50};  // of Node

constexpr std::size_t kMostResidentKib = 20U * 1024;
constexpr std::size_t kMostAnonymousKib = 6U * 1024;
constexpr std::size_t kGivenBackKib = 1024;  // of what is there right after a scrape, at least

// The first line that begins with `start` and has all of `parts`; "" = none.
std::string line_of(const std::string& text, const std::string& start, const std::vector<std::string>& parts = {}) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const bool has_all = std::all_of(parts.begin(), parts.end(),
                                     [&](const std::string& part) { return line.find(part) != std::string::npos; });
    if (line.starts_with(start) && has_all) return line;
    at = end + 1;
  }
  return "";
}

double value_of(const std::string& line) {
  return line.empty() ? -1 : std::stod(line.substr(line.rfind(' ') + 1));
}

std::size_t kib_of(pid_t pid, const std::string& field) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field + ":")) return std::stoul(line.substr(field.size() + 1));
  }
  return 0;
}

class MetricsTest : public ::testing::Test {
 protected:
  explicit MetricsTest() { node_.extra_arguments = {"--metrics-address", "127.0.0.1:0", "--node-name", "node-7"}; }
  void start() {
    node_.start();
    port_ = metrics_port(node_);
    for (const auto& [resource, units] : {std::pair{kNeuron, 16}, {kCore, 64}, {kEfa, 16}}) {
      ASSERT_TRUE(node_.wait_allocatable(resource, units)) << node_.agent->log();
    }
  }
  [[nodiscard]] std::string scrape() const {
    const HttpReply reply = http_get(port_, "/metrics");
    EXPECT_EQ(reply.status, 200);
    return reply.body;
  }
  // The first scrape that has such a line with that value, and the line.
  std::string await(const std::string& start, const std::vector<std::string>& parts, double value) {
    const auto until = steady_clock::now() + kPatience;
    for (;;) {
      std::string line = line_of(scrape(), start, parts);
      if ((!line.empty() && value_of(line) == value) || steady_clock::now() > until) return line;
      static_cast<void>(node_.agent->wait(milliseconds(2)));
    }
  }
  Node node_{"trn2.48xlarge"};
  std::uint16_t port_ = 0;
};

TEST_F(MetricsTest, SayWhatTheNodeIsAndWhoHoldsWhat) {
  node_.host.instance_id("i-0123456789abcdef0");
  start();
  const std::string info = await("neuron_hardware_info", {}, 1);
  for (const char* label : {"instance_name=\"node-7\"", "instance_id=\"i-0123456789abcdef0\"",
                            "instance_type=\"trn2.48xlarge\"", "neuron_device_count=\"16\""}) {
    EXPECT_THAT(info, HasSubstr(label));
  }
  const auto pod = node_.run("train", {{kCore, 2}});
  ASSERT_TRUE(pod) << pod.error().message;
  const std::vector<std::string> of_pod = {"namespace=\"default\"", "pod=\"train\"", "container=\"main\""};
  EXPECT_NE(await("neuron_core_info", of_pod, 1), "") << scrape();
  const std::string all = scrape();
  int held = 0;
  for (int core = 0; core < 64; ++core) {
    std::vector<std::string> parts = of_pod;
    parts.push_back("neuroncore=\"" + std::to_string(core) + "\"");
    if (!line_of(all, "neuron_core_info", parts).empty()) ++held;
  }
  EXPECT_EQ(held, 2);
  const std::string of_cores = "resource=\"" + std::string(kCore) + "\"";
  EXPECT_EQ(value_of(line_of(all, "neuron_agent_units{", {of_cores})), 64);
  EXPECT_EQ(value_of(line_of(all, "neuron_agent_units_held", {of_cores})), 2);
  EXPECT_EQ(value_of(line_of(all, "neuron_agent_largest_request_units", {of_cores})), 62);
  EXPECT_EQ(value_of(line_of(all, "neuron_agent_registered", {of_cores})), 1);
  EXPECT_EQ(value_of(line_of(all, "neuron_agent_registrations_total", {of_cores})), 1);
  EXPECT_EQ(value_of(line_of(all, "neuron_agent_allocations_total", {of_cores})), 1);
  EXPECT_EQ(value_of(line_of(all, "neuron_agent_call_seconds_count", {"method=\"Allocate\""})), 1);
  EXPECT_GT(value_of(line_of(all, "neuron_agent_scans_total")), 0);
  EXPECT_GT(value_of(line_of(all, "neuron_agent_last_scan_seconds")), 0);
  EXPECT_NE(await("neuroncore_memory_usage_tensors", {"neuroncore=\"0\""}, 0), "") << "sampled since the first scrape";
}

// A counter that begins with its first event has no increase in Prometheus, and an alert on it misses that event.
TEST_F(MetricsTest, CountersAreThereBeforeTheirFirstEvent) {
  start();
  const std::string all = scrape();
  const auto is_zero = [&](const std::string& metric, const std::string& label, std::string_view value) {
    const std::string line = line_of(all, metric + "{", {label + "=\"" + std::string(value) + "\""});
    EXPECT_EQ(value_of(line), 0) << metric << ' ' << value << ": " << line;
  };
  for (const plugin::refusals::Kind kind : plugin::refusals::kAllKinds) {
    is_zero("neuron_agent_refusals_total", "reason", plugin::refusals::to_string(kind));
  }
  for (const char* resource : {kNeuron, kCore, kEfa}) is_zero("neuron_agent_allocations_total", "resource", resource);
  for (const char* method : {"Allocate", "GetPreferredAllocation", "PreStartContainer"}) {
    is_zero("neuron_agent_calls_failed_total", "method", method);
    is_zero("neuron_agent_call_seconds_count", "method", method);
  }
  EXPECT_GT(value_of(line_of(all, "neuron_agent_start_time_seconds")), 1.7e9);
  EXPECT_GE(value_of(line_of(all, "neuron_agent_usage_age_seconds")), 0);
}

TEST_F(MetricsTest, ABrokenDeviceKeepsTheNameOfItsPod) {
  start();
  const auto whole = node_.run("whole", {{kNeuron, 16}});
  ASSERT_TRUE(whole) << whole.error().message;
  node_.host.set("neuron3", "sram_ecc_uncorrected=1");
  EXPECT_NE(await("neuron_device_healthy", {"neuron_device_index=\"3\"", "pod=\"whole\""}, 0), "") << scrape();
}

// The scan that runs may have read the file before; no text is older than the scan after that.
TEST_F(MetricsTest, AFaultIsSeenWithTheNextWholeScan) {
  start();
  const std::string healthy = "neuron_device_healthy{neuron_device_index=\"5\"";
  const auto scans_of = [](const std::string& text) { return value_of(line_of(text, "neuron_agent_scans_total")); };
  ASSERT_NE(await(healthy, {}, 1), "") << scrape();
  for (int i = 0; i < 10; ++i) {
    const double before = scans_of(scrape());
    ASSERT_GE(before, 1);
    node_.host.set("neuron5", "sram_ecc_uncorrected=1");
    double unseen = before;
    const auto until = steady_clock::now() + kPatience;
    for (std::string text = scrape(); value_of(line_of(text, healthy)) != 0; text = scrape()) {
      ASSERT_LT(steady_clock::now(), until);
      unseen = scans_of(text);
    }
    EXPECT_LE(unseen, before + 2);
    node_.host.set("neuron5", "heal");
    ASSERT_NE(await(healthy, {}, 1), "");
  }
}

TEST_F(MetricsTest, OpenMetricsForWhoAsksForIt) {
  start();
  TcpClient client(port_);
  client.send("GET /metrics HTTP/1.1\r\nHost: h\r\nAccept: application/openmetrics-text;version=1.0.0\r\n\r\n");
  const std::string all = client.receive();
  EXPECT_THAT(all, HasSubstr("Content-Type: application/openmetrics-text"));
  EXPECT_TRUE(all.ends_with("# EOF\n"));
}

TEST_F(MetricsTest, OverTlsWithTheCertificateOfTheMoment) {
  const std::string certificate = node_.kubelet_dir + "/tls.crt";
  const std::string key = node_.kubelet_dir + "/tls.key";
  write_certificate("first", certificate, key);
  node_.extra_arguments.insert(node_.extra_arguments.end(),
                               {"--metrics-tls-cert", certificate, "--metrics-tls-key", key});
  start();
  EXPECT_EQ(https_get(port_, "/readyz").status, 200);
  EXPECT_THAT(https_get(port_, "/metrics").body, HasSubstr("neuron_hardware_info"));
  EXPECT_EQ(TlsClient(port_).server(), "first");
  write_certificate("second", certificate, key);
  const auto until = steady_clock::now() + kPatience;
  while (TlsClient(port_).server() != "second") ASSERT_LT(steady_clock::now(), until) << node_.agent->log();
  EXPECT_TRUE(node_.wait_log("metrics certificate reloaded"));
}

TEST_F(MetricsTest, ManyScrapesLeaveTheAgentSmall) {
  if (kSanitized) GTEST_SKIP() << "which needs memory of its own";
  start();
  ASSERT_TRUE(node_.run("train", {{kCore, 2}}));
  std::size_t bytes = 0;
  const std::size_t before = kib_of(node_.agent->pid(), "RssAnon");
  for (int i = 0; i < 50; ++i) {
    bytes = scrape().size();
    static_cast<void>(node_.agent->wait(kScanInterval));  // so that each is made anew
  }
  const std::size_t busy = kib_of(node_.agent->pid(), "VmRSS");
  const std::size_t busy_anonymous = kib_of(node_.agent->pid(), "RssAnon");
  const auto until = steady_clock::now() + kPatience;
  std::size_t resident = busy;
  std::size_t anonymous = busy_anonymous;
  do {  // until what making texts took has been given back
    static_cast<void>(node_.agent->wait(milliseconds(100)));
    resident = kib_of(node_.agent->pid(), "VmRSS");
    anonymous = kib_of(node_.agent->pid(), "RssAnon");
  } while (anonymous + kGivenBackKib > busy_anonymous && steady_clock::now() < until);
  std::printf(
      "a scrape of %zu bytes; anonymous %zu KiB before; after 50 resident %zu KiB, anonymous %zu KiB, and then %zu "
      "KiB, "
      "%zu KiB\n",
      bytes, before, busy, busy_anonymous, resident, anonymous);
  EXPECT_LE(resident, kMostResidentKib);
  EXPECT_LE(anonymous, kMostAnonymousKib);
}

TEST(Metrics, ATlsFileWithoutTheOtherIsAUsageError) {
  Node node("trn1.2xlarge");
  node.host.write();
  node.extra_arguments = {"--metrics-address", "127.0.0.1:0", "--metrics-tls-cert", "/tls.crt"};
  node.start_agent();
  EXPECT_EQ(node.agent->wait(kPatience), 2);
  EXPECT_TRUE(node.wait_log("--metrics-tls-cert needs --metrics-tls-key")) << node.agent->log();
}

}  // namespace
}  // namespace neuron::fakes
