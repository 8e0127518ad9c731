#include "tools/neuron-ls/frame.h"

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

}  // namespace

std::string frame(std::string_view status, std::string_view text, std::size_t rows) {
  std::vector<std::string_view> lines = lines_of(text);
  std::string more;
  if (rows > 0 && lines.size() + 1 > rows) {
    const std::size_t fit = rows > 2 ? rows - 2 : 0;  // less the status and the line that says so
    more = "... " + std::to_string(lines.size() - fit) + " more lines; make the terminal higher";
    lines.resize(fit);
    if (rows > 1) lines.push_back(more);
  }
  std::string picture(kHome);
  picture.append(status).append(kClearToLineEnd);
  for (const std::string_view line : lines) picture.append("\r\n").append(line).append(kClearToLineEnd);
  return picture.append(kClearBelow);
}

}  // namespace neuron::ls
