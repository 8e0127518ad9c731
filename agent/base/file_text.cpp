#include "agent/base/file_text.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace neuron {

Result<std::string> read_all(int fd, std::size_t max_bytes, std::string_view path) {
  std::string text;
  for (;;) {
    const std::size_t used = text.size();
    text.resize(used + std::min<std::size_t>(65536, max_bytes + 1 - used));
    const ssize_t count = ::read(fd, text.data() + used, text.size() - used);
    text.resize(used + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(error_from_errno(errno, path));
    if (count == 0) return text;
    if (text.size() <= max_bytes) continue;
    return fail(ErrorCode::data_corrupt, std::string(path) + " has more than " + std::to_string(max_bytes) + " bytes");
  }
}

Result<void> write_all(int fd, std::string_view text, std::string_view path) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(error_from_errno(errno, path));
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

Result<void> replace_file(const std::string& path, const std::string& text) {
  if (text.empty()) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail(error_from_errno(errno, "removing " + path));
    return {};
  }
  std::ostringstream old;
  old << std::ifstream(path).rdbuf();
  if (old.str() == text) return {};
  const std::string fresh = path + ".new";
  std::ofstream out(fresh, std::ios::trunc);
  out << text;
  out.close();
  if (!out) return fail(ErrorCode::internal, "writing " + fresh + ": is the directory writable, is there space?");
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return fail(error_from_errno(errno, "renaming to " + path));
  return {};
}

}  // namespace neuron
