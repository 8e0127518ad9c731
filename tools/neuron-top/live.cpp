#include "tools/neuron-top/terminal.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <optional>

#include "tools/neuron-top/screen.h"

namespace neuron::top {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::steady_clock;

constexpr milliseconds kFirstRates{500};  // until the second sample, whatever the interval

timespec timespec_of(milliseconds time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {seconds.count(), nanoseconds(time - seconds).count()};
}

Result<Fd> start_timer(milliseconds interval) {
  Fd timer(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const itimerspec times{timespec_of(interval), timespec_of(std::min(interval, kFirstRates))};
  if (!timer.valid() || ::timerfd_settime(timer.get(), 0, &times, nullptr) != 0) {
    return fail(error_from_errno(errno, "timerfd"));
  }
  return timer;
}

// The state of the loop.
class Loop {
 public:
  Loop(const LiveOptions& options, Terminal& terminal, Sampler& sampler)
      : options_(options), terminal_(terminal), sampler_(sampler), last_sample_(steady_clock::now()) {}

  [[nodiscard]] bool done() const { return state_.quit; }

  void begin() {
    model_.version = kNothingYet;
    sampler_.request(request_for(state_));
    draw();
  }

  void on_timer() {
    if (!state_.paused) sampler_.request(request_for(state_));
    if (put_off_ || banner().message != shown_banner_) draw();
  }

  void on_sample() {
    const auto moment = sampler_.take();
    if (!moment) return;
    last_sample_ = steady_clock::now();
    if (state_.paused) return;
    model_ = make_view_model(*moment);
    history_.add(model_);
    draw();
  }

  void on_keys() {
    const model::UsageRequest before = request_for(state_);
    const bool was_paused = state_.paused;
    for (const Key key : terminal_.read_keys()) state_ = press(std::move(state_), key, key_context(model_, state_));
    const model::UsageRequest after = request_for(state_);
    const bool wants_more =
        (after.efa && !before.efa) || (after.power && !before.power) || (after.flops && !before.flops);
    if (!state_.paused && (wants_more || was_paused)) sampler_.request(after);
    if (was_paused && !state_.paused) last_sample_ = steady_clock::now();
    draw();
  }

  void on_signal(int signal) {
    if (signal == SIGTSTP) {
      terminal_.suspend();
      ::raise(SIGSTOP);
      terminal_.resume();
    } else if (signal == SIGWINCH || signal == SIGCONT) {
      terminal_.resize();
    } else {
      state_.quit = true;
      return;
    }
    draw();
  }

 private:
  static constexpr const char* kNothingYet = "is reading the machine";

  [[nodiscard]] Banner banner() const {
    if (state_.paused) return {"PAUSED", false};
    const auto age = steady_clock::now() - last_sample_;
    if (age < std::max<nanoseconds>(options_.stale_after, 3 * options_.interval)) return {};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
    return {"stale since " + age_text(seconds), true};
  }

  // Draws nothing on a terminal that takes no output, so that keys and signals are still handled.
  void draw() {
    put_off_ = !terminal_.can_show();
    if (put_off_) return;
    const Banner now = banner();
    shown_banner_ = now.message;
    const Scene scene{model_, history_, state_, options_.charset};
    terminal_.show(draw_screen(scene, now, terminal_.rows(), terminal_.columns()));
  }

  const LiveOptions& options_;
  Terminal& terminal_;
  Sampler& sampler_;
  ViewState state_;
  ViewModel model_;
  History history_;
  steady_clock::time_point last_sample_;
  std::string shown_banner_;
  bool put_off_ = false;  // a picture waits for the terminal
};

// The number of the signal, or none.
std::optional<int> read_signal(int signals) {
  signalfd_siginfo info{};
  if (::read(signals, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return std::nullopt;
  return static_cast<int>(info.ssi_signo);
}

void drain(int timer) {
  std::uint64_t expirations = 0;
  (void)!::read(timer, &expirations, sizeof expirations);
}

}  // namespace

Result<void> run_live(const LiveOptions& options, Terminal& terminal, Sampler& sampler, int signals) {
  TRY_ASSIGN(const Fd timer, start_timer(options.interval));
  Loop loop(options, terminal, sampler);
  loop.begin();
  while (!loop.done()) {
    std::array<pollfd, 4> fds = {
        {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}, {timer.get(), POLLIN, 0}, {sampler.ready_fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return fail(error_from_errno(errno, "poll"));
    }
    if (fds[1].revents != 0) {
      if (const auto signal = read_signal(signals)) loop.on_signal(*signal);
    }
    if ((fds[0].revents & POLLIN) != 0) {
      loop.on_keys();
    } else if (fds[0].revents != 0) {
      return {};  // the terminal was closed
    }
    if (fds[3].revents != 0) loop.on_sample();
    if (fds[2].revents != 0) {
      drain(timer.get());
      loop.on_timer();
    }
  }
  return {};
}

}  // namespace neuron::top
