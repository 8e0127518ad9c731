#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace neuron::kube {

// Cuts what arrives in pieces of any size into lines, and keeps no more than one of them. Pure; not synchronised.
class LineSplitter {
 public:
  using OnLine = std::function<bool(std::string_view line)>;
  enum class State {
    going,     // more may come
    ended,     // on_line has had enough
    too_long,  // a line of more than max_line bytes, its end not counted
  };

  explicit LineSplitter(std::size_t max_line) : max_line_(max_line) {}

  // Tells `on_line` each line that has ended, without its "\n" or "\r\n"; empty ones are not told. What follows the
  // last end waits for the next piece. Once it was not `going` it takes nothing more.
  State take(std::string_view piece, const OnLine& on_line) {
    while (state_ == State::going && !piece.empty()) {
      const std::size_t end = piece.find('\n');
      const std::string_view part = piece.substr(0, end);
      if (part.size() > max_line_ - begun_.size()) {
        state_ = State::too_long;
        break;
      }
      if (end == std::string_view::npos) {
        begun_.append(part);
        break;
      }
      piece.remove_prefix(end + 1);
      finish(part, on_line);
    }
    if (state_ != State::going) begun_ = {};
    return state_;
  }

 private:
  void finish(std::string_view part, const OnLine& on_line) {
    std::string whole;
    if (!begun_.empty()) {
      whole = std::move(begun_);
      begun_ = {};  // a long line does not stay allocated
      part = whole.append(part);
    }
    if (part.ends_with('\r')) part.remove_suffix(1);
    if (!part.empty() && !on_line(part)) state_ = State::ended;
  }

  std::size_t max_line_;
  std::string begun_;  // of a line whose end has not come; at most max_line_ bytes
  State state_ = State::going;
};

}  // namespace neuron::kube
