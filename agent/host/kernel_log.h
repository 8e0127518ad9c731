#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "agent/health/kernel_errors.h"
#include "agent/host/fs_root.h"
#include "agent/model/kernel_log.h"

namespace neuron::host {

using SeeRecord = std::function<void(const health::KernelRecord&)>;

// Records out of reads of which each gives one, as those of the device dev/kmsg. Knows which it has given, so that a
// device that was opened again, and then starts with the oldest record, gives none twice. One thread at a time.
class KernelRecords {
 public:
  // As read(2), with -errno for an error.
  using Read = std::function<ssize_t(std::span<char>)>;

  // A record with its head and dictionary is at most so long (CONSOLE_EXT_LOG_MAX of the kernel).
  static constexpr std::size_t kMaxRecordBytes = 8192;
  // Records per call, so that a flooded log does not hold up a scan; the rest is for the next one.
  static constexpr int kMaxRecords = 65536;

  // Passes new records to `see`; skips all else. True: there may be more. Errors: as of the read that failed.
  [[nodiscard]] Result<bool> read(const Read& read, const SeeRecord& see);

  // Records that were overwritten before they were read, by the gaps in their numbers.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  void take(std::string_view text, const SeeRecord& see);

  std::optional<std::uint64_t> next_;  // number of the record after the last one
  std::uint64_t lost_ = 0;
};

// Records out of the text that the system call syslog gives, which is all of the log each time and has no numbers: new
// ones are known by their times, and by the number of lines of the newest time, so that others of the same microsecond
// are given later, and none twice. A line that came after one was read and bears an earlier time is lost without
// notice, as the kernel takes the time before the line's place in the log. One thread at a time.
class KernelTexts {
 public:
  // syslog(2) with SYSLOG_ACTION_READ_ALL: puts the newest part of the log that fits, from the start of a line, into
  // the span; how much, or -errno. An empty span: how much it could be (SYSLOG_ACTION_SIZE_BUFFER).
  using Call = std::function<ssize_t(std::span<char>)>;

  // Passes new records to `see`, at the first call all of them. Errors: as of the call; failed_precondition: the log
  // has no times (kernel parameter printk.time=0).
  [[nodiscard]] Result<void> read(const Call& call, const SeeRecord& see);

  // How often records may have been overwritten between two reads.
  [[nodiscard]] std::uint64_t gaps() const { return gaps_; }

 private:
  [[nodiscard]] Result<std::string> newest(const Call& call) const;

  std::optional<std::chrono::microseconds> seen_until_;
  std::size_t seen_at_it_ = 0;  // lines of that time
  std::uint64_t gaps_ = 0;
};

// The kernel log of one machine, read again and again without ever waiting: dev/kmsg below the root. There it is
// - the kernel's device: it stays open; the first read starts with the oldest record of this boot that the kernel
//   still has, and each later one has what is new. Reading needs CAP_SYSLOG where the sysctl kernel.dmesg_restrict is
//   1, and a device cgroup that allows the device, which in a container means a privileged one;
// - on a live machine where that is refused, or not there: the system call syslog, which needs CAP_SYSLOG alone
//   (docs/health.md#the-kernel-log);
// - a regular file, on a simulated or captured host: all of it each time, one record per line (docs/fixtures.md).
// One thread at a time. `root` must outlive it.
class KernelLog {
 public:
  // Kind of the next read's data.
  enum class Part {
    everything,  // all that there is, as if nothing had been read before
    lookback,    // what there is from before reading began; there may be more of it
    news,        // what came since the last read
  };

  explicit KernelLog(const FsRoot& root) : root_(root) {}

  // Opens it where it is not open. Returns what read() will give. Errors: permission_denied; not_found;
  // invalid_argument (it is neither a device nor a regular file); others as of open(2).
  [[nodiscard]] Result<Part> open();
  // After open(). Errors: as of the read that failed; data_corrupt (a file larger than 1 MiB). After one the next
  // open() opens it anew, and no record is given twice.
  [[nodiscard]] Result<void> read(const SeeRecord& see);

  // At least so many were lost: of the system call one for each gap.
  [[nodiscard]] std::uint64_t lost_records() const { return records_.lost() + texts_.gaps(); }

 private:
  enum class Source { device, file, call };
  [[nodiscard]] Result<void> read_file(const SeeRecord& see);
  [[nodiscard]] Result<bool> read_more(const SeeRecord& see);

  const FsRoot& root_;
  Fd fd_;  // of device and file
  Source source_ = Source::device;
  Part part_ = Part::lookback;
  KernelRecords records_;
  KernelTexts texts_;
};

}  // namespace neuron::host
