#include "tools/screen/live.h"

#include <fcntl.h>
#include <langinfo.h>
#include <poll.h>
#include <sys/ioctl.h>
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
#include <utility>

#include "agent/base/parse.h"

namespace {

// A handler reaches only globals, and calls only what is async-signal-safe (signal-safety(7)).

// For a crash to give the terminal back.
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

int signal_pipe = -1;  // its end to write to; -1 before catch_signals()

bool stops_or_resizes(int signal) {
  return signal == SIGTSTP || signal == SIGWINCH || signal == SIGCONT;
}

// A write of curses to a terminal that takes no more may be in progress: a signal that ends the program ends that too.
void on_signal(int signal) {
  const int before = errno;
  if (restore.armed != 0 && !stops_or_resizes(signal)) neuron::screen::let_output_flow();
  const auto number = static_cast<unsigned char>(signal);
  (void)!::write(signal_pipe, &number, 1);
  errno = before;
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
  unsigned char number = 0;
  if (::read(signals, &number, 1) != 1) return std::nullopt;
  return number;
}

void drain(int timer) {
  std::uint64_t expirations = 0;
  (void)!::read(timer, &expirations, sizeof expirations);
}

// False for a signal that ends the program.
bool go_on_after(int signal, LiveView& view, Terminal& terminal) {
  if (!stops_or_resizes(signal)) return false;
  if (signal == SIGTSTP) {
    terminal.suspend();
    ::raise(SIGSTOP);
    terminal.resume();
  } else {
    terminal.resize();
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

Result<Fd> catch_signals() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) return fail(error_from_errno(errno, "pipe"));
  signal_pipe = ends[1];
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigfillset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT}) {
    ::sigaction(signal, &action, nullptr);
  }
  ::signal(SIGPIPE, SIG_IGN);
  return Fd(ends[0]);
}

bool take_signal(int signals) {
  const auto signal = read_signal(signals);
  if (signal == SIGTSTP) ::raise(SIGSTOP);
  return signal && !stops_or_resizes(*signal);
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
