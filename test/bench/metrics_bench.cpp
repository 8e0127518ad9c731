// What one scrape costs: making the text of a trn2.48xlarge on which every core and interface is busy and held, in both
// formats, beside writing the same bytes from memory to a local socket that somebody reads.
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "agent/metrics/exposition.h"
#include "test/unit/metrics/loaded_node.h"

namespace neuron::test {
namespace {

using Clock = std::chrono::steady_clock;
using Millis = std::chrono::duration<double, std::milli>;

constexpr int kRounds = 101;

template <typename Work>
double time_of(Work&& work) {
  const auto start = Clock::now();
  work();
  return Millis(Clock::now() - start).count();
}

double at(std::vector<double>& times, double share) {
  std::sort(times.begin(), times.end());
  return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
}

// A socket pair whose other end is read, and thrown away, by a thread.
class Drain {
 public:
  Drain() {
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends_.data()) != 0) ::abort();
    reader_ = std::thread([this] {
      std::vector<char> buffer(std::size_t{1} << 18U);
      while (::read(ends_[1], buffer.data(), buffer.size()) > 0) continue;
    });
  }
  ~Drain() {
    static_cast<void>(::shutdown(ends_[0], SHUT_RDWR));
    reader_.join();
    ::close(ends_[0]);
    ::close(ends_[1]);
  }
  Drain(const Drain&) = delete;
  Drain& operator=(const Drain&) = delete;

  void write(const std::string& text) const {
    for (std::size_t done = 0; done < text.size();) {
      const ssize_t now = ::write(ends_[0], text.data() + done, text.size() - done);
      if (now <= 0) ::abort();
      done += static_cast<std::size_t>(now);
    }
  }

 private:
  std::array<int, 2> ends_{};
  std::thread reader_;
};

void measure(const char* name, int lnc, metrics::TextFormat format) {
  const metrics::MetricsInput input = loaded_node("trn2.48xlarge", lnc);
  const std::string text = render_metrics(input, format);
  const Drain drain;
  std::vector<double> made;
  std::vector<double> written;
  for (int i = 0; i < kRounds; ++i) {
    std::string again;
    made.push_back(time_of([&] { again = render_metrics(input, format); }));
    written.push_back(time_of([&] { drain.write(text); }));
    if (again != text) ::abort();
  }
  const auto lines = std::count(text.begin(), text.end(), '\n');
  // At the lower quartile: other programs can only make it longer.
  const double make = at(made, 0.25);
  const double write = at(written, 0.25);
  fmt::print("{:<24}{:>8}{:>10}{:>12.2f}{:>10.2f}{:>12.2f}{:>14.2f}\n", name, lines, text.size(), make, at(made, 0.99),
             write, (make + write) / write);
}

}  // namespace
}  // namespace neuron::test

int main() {
  using neuron::metrics::TextFormat;
  fmt::print("{:<24}{:>8}{:>10}{:>12}{:>10}{:>12}{:>14}\n", "trn2.48xlarge", "lines", "bytes", "make ms", "p99 ms",
             "write ms", "both/write");
  neuron::test::measure("64 cores, Prometheus", 2, TextFormat::prometheus);
  neuron::test::measure("64 cores, OpenMetrics", 2, TextFormat::openmetrics);
  neuron::test::measure("128 cores, Prometheus", 1, TextFormat::prometheus);
  neuron::test::measure("128 cores, OpenMetrics", 1, TextFormat::openmetrics);
}
