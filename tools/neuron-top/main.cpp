#include <malloc.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <clocale>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/host/root_source.h"
#include "tools/neuron-top/collector.h"
#include "tools/neuron-top/options.h"
#include "tools/screen/live.h"
#include "tools/screen/screen.h"

namespace neuron::top {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

int complain(const std::string& what) {
  std::fprintf(stderr, "neuron-top: %s\n", what.c_str());
  return EXIT_FAILURE;
}

Result<std::unique_ptr<Sampler>> start_sampler(const Options& options, const std::string& directory) {
  CollectorOptions settings{directory, options.with_pods, options.kubelet_dir};
  if (settings.kubelet_socket.empty()) settings.kubelet_socket = directory + "/var/lib/kubelet";
  settings.kubelet_socket += "/pod-resources/kubelet.sock";
  settings.claim_driver = options.dra_driver_name;
  TRY_ASSIGN(auto opened, Collector::open(std::move(settings)));
  const std::shared_ptr<Collector> collector = std::move(opened);
  return Sampler::open([collector](const model::UsageRequest& request) { return collector->collect(request); });
}

constexpr milliseconds kPatience{10000};

enum class Woken { ready, late, signal };

// Until `fd` is readable (-1: no file), a signal that ends came, or it is `until`.
Woken wait(int fd, int signals, steady_clock::time_point until) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now());
    std::array<pollfd, 2> fds = {{{signals, POLLIN, 0}, {fd, POLLIN, 0}}};
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(std::max(left, milliseconds(0)).count()));
    if (ready < 0 && errno != EINTR) return Woken::late;
    if (fds[0].revents != 0 && screen::take_signal(signals)) return Woken::signal;
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

// False when the pipe is closed, or a signal that ends came while there was no room. POLLOUT of a pipe promises no more
// room than PIPE_BUF, so no more is written at a time.
Result<bool> write_all(std::string_view text, int signals) {
  while (!text.empty()) {
    std::array<pollfd, 2> fds = {{{signals, POLLIN, 0}, {STDOUT_FILENO, POLLOUT, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return fail(error_from_errno(errno, "poll"));
    }
    if (fds[1].revents == 0) {
      if (screen::take_signal(signals)) return false;
      continue;
    }
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
    const screen::ViewModel model = make_view_model(moment);
    if (options_.json) return write_all(report_line(model, wall_clock_ms()), signals_);
    history_.add(model);
    const screen::Scene scene{model, history_, screen::ViewState{}, style_.charset};
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
  screen::History history_;
};

// The next sample; nullopt when a signal that ends came instead.
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

// Prints pictures or JSON objects on stdout until there are as many as asked for, the pipe is closed, or a signal that
// ends comes through `signals` (of catch_signals). Errors: deadline_exceeded when the machine does not answer in
// ten seconds; internal when stdout cannot be written.
Result<void> print_samples(const Options& options, render::Style style, int columns, Sampler& sampler, int signals) {
  Printer printer(options, style, columns, signals);
  const int count = options.count > 0 ? options.count : options.json && !options.once ? -1 : 1;
  auto due = steady_clock::now();
  for (int sample = options.no_wait ? 1 : 0; count < 0 || sample <= count; ++sample) {
    TRY_ASSIGN(const auto moment, next(options, sampler, signals));
    if (!moment) return {};
    if (sample > 0) {  // sample 0 is the base of the first picture's rates
      TRY_ASSIGN(const bool go_on, printer.print(*moment));
      if (!go_on) return {};
    }
    if (sample == count) break;
    if (sample == 0) due = steady_clock::now();  // a slow first look must not leave too short a time for rates
    due = std::max(due + options.interval, steady_clock::now());
    if (wait(-1, signals, due) == Woken::signal) return {};
  }
  return {};
}

Result<void> show(const Options& options, render::Style style, Sampler& sampler, int signals) {
  TRY_ASSIGN(auto terminal, screen::LiveTerminal::open(style.colour));
  LiveOptions live;
  live.interval = options.interval;
  live.charset = style.charset;
  return run_live(live, terminal.get(), sampler, signals);
}

Result<void> run(const Options& options) {
  TRY_ASSIGN(const Fd signals, screen::catch_signals());
  TRY_ASSIGN(const auto source, host::RootSource::open(options.root));
  TRY_ASSIGN(const auto sampler, start_sampler(options, source.directory()));
  const render::Style style = screen::style_of_stdout();
  const bool has_screen = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  if (options.once || options.json || options.no_wait || !has_screen) {
    return print_samples(options, style, screen::print_columns(), *sampler, signals.get());
  }
  return show(options, style, *sampler, signals.get());
}

int main_of(int argc, const char* const* argv) {
  const auto request = parse_options(argc, argv);
  if (!request) return complain(request.error().message + "; see neuron-top --help");
  if (const auto* text = std::get_if<std::string>(&*request)) {
    return std::fputs(text->c_str(), stdout) < 0 || std::fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
  }
  const auto shown = run(std::get<Options>(*request));
  return shown ? EXIT_SUCCESS : complain(shown.error().message);
}

}  // namespace
}  // namespace neuron::top

int main(int argc, char** argv) {
  neuron::open_standard_streams();
  mallopt(M_ARENA_MAX, 1);  // two threads that never allocate much at a time
  std::setlocale(LC_CTYPE, "");
  return neuron::top::main_of(argc, argv);
}
