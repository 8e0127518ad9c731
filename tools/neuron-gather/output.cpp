#include "tools/neuron-gather/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "agent/base/fd.h"

namespace neuron::gather {
namespace {

constexpr std::size_t kBlock = 512;
constexpr std::uint64_t kTime = 1'577'836'800;  // 2020-01-01, so that tar does not complain about 1970

using Header = std::array<char, kBlock>;

void put(Header& header, std::size_t at, std::string_view text) {
  std::ranges::copy(text, header.begin() + static_cast<std::ptrdiff_t>(at));
}

// Octal digits with leading zeros, and the zero byte that ends the field.
void put_octal(Header& header, std::size_t at, std::size_t width, std::uint64_t value) {
  for (std::size_t i = width - 1; i-- > 0; value >>= 3U) header[at + i] = static_cast<char>('0' + (value & 7U));
}

void pad(std::string& tar) {
  tar.resize((tar.size() + kBlock - 1) / kBlock * kBlock, '\0');
}

// Where to cut `path` into prefix and name of a ustar header; npos when that is impossible.
std::size_t cut_of(std::string_view path) {
  constexpr std::size_t kName = 100;
  constexpr std::size_t kPrefix = 155;
  if (path.size() <= kName) return 0;
  for (std::size_t at = path.find('/'); at <= kPrefix; at = path.find('/', at + 1)) {
    if (path.size() - at - 1 <= kName) return at;
  }
  return std::string_view::npos;
}

void append_header(std::string& tar, std::string_view path, char type, std::uint64_t size, std::string_view target) {
  Header header{};
  const std::size_t cut = cut_of(path);
  if (cut == std::string_view::npos) {
    put(header, 0, path.substr(0, 100));  // the pax header before it has the whole
  } else {
    put(header, 0, cut == 0 ? path : path.substr(cut + 1));
    put(header, 345, path.substr(0, cut));
  }
  put_octal(header, 100, 8, type == '5' ? 0755 : type == '2' ? 0777 : 0644);
  put_octal(header, 108, 8, 0);
  put_octal(header, 116, 8, 0);
  put_octal(header, 124, 12, size);
  put_octal(header, 136, 12, kTime);
  put(header, 148, "        ");
  header[156] = type;
  put(header, 157, target.substr(0, 100));
  put(header, 257,
      std::string_view("ustar\0"
                       "00",
                       8));
  std::uint64_t sum = 0;
  for (const char c : header) sum += static_cast<unsigned char>(c);
  put_octal(header, 148, 7, sum);
  header[154] = '\0';
  tar.append(header.data(), header.size());
}

// "<length> <key>=<value>\n", where the length counts itself.
std::string pax_record(std::string_view key, std::string_view value) {
  const std::size_t rest = key.size() + value.size() + 3;
  std::size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) length = std::to_string(length).size() + rest;
  return std::to_string(length) + ' ' + std::string(key) + '=' + std::string(value) + '\n';
}

void append_entry(std::string& tar, const std::string& path, const Entry& entry) {
  const std::string_view target = entry.kind == EntryKind::link ? std::string_view(entry.text) : std::string_view{};
  std::string extended;
  if (cut_of(path) == std::string_view::npos) extended += pax_record("path", path);
  if (target.size() > 100) extended += pax_record("linkpath", target);
  if (!extended.empty()) {
    append_header(tar, "pax-header", 'x', extended.size(), "");
    tar += extended;
    pad(tar);
  }
  const char type = entry.kind == EntryKind::folder ? '5' : entry.kind == EntryKind::link ? '2' : '0';
  append_header(tar, path, type, type == '0' ? entry.text.size() : 0, target);
  if (type != '0') return;
  tar += entry.text;
  pad(tar);
}

tl::unexpected<Error> errno_failure(const std::string& path) {
  return fail(error_from_errno(errno, path));
}

Result<void> write_stdout(std::string_view bytes) {
  auto written = write_all(STDOUT_FILENO, bytes, "standard output");
  if (!written && written.error().os_errno == EPIPE) {
    return fail(ErrorCode::unavailable, "standard output was closed before all output was written");
  }
  return written;
}

tl::unexpected<Error> elsewhere(Error error) {
  error.message += "; choose another place";
  return fail(std::move(error));
}

bool is_there(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

tl::unexpected<Error> there_already(const std::string& path) {
  return fail(ErrorCode::failed_precondition, path + ": exists already; choose another or remove it");
}

// Renames a complete output, unless `to` exists by now.
Result<void> rename_new(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
  if (errno == EEXIST) return there_already(to);
  // Not all file systems can refuse to replace.
  if (errno != EINVAL && errno != ENOSYS) return errno_failure(to);
  if (is_there(to)) return there_already(to);
  if (::rename(from.c_str(), to.c_str()) != 0) return errno_failure(to);
  return {};
}

Result<void> write_archive(std::string_view bytes, const std::string& path) {
  Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return errno_failure(path);
  TRY(write_all(fd.get(), bytes, path));
  if (::close(fd.release()) != 0) return errno_failure(path);
  return {};
}

Result<void> write_entry(int directory, const std::string& path, const Entry& entry) {
  switch (entry.kind) {
    case EntryKind::folder:
      if (::mkdirat(directory, path.c_str(), 0755) != 0) return errno_failure(path);
      return {};
    case EntryKind::link:
      if (::symlinkat(entry.text.c_str(), directory, path.c_str()) != 0) return errno_failure(path);
      return {};
    case EntryKind::file:
      break;
  }
  const Fd fd(::openat(directory, path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd.valid()) return errno_failure(path);
  return write_all(fd.get(), entry.text, path);
}

Result<void> fill_directory(const Capture& capture, const std::string& path) {
  const Fd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid()) return errno_failure(path);
  for (const auto& [relative, entry] : capture.entries()) {
    if (auto written = write_entry(directory.get(), relative, entry); !written) {
      return fail(std::move(written).error().with_context(path));
    }
  }
  return {};
}

Result<void> make_directory(const Capture& capture, const std::string& path) {
  if (::mkdir(path.c_str(), 0755) != 0) return errno_failure(path);
  return fill_directory(capture, path);
}

// Runs `write` after `begin`; a failure leaves nothing behind.
Result<void> or_nothing(const Unfinished& unfinished, const Begin& begin, const std::function<Result<void>()>& write) {
  if (!begin(unfinished)) return fail(ErrorCode::invalid_argument, unfinished.path + ": too long a name");
  auto written = write();
  if (written) return {};
  Error error = std::move(written).error();
  if (error.os_errno != EEXIST) discard(unfinished);  // else another process creates it right now
  if (error.os_errno == 0) return fail(std::move(error));
  return elsewhere(std::move(error));
}

// A new file or directory, made by `write` under another name.
Result<void> write_new(const std::string& path, const Begin& begin,
                       const std::function<Result<void>(const std::string&)>& write) {
  const Unfinished partial{path + ".partial"};
  if (is_there(partial.path)) {
    return fail(ErrorCode::failed_precondition,
                partial.path + ": exists already; remove it if no other process is writing it");
  }
  return or_nothing(partial, begin, [&]() -> Result<void> {
    TRY(write(partial.path));
    return rename_new(partial.path, path);
  });
}

Result<void> write_directory(const Capture& capture, std::string path, const Begin& begin) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  if (!is_there(path)) {
    return write_new(path, begin, [&](const std::string& partial) { return make_directory(capture, partial); });
  }
  std::error_code error;
  const bool empty = std::filesystem::is_directory(path, error) && std::filesystem::is_empty(path, error);
  if (error) return elsewhere(error_from_errno(error.value(), path));
  if (!empty) return fail(ErrorCode::failed_precondition, path + ": is not empty; choose a new directory");
  return or_nothing({path, true}, begin, [&] { return fill_directory(capture, path); });
}

}  // namespace

