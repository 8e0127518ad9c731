#include "agent/base/replace_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace neuron {

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
