#include <langinfo.h>
#include <malloc.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <variant>

#include "agent/base/fd.h"
#include "agent/base/parse.h"
#include "agent/host/root_source.h"
#include "tools/neuron-top/collector.h"
#include "tools/neuron-top/live.h"
#include "tools/neuron-top/options.h"
#include "tools/neuron-top/print.h"

namespace {

// What a crash needs to give the terminal back. A handler can only reach what is global, and may do no more than call
// write and tcsetattr; both are async-signal-safe. This is the only global state of the program.
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
  const std::string text = neuron::top::Terminal::restore_text();
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

namespace neuron::top {
namespace {

int complain(const std::string& what) {
  std::fprintf(stderr, "neuron-top: %s\n", what.c_str());
  return EXIT_FAILURE;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
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

// COLUMNS, else the terminal's width, else 120.
int print_columns() {
  constexpr int kNarrowest = 60;
  constexpr int kWidest = 1000;
  constexpr int kElse = 120;
  if (const auto columns = parse_int(variable("COLUMNS"), kNarrowest, kWidest)) return *columns;
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return kElse;
  return std::clamp<int>(size.ws_col, kNarrowest, kWidest);
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

Result<std::unique_ptr<Sampler>> start_sampler(const Options& options, const std::string& directory) {
  CollectorOptions settings{directory, options.with_pods, options.kubelet_dir};
  if (settings.kubelet_socket.empty()) settings.kubelet_socket = directory + "/var/lib/kubelet";
  settings.kubelet_socket += "/pod-resources/kubelet.sock";
  settings.claim_driver = options.dra_driver_name;
  TRY_ASSIGN(auto opened, Collector::open(std::move(settings)));
  const std::shared_ptr<Collector> collector = std::move(opened);
  return Sampler::open([collector](const model::UsageRequest& request) { return collector->collect(request); });
}

Result<void> show(const Options& options, render::Style style, Sampler& sampler, int signals) {
  termios mode{};
  (void)::tcgetattr(STDOUT_FILENO, &mode);
  TRY_ASSIGN(const auto terminal, Terminal::open(style.colour));
  arm_restore(mode);
  LiveOptions live;
  live.interval = options.interval;
  live.charset = style.charset;
  auto result = run_live(live, *terminal, sampler, signals);
  restore.armed = 0;
  return result;
}

Result<void> run(const Options& options) {
  TRY_ASSIGN(const Fd signals, block_signals());
  TRY_ASSIGN(const auto source, host::RootSource::open(options.root));
  TRY_ASSIGN(const auto sampler, start_sampler(options, source.directory()));
  const render::Style style = style_of_stdout();
  const bool has_screen = ::isatty(STDIN_FILENO) != 0 && ::isatty(STDOUT_FILENO) != 0;
  if (options.once || options.json || options.no_wait || !has_screen) {
    return print_samples(options, style, print_columns(), *sampler, signals.get());
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
