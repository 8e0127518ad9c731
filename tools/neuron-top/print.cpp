#include "tools/neuron-top/print.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdint>

#include "tools/neuron-top/report.h"
#include "tools/neuron-top/screen.h"

namespace neuron::top {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kPatience{10000};

enum class Woken { ready, late, signal };

// Until `fd` is readable (-1: nothing but the time counts), a signal came, or it is `until`.
Woken wait(int fd, int signals, steady_clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
    std::array<pollfd, 2> fds = {{{signals, POLLIN, 0}, {fd, POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (ready < 0 && errno != EINTR) return Woken::late;
    if (fds[0].revents != 0) return Woken::signal;
    if (fds[1].revents != 0) return Woken::ready;
    if (ready == 0) return Woken::late;
  }
}

model::UsageRequest request_of(const Options& options) {
  model::UsageRequest request;
  request.power = request.efa = true;
  request.flops = options.json;
  return request;
}

// False when nobody reads any more, or a signal came while nobody did. POLLOUT of a pipe promises no more room than
// PIPE_BUF, so no more is written at a time.
Result<bool> write_all(std::string_view text, int signals) {
  while (!text.empty()) {
    std::array<pollfd, 2> fds = {{{signals, POLLIN, 0}, {STDOUT_FILENO, POLLOUT, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return fail(error_from_errno(errno, "poll"));
    }
    if (fds[1].revents == 0) return false;
    const ssize_t written = ::write(STDOUT_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) return false;
    if (written < 0) return fail(error_from_errno(errno, "writing to stdout"));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

class Printer {
 public:
  Printer(const Options& options, render::Style style, int columns, int signals)
      : options_(options), style_(style), columns_(columns), signals_(signals) {}

  Result<bool> print(const Moment& moment) {
    const ViewModel model = make_view_model(moment);
    if (options_.json) return write_all(report_line(model, wall_clock_ms()), signals_);
    history_.add(model);
    const Scene scene{model, history_, ViewState{}, style_.charset};
    const std::string text = draw_print(scene, columns_).to_text(style_.colour);
    return write_all(printed_++ == 0 ? text : '\n' + text, signals_);
  }

 private:
  static std::int64_t wall_clock_ms() {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<milliseconds>(now).count();
  }

  const Options& options_;
  render::Style style_;
  int columns_;
  int signals_;
  int printed_ = 0;
  History history_;
};

// The next sample; nullopt when a signal came instead.
Result<std::optional<Moment>> next(const Options& options, Sampler& sampler, int signals) {
  sampler.request(request_of(options));
  switch (wait(sampler.ready_fd(), signals, steady_clock::now() + kPatience)) {
    case Woken::signal:
      return std::nullopt;
    case Woken::late:
      return fail(ErrorCode::deadline_exceeded, "the machine did not answer in 10 s; check the Neuron driver");
    case Woken::ready:
      break;
  }
  return sampler.take();
}

}  // namespace

Result<void> print_samples(const Options& options, render::Style style, int columns, Sampler& sampler, int signals) {
  Printer printer(options, style, columns, signals);
  const int count = options.count > 0 ? options.count : options.json && !options.once ? -1 : 1;
  auto due = steady_clock::now();
  for (int sample = options.no_wait ? 1 : 0; count < 0 || sample <= count; ++sample) {
    TRY_ASSIGN(const auto moment, next(options, sampler, signals));
    if (!moment) return {};
    if (sample > 0) {  // sample 0 is what the rates of the first picture start from
      TRY_ASSIGN(const bool go_on, printer.print(*moment));
      if (!go_on) return {};
    }
    if (sample == count) break;
    due = std::max(due + options.interval, steady_clock::now());
    if (wait(-1, signals, due) == Woken::signal) return {};
  }
  return {};
}

}  // namespace neuron::top
