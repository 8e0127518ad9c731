#include "tools/screen/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <utility>

// Without the macros, which have names such as clear and move.
#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <curses.h>

namespace neuron::screen {
namespace {

constexpr int kEscapeDelayMs = 25;  // an escape is a key of its own after this
constexpr int kMostKeys = 256;      // per read, so that pasted text cannot keep the screen from being drawn

// Role r is colour pair r + 1; pair 0 is the terminal's own.
short pair_of(render::Role role) {
  return static_cast<short>(static_cast<int>(role) + 1);
}

attr_t attributes_of(const render::Paint& paint) {
  attr_t attributes = A_NORMAL;
  if (paint.bold) attributes |= A_BOLD;
  if (paint.reverse) attributes |= A_REVERSE;
  return attributes;
}

KeyCode key_code_of(int code) {
  struct Code {
    int code;
    KeyCode key;
  };
  static constexpr Code kCodes[] = {
      {KEY_UP, KeyCode::up},       {KEY_DOWN, KeyCode::down},     {KEY_LEFT, KeyCode::left},
      {KEY_RIGHT, KeyCode::right}, {KEY_PPAGE, KeyCode::page_up}, {KEY_NPAGE, KeyCode::page_down},
      {KEY_HOME, KeyCode::home},   {KEY_END, KeyCode::end},       {KEY_ENTER, KeyCode::enter},
      {'\n', KeyCode::enter},      {'\r', KeyCode::enter},        {KEY_BACKSPACE, KeyCode::backspace},
      {127, KeyCode::backspace},   {'\b', KeyCode::backspace},    {'\t', KeyCode::tab},
      {27, KeyCode::escape}};
  for (const Code& one : kCodes) {
    if (one.code == code) return one.key;
  }
  return KeyCode::none;
}

// Arrows of terminals that do not follow the keypad mode; curses knows only the others.
void define_plain_arrows() {
  constexpr std::array<std::pair<const char*, int>, 6> kArrows = {{{"\x1b[A", KEY_UP},
                                                                   {"\x1b[B", KEY_DOWN},
                                                                   {"\x1b[C", KEY_RIGHT},
                                                                   {"\x1b[D", KEY_LEFT},
                                                                   {"\x1b[H", KEY_HOME},
                                                                   {"\x1b[F", KEY_END}}};
  for (const auto& [text, key] : kArrows) {
    if (::key_defined(text) == 0) ::define_key(text, key);
  }
}

std::string capability(const char* name) {
  char* text = ::tigetstr(const_cast<char*>(name));  // NOLINT: the declaration lacks const in older curses
  const bool missing = text == nullptr || text == reinterpret_cast<char*>(-1);
  return missing ? "" : text;
}

}  // namespace

void let_output_flow() {
  termios mode{};
  if (::tcgetattr(STDOUT_FILENO, &mode) == 0 && (mode.c_iflag & IXON) != 0) {
    mode.c_iflag &= ~static_cast<tcflag_t>(IXON);
    ::tcsetattr(STDOUT_FILENO, TCSANOW, &mode);
  }
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  if (::poll(&output, 1, 0) == 0) ::tcflush(STDOUT_FILENO, TCOFLUSH);
}

Result<std::unique_ptr<Terminal>> Terminal::open(render::ColourDepth colour) {
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0) {
    return fail(ErrorCode::unavailable, "stdin and stdout must be a terminal; see --once and --json");
  }
  ::set_escdelay(kEscapeDelayMs);
  if (::newterm(nullptr, stdout, stdin) == nullptr) {
    return fail(ErrorCode::unavailable, "the terminal type in TERM is not known; see --once and --json");
  }
  if (capability("cup").empty()) {  // "dumb": curses would start and draw nothing
    ::endwin();
    return fail(ErrorCode::unavailable, "the terminal type in TERM has no movable cursor; see --once and --json");
  }
  return std::unique_ptr<Terminal>(new Terminal(colour));
}

Terminal::Terminal(render::ColourDepth colour) : colour_(colour) {
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  define_plain_arrows();
  ::nodelay(stdscr, TRUE);
  ::leaveok(stdscr, TRUE);
  ::curs_set(0);
  prepare_colours();
  resize();  // curses took COLUMNS and LINES from the environment
}

Terminal::~Terminal() {
  let_output_flow();
  ::endwin();
}

void Terminal::prepare_colours() {
  if (colour_ == render::ColourDepth::none || !::has_colors()) {
    colour_ = render::ColourDepth::none;
    return;
  }
  ::start_color();
  ::use_default_colors();
  if (COLORS < 256) colour_ = render::ColourDepth::ansi16;
  for (int i = 0; i < render::kRoles; ++i) {
    const auto role = static_cast<render::Role>(i);
    const render::Paint paint = render::paint_of(colour_, role);
    ::init_pair(pair_of(role), static_cast<short>(paint.foreground.value_or(-1)),
                static_cast<short>(paint.background.value_or(-1)));
  }
}

int Terminal::rows() const {
  return LINES;
}

int Terminal::columns() const {
  return COLS;
}

void Terminal::resize() {
  ::reset_prog_mode();  // a shell that stopped this program has changed the line mode
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0) {
    ::resizeterm(size.ws_row, size.ws_col);
  }
  shown_.reset();
}

void Terminal::show_row(const render::Canvas& canvas, int row, bool everything) {
  for (int column = 0; column < canvas.columns(); ++column) {
    const render::Cell& cell = canvas.at(row, column);
    if (!everything && cell == shown_->at(row, column)) continue;
    const short pair = colour_ == render::ColourDepth::none ? short{0} : pair_of(cell.role);
    const std::array<wchar_t, 2> text = {static_cast<wchar_t>(cell.character), L'\0'};
    cchar_t character{};
    ::setcchar(&character, text.data(), attributes_of(render::paint_of(colour_, cell.role)), pair, nullptr);
    ::mvadd_wch(row, column, &character);
  }
}

bool Terminal::can_show() const {
  pollfd output{STDOUT_FILENO, POLLOUT, 0};
  return ::poll(&output, 1, 0) > 0;
}

void Terminal::show(const render::Canvas& canvas) {
  const bool everything = shown_ == nullptr || shown_->rows() != canvas.rows() || shown_->columns() != canvas.columns();
  if (everything) ::clear();
  for (int row = 0; row < canvas.rows(); ++row) show_row(canvas, row, everything);
  ::refresh();
  shown_ = std::make_unique<render::Canvas>(canvas);
}

std::vector<Key> Terminal::read_keys() {
  std::vector<Key> keys;
  for (int i = 0; i < kMostKeys; ++i) {
    const int code = ::getch();
    if (code == ERR) break;
    if (code >= ' ' && code < 127) {
      keys.push_back({KeyCode::character, static_cast<char>(code)});
    } else if (const KeyCode key = key_code_of(code); key != KeyCode::none) {
      keys.push_back({key, 0});
    }
  }
  return keys;
}

void Terminal::suspend() {
  let_output_flow();
  ::endwin();
}

void Terminal::resume() {
  resize();
}

std::string Terminal::restore_text() {
  return capability("rmkx") + capability("cnorm") + capability("sgr0") + capability("rmcup");
}

}  // namespace neuron::screen
