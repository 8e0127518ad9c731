#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "agent/base/result.h"

// File descriptors, files as text, listening sockets, and a program's descriptors at its start.
namespace neuron {

// Owns one file descriptor; the only class in the tree that closes one. Movable, not copyable. Not synchronised.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd() { reset(); }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;

  [[nodiscard]] int get() const { return fd_; }  // -1 when empty
  [[nodiscard]] bool valid() const { return fd_ >= 0; }
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }  // the caller now owns it
  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// The rest of `fd`, to its end. Blocks. Errors: from errno, data_corrupt past `max_bytes`, naming `path`.
[[nodiscard]] Result<std::string> read_all(int fd, std::size_t max_bytes, std::string_view path);

// Writes all of `text`. Blocks. Errors: from errno, naming `path`.
[[nodiscard]] Result<void> write_all(int fd, std::string_view text, std::string_view path);

// The whole content of a file; links are not followed. Blocks on the file system, never on a FIFO in the file's place.
// Errors: from errno, data_corrupt past `max_bytes`, naming `path`.
[[nodiscard]] Result<std::string> read_text_file(const std::string& path, std::size_t max_bytes);

// Writes beside `path`, as "<path>.new", and renames, so that no reader sees a partial file. Nothing is synced: after a
// loss of power the file may be empty. Blocks on the file system; no other process may replace the same path meanwhile.
// Errors: from errno, naming the path.
[[nodiscard]] Result<void> write_by_rename(const std::string& path, std::string_view text);

// For texts that must be written on a full disk too. keep_spare() reserves blocks for `bytes` in "<path>.spare"; on a
// file system that cannot reserve it does nothing. write_into_spare() is write_by_rename() into these blocks; the
// previous file becomes the spare, so that the next text of no greater length fits as well. File systems that never
// write in place may have no room all the same. Errors: from errno, naming the path.
[[nodiscard]] Result<void> keep_spare(const std::string& path, std::size_t bytes);
[[nodiscard]] Result<void> write_into_spare(const std::string& path, std::string_view text);

// Gives `path` the content `text`, by write_by_rename(), and makes its directory if missing; removes the file when
// `text` is empty. A file with the same content is not touched: then the result is false. Errors: as write_by_rename().
[[nodiscard]] Result<bool> keep_file(const std::string& path, const std::string& text);

// The directory was removed on the host while a mount or a process keeps it, so that nothing can be created in it.
// Blocks on the file system.
[[nodiscard]] bool is_removed_directory(const std::string& path);

// Opens /dev/null for each of the descriptors 0, 1 and 2 that the program was started without, so that no file opened
// later becomes its standard output. Reading from or writing to such a substitute fails with EBADF, as without it. Also
// resets SIGCHLD to its default: where the parent ignored it, the exit status of a child would be lost. To be called
// first in main(), before any thread and any other file.
void open_standard_streams();

// The limit of open files (RLIMIT_NOFILE) of this process. Passive data.
struct DescriptorLimit {
  std::uint64_t before = 0;  // the previous soft limit
  std::uint64_t now = 0;     // the current one
};

// Programs without select() need not keep the soft limit of 1024 that container runtimes set.
inline constexpr std::uint64_t kMostDescriptors = 65536;

// Raises the soft limit to the hard one, to kMostDescriptors at most; never lowers it. Child processes inherit it.
DescriptorLimit raise_descriptor_limit();

// The address on which a server listens. Passive data.
struct ListenAddress {
  std::string host;        // an IPv4 or IPv6 address without brackets; "": every address, of either kind
  std::uint16_t port = 0;  // 0: any that is free
  friend bool operator==(const ListenAddress&, const ListenAddress&) = default;
};

// "127.0.0.1:8000", "[::1]:8000"; ":8000" for every address. Names are not resolved: the answer may change and the
// resolver may hang. Errors: invalid_argument, naming the text and the form.
[[nodiscard]] Result<ListenAddress> parse_listen_address(std::string_view text);

// The inverse of parse_listen_address.
[[nodiscard]] std::string to_string(const ListenAddress& address);

// A listening TCP socket; closed on exec, non-blocking. Every address means IPv4 and IPv6 through one socket, or IPv4
// alone where the kernel has no IPv6. Errors, naming the address: unavailable (the port is taken), permission_denied,
// not_found (no such address on this node), internal.
[[nodiscard]] Result<Fd> open_listen_socket(const ListenAddress& address);

// The port of `socket`, also where any was asked for; 0 when the kernel does not say.
[[nodiscard]] std::uint16_t port_of(const Fd& socket);

}  // namespace neuron
