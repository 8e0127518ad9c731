#pragma once

#include <compare>
#include <functional>
#include <string>
#include <vector>

namespace neuron::bench {

// One thing that any reader has to ask the kernel for the same knowledge, as plain system calls by absolute path.
struct PlainCall {
  enum class Kind {
    read,  // open, one read, close
    list,  // open, getdents64 to the end, close
    link,  // readlink
    look,  // access: whether it is there, also where it is not
  };
  Kind kind = Kind::look;
  std::string path;
  friend auto operator<=>(const PlainCall&, const PlainCall&) = default;
};

// What `run` asks through FsRoot with a root other than "/": each thing once, sorted. A program that uses it is linked
// with -Wl,--wrap=read,--wrap=getdents64,--wrap=readlinkat,--wrap=syscall. One thread, not nested.
[[nodiscard]] std::vector<PlainCall> calls_of(const std::function<void()>& run);

// Makes the calls, and nothing else. False when a file or directory that was there is gone.
[[nodiscard]] bool make_plainly(const std::vector<PlainCall>& calls);

// A text of one line per call, and back: a floor that is a process of its own reads them from a file.
[[nodiscard]] std::string to_line(const PlainCall& call);
[[nodiscard]] PlainCall from_line(const std::string& line);

}  // namespace neuron::bench
