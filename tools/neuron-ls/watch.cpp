#include "tools/neuron-ls/watch.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <utility>
#include <vector>

namespace neuron::ls {
namespace {

constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kClearToLineEnd = "\x1b[K";
constexpr std::string_view kClearBelow = "\x1b[J";

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

using Reader = BackgroundReader<Shown>;

sigset_t watched_signals() {
  sigset_t signals;
  ::sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGWINCH}) ::sigaddset(&signals, signal);
  return signals;
}

// Standard output for writes that never block. A terminal is opened again, so that O_NONBLOCK applies to this program
// alone.
Fd open_terminal() {
  if (::isatty(STDOUT_FILENO) == 0) return Fd();
  return Fd(::open("/proc/self/fd/1", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
}

std::string seconds_text(std::chrono::milliseconds time) {
  std::string text = std::to_string(time.count() / 1000);
  const auto rest = time.count() % 1000;
  if (rest != 0) text += '.' + std::to_string(1000 + rest).substr(1);
  while (rest != 0 && text.back() == '0') text.pop_back();
  return text + " s";
}

std::string time_of_day() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  std::array<char, 16> text{};
  ::localtime_r(&now, &parts);
  return {text.data(), std::strftime(text.data(), text.size(), "%H:%M:%S", &parts)};
}

std::size_t terminal_rows() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

// One watch: the last listing, and how it is shown.
class Watch {
 public:
  Watch(const WatchPlan& plan, std::unique_ptr<Reader> reader, Fd signals, Fd timer)
      : plan_(plan),
        reader_(std::move(reader)),
        signals_(std::move(signals)),
        timer_(std::move(timer)),
        terminal_(open_terminal()) {}

  int run();

 private:
  enum class Next { go_on, end, fail };

  [[nodiscard]] Next on_signal();
  [[nodiscard]] Next read_signal();
  [[nodiscard]] Next on_tick();
  [[nodiscard]] Next on_shown(Shown shown);
  [[nodiscard]] Next draw(const std::string& remark);
  [[nodiscard]] Next put(std::string_view text);
  [[nodiscard]] Next write(int fd, std::string_view text);
  [[nodiscard]] Next print(std::string_view text);
  void await_listing();
  void stop_for_a_while();
  void leave_screen();
  [[nodiscard]] int finish(int code);

  const WatchPlan& plan_;
  std::unique_ptr<Reader> reader_;
  Fd signals_;
  Fd timer_;
  Fd terminal_;  // invalid: standard output is no terminal, or cannot be opened again
  Shown last_;
  std::string seen_at_;
  bool seen_any_ = false;
  bool on_screen_ = false;  // the alternate screen is in use
  bool ending_ = false;
};

int Watch::run() {
  reader_->request();
  std::array<pollfd, 3> sources = {
      {{signals_.get(), POLLIN, 0}, {timer_.get(), POLLIN, 0}, {reader_->ready_fd(), POLLIN, 0}}};
  for (;;) {
    if (::poll(sources.data(), sources.size(), -1) < 0 && errno != EINTR) return finish(EXIT_FAILURE);
    Next next = Next::go_on;
    if ((sources[0].revents & POLLIN) != 0) next = on_signal();
    if (next == Next::go_on && (sources[1].revents & POLLIN) != 0) next = on_tick();
    if (next == Next::go_on && (sources[2].revents & POLLIN) != 0) {
      if (auto shown = reader_->take()) next = on_shown(*std::move(shown));
    }
    if (next == Next::end) return finish(EXIT_SUCCESS);
    if (next == Next::fail) return finish(EXIT_FAILURE);
  }
}

Watch::Next Watch::on_signal() {
  const Next next = read_signal();
  return next == Next::go_on && on_screen_ ? draw("") : next;
}

// SIGTSTP stops the program here. For a new window size the caller draws, or the next tick does.
Watch::Next Watch::read_signal() {
  signalfd_siginfo info{};
  if (::read(signals_.get(), &info, sizeof info) != sizeof info) return Next::go_on;
  if (info.ssi_signo == SIGTSTP) stop_for_a_while();
  return info.ssi_signo == SIGWINCH || info.ssi_signo == SIGTSTP ? Next::go_on : Next::end;
}

Watch::Next Watch::on_tick() {
  std::uint64_t ticks = 0;
  (void)!::read(timer_.get(), &ticks, sizeof ticks);
  if (!reader_->is_busy()) {
    reader_->request();
    return Next::go_on;
  }
  return on_screen_ ? draw("; the machine is slow to answer") : Next::go_on;
}

Watch::Next Watch::on_shown(Shown shown) {
  const bool first = !std::exchange(seen_any_, true);
  last_ = std::move(shown);
  seen_at_ = time_of_day();
  if (!plan_.on_terminal || first) {
    if (write(STDERR_FILENO, last_.complaint) == Next::end) return Next::end;
    if (last_.text.empty()) return first ? Next::fail : Next::go_on;
  }
  if (plan_.on_terminal) {
    if (!std::exchange(on_screen_, true) && print(kEnterScreen) == Next::end) return Next::end;
    return draw("");
  }
  if (!last_.text.ends_with('\n')) last_.text += '\n';
  return put(first || !plan_.blank_between ? last_.text : '\n' + last_.text);
}

// Waits for room and for signals together: a plain write to a pipe or terminal without a reader would block for ever. A
// pipe that poll() calls writable takes PIPE_BUF bytes at once. On failure errno says why.
Watch::Next Watch::write(int fd, std::string_view text) {
  constexpr int kLastPatienceMs = 200;  // for the sequence that gives the screen back
  while (!text.empty()) {
    std::array<pollfd, 2> sources = {{{fd, POLLOUT, 0}, {ending_ ? -1 : signals_.get(), POLLIN, 0}}};
    const int ready = ::poll(sources.data(), sources.size(), ending_ ? kLastPatienceMs : -1);
    if (ready == 0) errno = ETIMEDOUT;
    if (ready == 0 || (ready < 0 && errno != EINTR)) return Next::fail;
    if (ready < 0) continue;
    if (sources[1].revents != 0 && read_signal() == Next::end) return Next::end;
    if (sources[0].revents == 0) continue;
    const ssize_t count = ::write(fd, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (count < 0 && errno != EINTR && errno != EAGAIN) return Next::fail;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
  return Next::go_on;
}

Watch::Next Watch::print(std::string_view text) {
  return write(terminal_.valid() ? terminal_.get() : STDOUT_FILENO, text);
}

// A closed pipe ends the watch; any other error of stdout is a failure.
Watch::Next Watch::put(std::string_view text) {
  const Next written = print(text);
  if (written != Next::fail) return written;
  if (errno == EPIPE) return Next::end;
  std::perror("neuron-ls: writing to stdout");
  return Next::fail;
}

Watch::Next Watch::draw(const std::string& remark) {
  const std::string status =
      "neuron-ls every " + seconds_text(plan_.interval) + ", " + seen_at_ + remark + "; Ctrl-C to end";
  return put(frame(status, last_.complaint + last_.text, terminal_rows()));
}

// Ctrl-Z: gives the terminal back, stops as the shell expects, and takes the terminal again when continued.
void Watch::stop_for_a_while() {
  const bool was_ending = std::exchange(ending_, true);  // without waiting long
  if (on_screen_) (void)print(kLeaveScreen);
  (void)std::raise(SIGSTOP);
  if (on_screen_) (void)print(kEnterScreen);
  ending_ = was_ending;
}

void Watch::leave_screen() {
  if (!std::exchange(on_screen_, false)) return;
  (void)print(kLeaveScreen);
  (void)print(last_.text);
  if (!last_.text.ends_with('\n')) (void)print("\n");
}

// Waits for a reading under way as long as one takes that does not hang: temporary files, such as an unpacked archive,
// are removed only when the program returns from main.
void Watch::await_listing() {
  constexpr int kPatienceMs = 500;
  pollfd ready{reader_->ready_fd(), POLLIN, 0};
  while (reader_->is_busy() && ::poll(&ready, 1, kPatienceMs) < 0 && errno == EINTR) {
  }
}

int Watch::finish(int code) {
  ending_ = true;
  leave_screen();
  await_listing();
  // A thread that hangs in the driver cannot be joined.
  if (reader_->is_busy()) std::_Exit(code);
  return code;
}

Result<Fd> open_signals() {
  const sigset_t signals = watched_signals();
  Fd fd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) return fail(error_from_errno(errno, "signalfd"));
  return fd;
}

Result<Fd> open_timer(std::chrono::milliseconds interval) {
  Fd fd(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  const timespec period{interval.count() / 1000, interval.count() % 1000 * 1'000'000};
  const itimerspec times{period, period};
  if (!fd.valid() || ::timerfd_settime(fd.get(), 0, &times, nullptr) != 0) {
    return fail(error_from_errno(errno, "timerfd"));
  }
  return fd;
}

Result<int> watch_with(const WatchPlan& plan, std::function<Shown()> list) {
  TRY_ASSIGN(Fd signals, open_signals());
  TRY_ASSIGN(Fd timer, open_timer(plan.interval));
  TRY_ASSIGN(auto reader, Reader::open(std::move(list)));
  return Watch(plan, std::move(reader), std::move(signals), std::move(timer)).run();
}

}  // namespace

std::string frame(std::string_view status, std::string_view text, std::size_t rows) {
  std::vector<std::string_view> lines = lines_of(text);
  std::string more;
  if (rows > 0 && lines.size() + 1 > rows) {
    const std::size_t fit = rows > 2 ? rows - 2 : 0;  // less the status and the last line
    more = "... " + std::to_string(lines.size() - fit) + " more lines; enlarge the terminal";
    lines.resize(fit);
    if (rows > 1) lines.push_back(more);
  }
  std::string picture(kHome);
  picture.append(status).append(kClearToLineEnd);
  for (const std::string_view line : lines) picture.append("\r\n").append(line).append(kClearToLineEnd);
  return picture.append(kClearBelow);
}

void block_watch_signals() {
  const sigset_t signals = watched_signals();
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
}

int watch(const WatchPlan& plan, std::function<Shown()> list) {
  ::signal(SIGPIPE, SIG_IGN);
  const auto code = watch_with(plan, std::move(list));
  if (code) return *code;
  std::fprintf(stderr, "neuron-ls: %s\nneuron-ls: try it without --watch\n", code.error().message.c_str());
  return EXIT_FAILURE;
}

}  // namespace neuron::ls
