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
#include "agent/model/host_scan.h"

namespace neuron::host {

using SeeRecord = std::function<void(const health::KernelRecord&)>;

// Records of the device dev/kmsg, one per read. Remembers the last one, so that a reopened device, which starts with
// the oldest record, gives none twice. One thread at a time.
class KernelRecords {
 public:
  // Reads like read(2), but returns -errno for an error.
  using Read = std::function<ssize_t(std::span<char>)>;

  static constexpr std::size_t kMaxRecordBytes = 8192;  // with head and dictionary: CONSOLE_EXT_LOG_MAX of the kernel
  static constexpr int kMaxRecords = 65536;             // per call, so that a flooded log does not delay a scan

  // Passes new records to `see` and skips other text. True: there may be more. Errors: of the failed read.
  [[nodiscard]] Result<bool> read(const Read& read, const SeeRecord& see);

  // Records that were overwritten before they were read, by the gaps in their numbers.
  [[nodiscard]] std::uint64_t lost() const { return lost_; }

 private:
  void take(std::string_view text, const SeeRecord& see);

  std::optional<std::uint64_t> next_;  // number of the record after the last one
  std::uint64_t lost_ = 0;
};

// Records of the system call syslog, which gives the whole log each time, without numbers. New lines are found by their
// time and, at the newest time, by the number of lines seen with it. A line that arrives later with an earlier time is
// lost, as the kernel takes the time before the line's place in the log. One thread at a time.
class KernelTexts {
 public:
  // syslog(2) with SYSLOG_ACTION_READ_ALL: the newest part of the log that fits into the span, from the start of a
  // line; its size, or -errno. With an empty span: the size of the log (SYSLOG_ACTION_SIZE_BUFFER).
  using Call = std::function<ssize_t(std::span<char>)>;

  // Passes new records to `see`, at the first call all. Errors: of the call; failed_precondition: the log has no times
  // (kernel parameter printk.time=0).
  [[nodiscard]] Result<void> read(const Call& call, const SeeRecord& see);

  // Pairs of reads between which records may have been overwritten.
  [[nodiscard]] std::uint64_t gaps() const { return gaps_; }

 private:
  [[nodiscard]] Result<std::string> newest(const Call& call) const;

  std::optional<std::chrono::microseconds> seen_until_;
  std::size_t seen_at_it_ = 0;  // lines of that time
  std::uint64_t gaps_ = 0;
};

// The kernel log of one machine, dev/kmsg below the root, read again and again without waiting:
// - the kernel's device stays open; the first read starts with the oldest record. It needs CAP_SYSLOG where the sysctl
//   kernel.dmesg_restrict is 1, and a device cgroup that allows the device, in a container a privileged one;
// - on a live machine where it is refused or missing, the system call syslog, which needs CAP_SYSLOG only
//   (docs/health.md#the-kernel-log);
// - a regular file, on a simulated or captured host, is read whole each time, one record per line (docs/fixtures.md).
// One thread at a time. `root` must outlive it.
class KernelLogReader {
 public:
  // Content of the next read.
  enum class Part {
    everything,  // the whole log, as if nothing had been read before
    lookback,    // records from before the first read, perhaps not the last of them
    news,        // records since the last read
  };

  explicit KernelLogReader(const FsRoot& root) : root_(root) {}

  // Opens it unless it is open. Returns the content of the next read(). Errors: permission_denied; not_found;
  // invalid_argument (neither a device nor a regular file); others as of open(2).
  [[nodiscard]] Result<Part> open();
  // After open(). Errors: of the failed read; data_corrupt (a file larger than 1 MiB). The next open() then opens it
  // again, and no record is given twice.
  [[nodiscard]] Result<void> read(const SeeRecord& see);

  // Lost records, at least; of the system call one for each gap.
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
