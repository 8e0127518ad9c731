// Scrapes of a busy trn2.48xlarge through the real server on this machine: with the text made anew for each, with the
// text that clients of one second share, and the same bytes as they lie in memory. In one run, in turns. Prints
// medians, 99th percentiles and the ratios to the last.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "agent/metrics/endpoints.h"
#include "test/fakes/tcp_client.h"
#include "test/unit/metrics/loaded_node.h"

namespace neuron {
namespace {

struct Measured {
  const char* name;
  const char* path;
  std::vector<double> times{};  // milliseconds

  [[nodiscard]] double at(double part) {
    std::sort(times.begin(), times.end());
    return times[static_cast<std::size_t>(part * static_cast<double>(times.size() - 1))];
  }
};

// Milliseconds from connecting to the last byte.
double scrape(std::uint16_t port, const char* path, std::size_t bytes) {
  const auto begun = std::chrono::steady_clock::now();
  fakes::TcpClient client(port);
  client.send(std::string("GET ") + path + " HTTP/1.1\r\nHost: bench\r\n\r\n");
  std::size_t got = 0;
  for (std::string some = "x"; !some.empty(); got += some.size()) {
    some = client.receive_some(std::size_t{256} << 10U, std::chrono::seconds(5));
  }
  if (got < bytes) {
    fmt::print(stderr, "a scrape of {} gave {} of {} bytes\n", path, got, bytes);
    std::exit(1);
  }
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
}

int run(int rounds) {
  const SystemClock clock;
  const metrics::MetricsInput input = test::loaded_node("trn2.48xlarge", 2);
  std::uint64_t scan = 0;
  metrics::MetricsPage anew({[&input] { return input; }, [&scan] { return ++scan; }}, clock);
  metrics::MetricsPage shared({[&input] { return input; }, [] { return std::uint64_t{1}; }}, clock);
  const auto text = std::make_shared<const std::string>(render_metrics(input, metrics::TextFormat::prometheus));
  const auto server = metrics::HttpServer::start({"127.0.0.1", 0}, [&](const metrics::HttpRequest& request) {
    if (request.path == "/anew") return anew.answer(request.accept);
    if (request.path == "/shared") return shared.answer(request.accept);
    return metrics::HttpAnswer{200, "", "text/plain", text};
  });
  if (!server) return 1;
  std::array<Measured, 3> all{{{"text made anew", "/anew"}, {"text shared", "/shared"}, {"memory", "/memory"}}};
  for (int i = -rounds / 10; i < rounds; ++i) {
    for (Measured& one : all) {
      const double time = scrape((*server)->port(), one.path, text->size());
      if (i >= 0) one.times.push_back(time);  // the start warmed up
    }
  }
  const double memory = all.back().at(0.5);
  fmt::print("{} bytes, {} scrapes each\n", text->size(), rounds);
  for (Measured& one : all) {
    fmt::print("{:<16} median {:6.3f} ms, p99 {:6.3f} ms, {:.2f} x memory\n", one.name, one.at(0.5), one.at(0.99),
               one.at(0.5) / memory);
  }
  return 0;
}

}  // namespace
}  // namespace neuron

int main(int argc, char** argv) {
  return neuron::run(argc > 1 ? std::max(1, std::atoi(argv[1])) : 300);
}