std::string tar_text(const Capture& capture, std::string_view top) {
  std::string tar;
  append_entry(tar, std::string(top) + '/', {});
  for (const auto& [path, entry] : capture.entries()) {
    std::string full = std::string(top) + '/' + path;
    if (entry.kind == EntryKind::folder) full += '/';
    append_entry(tar, full, entry);
  }
  tar.append(2 * kBlock, '\0');
  return tar;
}

Result<std::string> gzip_text(std::string_view text) {
  constexpr int kGzipWindow = 15 + 16;
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) != Z_OK) {
    return fail(ErrorCode::internal, "zlib could not start");
  }
  std::string out(deflateBound(&stream, text.size()), '\0');
  const bool fits = text.size() <= std::numeric_limits<uInt>::max() && out.size() <= std::numeric_limits<uInt>::max();
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));  // NOLINT: zlib does not write there
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int status = fits ? deflate(&stream, Z_FINISH) : Z_BUF_ERROR;
  out.resize(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) return fail(ErrorCode::internal, "zlib could not compress");
  return out;
}

Result<void> check_archive(const std::string& path, std::uint64_t most_bytes) {
  const std::unique_ptr<gzFile_s, int (*)(gzFile)> file(gzopen(path.c_str(), "rb"), gzclose_r);
  if (!file) return fail(error_from_errno(errno, path));
  std::vector<char> buffer(std::size_t{64} << 10U);
  std::uint64_t bytes = 0;
  int got = 0;
  while ((got = gzread(file.get(), buffer.data(), static_cast<unsigned>(buffer.size()))) > 0) {
    bytes += static_cast<std::uint64_t>(got);
    if (bytes > most_bytes)
      return fail(ErrorCode::data_corrupt, path + " holds more than " + std::to_string(most_bytes >> 20U) + " MiB");
  }
  int status = Z_OK;
  gzerror(file.get(), &status);
  if (status == Z_OK || status == Z_STREAM_END) return {};
  return fail(ErrorCode::data_corrupt, path + ": the archive is damaged: its check sum or length is wrong");
}

bool names_archive(const std::string& path) {
  return path == "-" || path.ends_with(".tar.gz") || path.ends_with(".tgz");
}

Result<void> write_output(const Capture& capture, const std::string& path, const Begin& begin, std::string_view top) {
  if (!names_archive(path)) return write_directory(capture, path, begin);
  if (path != "-" && is_there(path)) return there_already(path);
  TRY_ASSIGN(const std::string bytes, gzip_text(tar_text(capture, top)));
  if (path == "-") return write_stdout(bytes);
  return write_new(path, begin, [&](const std::string& partial) { return write_archive(bytes, partial); });
}

namespace fs = std::filesystem;

void discard(const Unfinished& unfinished) noexcept {
  std::error_code error;
  if (unfinished.path.empty()) return;
  if (!unfinished.keeps_folder) {
    fs::remove_all(unfinished.path, error);
    return;
  }
  for (fs::directory_iterator it(unfinished.path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    fs::remove_all(it->path(), ignored);
  }
}

}  // namespace neuron::gather
