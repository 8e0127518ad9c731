#include "agent/host/kernel_log.h"

#include <sys/klog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <utility>

#include "agent/base/fd.h"

namespace neuron::host {
namespace {

constexpr std::string_view kPath = "dev/kmsg";
constexpr std::string_view kCall = "the system call syslog";
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 20U;

ssize_t call_syslog(std::span<char> into) {
  constexpr int kReadAll = 3;      // SYSLOG_ACTION_READ_ALL, of the kernel's linux/syslog.h
  constexpr int kSizeBuffer = 10;  // SYSLOG_ACTION_SIZE_BUFFER
  const int count = into.empty() ? ::klogctl(kSizeBuffer, nullptr, 0)
                                 : ::klogctl(kReadAll, into.data(), static_cast<int>(into.size()));
  return count < 0 ? -static_cast<ssize_t>(errno) : count;
}

}  // namespace

void KernelRecords::take(std::string_view text, const SeeRecord& see) {
  const auto record = health::parse_kernel_record(text);
  if (!record) return;
  if (next_ && record->sequence < *next_) return;
  if (next_) lost_ += record->sequence - *next_;
  next_ = record->sequence + 1;
  see(*record);
}

Result<bool> KernelRecords::read(const Read& read, const SeeRecord& see) {
  std::array<char, kMaxRecordBytes> buffer;  // NOLINT: read fills it
  for (int i = 0; i < kMaxRecords; ++i) {
    const ssize_t count = read(buffer);
    if (count > 0) {
      take({buffer.data(), static_cast<std::size_t>(count)}, see);
      continue;
    }
    if (count == 0 || count == -EAGAIN) return false;
    // EPIPE: the next record was overwritten, EINVAL: it is too long; the next read continues behind it, and the gap in
    // the numbers counts the lost ones.
    if (count == -EPIPE || count == -EINVAL || count == -EINTR) continue;
    return fail(error_from_errno(static_cast<int>(-count), kPath));
  }
  return true;
}

Result<std::string> KernelTexts::newest(const Call& call) const {
  constexpr std::size_t kEnoughForNews = std::size_t{256} << 10U;
  constexpr std::size_t kMost = std::size_t{16} << 20U;
  const ssize_t all = call({});
  if (all < 0) return fail(error_from_errno(static_cast<int>(-all), kCall));
  std::string text(std::min(static_cast<std::size_t>(all), seen_until_ ? kEnoughForNews : kMost), '\0');
  for (;;) {
    const ssize_t count = call(text);
    if (count < 0) return fail(error_from_errno(static_cast<int>(-count), kCall));
    const std::string_view got = std::string_view(text).substr(0, static_cast<std::size_t>(count));
    const auto oldest = health::parse_syslog_line(got.substr(0, got.find('\n')));
    const bool reaches_back = !seen_until_ || (oldest && oldest->time < *seen_until_);
    const std::size_t whole = std::min(static_cast<std::size_t>(all), kMost);
    if (reaches_back || text.size() >= whole) {
      text.resize(static_cast<std::size_t>(count));
      return text;
    }
    text.resize(whole);
  }
}

Result<void> KernelTexts::read(const Call& call, const SeeRecord& see) {
  TRY_ASSIGN(const std::string text, newest(call));
  const auto before = seen_until_;
  std::size_t known = seen_at_it_;  // lines of that time that were given already
  bool reaches_back = !before;
  bool has_times = text.empty();
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const auto record = health::parse_syslog_line(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (!record) continue;
    has_times = true;
    if (before && (record->time < *before || (record->time == *before && known > 0))) {
      if (record->time == *before) --known;
      reaches_back = reaches_back || record->time < *before || known == 0;
      continue;
    }
    if (!seen_until_ || record->time > *seen_until_) {
      seen_until_ = record->time;
      seen_at_it_ = 0;
    }
    if (record->time == *seen_until_) ++seen_at_it_;
    see(*record);
  }
  if (!has_times) {
    return fail(ErrorCode::failed_precondition,
                std::string(kCall) + ": its lines have no timestamps; boot without printk.time=0");
  }
  if (!reaches_back) ++gaps_;
  return {};
}

Result<KernelLogReader::Part> KernelLogReader::open() {
  if (fd_.valid()) return part_;
  auto fd = root_.open_log(kPath);
  if (!fd) {
    const auto refused = {ErrorCode::permission_denied, ErrorCode::not_found};
    const bool may_call = root_.is_live() && std::ranges::find(refused, fd.error().code) != refused.end();
    if (!may_call || call_syslog({}) < 0) return fail(fd.error());
    source_ = Source::call;
    return part_;
  }
  struct stat info {};
  if (::fstat(fd->get(), &info) != 0) return fail(error_from_errno(errno, kPath));
  if (!S_ISREG(info.st_mode) && !S_ISCHR(info.st_mode)) {
    return fail(ErrorCode::invalid_argument, std::string(kPath) + ": neither a character device nor a regular file");
  }
  source_ = S_ISREG(info.st_mode) ? Source::file : Source::device;
  fd_ = *std::move(fd);
  return source_ == Source::file ? Part::everything : part_;
}

Result<void> KernelLogReader::read_file(const SeeRecord& see) {
  const Fd fd = std::exchange(fd_, {});  // another file may stand there the next time
  TRY_ASSIGN(const std::string text, read_all(fd.get(), kMaxFileBytes, kPath));
  std::string_view rest = text;
  for (auto end = rest.find('\n'); end != std::string_view::npos; end = rest.find('\n')) {
    if (const auto record = health::parse_kernel_record(rest.substr(0, end))) see(*record);
    rest.remove_prefix(end + 1);
  }
  return {};
}

Result<bool> KernelLogReader::read_more(const SeeRecord& see) {
  if (source_ == Source::call) {
    TRY(texts_.read(call_syslog, see));
    return false;
  }
  return records_.read(
      [fd = fd_.get()](std::span<char> into) {
        const ssize_t count = ::read(fd, into.data(), into.size());
        return count < 0 ? -static_cast<ssize_t>(errno) : count;
      },
      see);
}

Result<void> KernelLogReader::read(const SeeRecord& see) {
  if (source_ == Source::file) return read_file(see);
  const auto more = read_more(see);
  if (!more) {
    fd_.reset();
    return fail(more.error());
  }
  if (!*more) part_ = Part::news;
  return {};
}

}  // namespace neuron::host
