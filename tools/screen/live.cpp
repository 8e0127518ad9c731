#include "tools/screen/live.h"

#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>

#include "agent/base/parse.h"

namespace {

// For a crash to give the terminal back. A handler reaches only globals, and calls only write and tcsetattr, which are
// async-signal-safe.
struct Restore {
  std::array<char, 256> text{};
  std::size_t length = 0;
  termios mode{};
  volatile sig_atomic_t armed = 0;
};
Restore restore;

// Only for signals that mean a bug in this program; SA_RESETHAND lets the second one, raised here, end the process.
void on_crash(int signal) {
  if (restore.armed != 0) {
    restore.armed = 0;
    (void)!::write(STDOUT_FILENO, restore.text.data(), restore.length);
    (void)::tcsetattr(STDOUT_FILENO, TCSANOW, &restore.mode);
  }
  ::raise(signal);
}

void arm_restore(const termios& mode) {
  const std::string text = neuron::screen::Terminal::restore_text();
  restore.length = std::min(text.size(), restore.text.size());
  std::copy_n(text.begin(), restore.length, restore.text.begin());
  restore.mode = mode;
  restore.armed = 1;
  struct sigaction action {};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) ::sigaction(signal, &action, nullptr);
}

}  // namespace

namespace neuron::screen {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

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

// False for a signal that ends the program.
bool go_on_after(int signal, LiveView& view, Terminal& terminal) {
  if (signal == SIGTSTP) {
    terminal.suspend();
    ::raise(SIGSTOP);
    terminal.resume();
  } else if (signal == SIGWINCH || signal == SIGCONT) {
    terminal.resize();
  } else {
    return false;
  }
  view.draw();
  return true;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

Result<void> run_live(LiveView& view, Terminal& terminal, milliseconds interval, int signals) {
  TRY_ASSIGN(const Fd timer, start_timer(interval));
  view.draw();
  while (!view.done()) {
    std::array<pollfd, 4> fds = {
        {{STDIN_FILENO, POLLIN, 0}, {signals, POLLIN, 0}, {timer.get(), POLLIN, 0}, {view.sample_fd(), POLLIN, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return fail(error_from_errno(errno, "poll"));
    }
    if (fds[1].revents != 0) {
      const auto signal = read_signal(signals);
      if (signal && !go_on_after(*signal, view, terminal)) return {};
    }
    if ((fds[0].revents & POLLIN) != 0) {
      view.on_keys(terminal.read_keys());
    } else if (fds[0].revents != 0) {
      return {};  // the terminal was closed
    }
    if (fds[3].revents != 0) view.on_sample();
    if (fds[2].revents != 0) {
      drain(timer.get());
      view.on_timer();
    }
  }
  return {};
}

Result<Fd> block_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  constexpr std::array<int, 10> kSignals = {SIGINT,  SIGTERM, SIGHUP,   SIGQUIT, SIGALRM,
                                            SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};
  for (const int signal : kSignals) ::sigaddset(&set, signal);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) != 0) return fail(error_from_errno(errno, "sigprocmask"));
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return fail(error_from_errno(errno, "signalfd"));
  ::signal(SIGPIPE, SIG_IGN);
  return fd;
}

render::Style style_of_stdout() {
  render::TerminalFacts facts;
  facts.is_terminal = ::isatty(STDOUT_FILENO) != 0;
  facts.no_color = !variable("NO_COLOR").empty();
  facts.term = variable("TERM");
  facts.colorterm = variable("COLORTERM");
  facts.codeset = ::nl_langinfo(CODESET);
  return render::choose_style(facts);
}

int print_columns() {
  constexpr int kNarrowest = 60;
  constexpr int kWidest = 1000;
  constexpr int kElse = 120;
  if (const auto columns = parse_int(variable("COLUMNS"), kNarrowest, kWidest)) return *columns;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kElse;
  return std::clamp<int>(size.ws_col, kNarrowest, kWidest);
}

Result<LiveTerminal> LiveTerminal::open(render::ColourDepth colour) {
  termios mode{};
  (void)::tcgetattr(STDOUT_FILENO, &mode);
  TRY_ASSIGN(auto terminal, Terminal::open(colour));
  arm_restore(mode);
  return LiveTerminal(std::move(terminal));
}

LiveTerminal::~LiveTerminal() {
  if (terminal_ != nullptr) restore.armed = 0;
}

}  // namespace neuron::screen
