#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "agent/model/device.h"
#include "agent/model/kernel_log.h"

// Neuron hardware errors in the kernel log (docs/reference/driver.md#kernel-log). Any process that may write to a
// Neuron device node or to dev/kmsg can put any line there, so all of it is foreign: strict, bounded, and applied only
// to devices that exist. Pure.
namespace neuron::health {

// The action of a line after which the instance has to be replaced (docs/reference/driver.md#kernel-log).
inline constexpr std::string_view kTerminateInstance = "TERMINATE_INSTANCE";

// The head of a record and its first line, which points into what was parsed. Passive data.
struct KernelRecord {
  std::uint64_t sequence = 0;        // of this boot, without gaps in what the kernel keeps
  std::chrono::microseconds time{};  // the kernel's clock, since boot
  std::string_view text;             // bytes that are not printable stand as \xNN
};

// One record as dev/kmsg gives it: "<prio>,<seq>,<usec>,<flags>[,…];text" and a newline, then perhaps lines
// " KEY=value". nullopt: it is none.
[[nodiscard]] std::optional<KernelRecord> parse_kernel_record(std::string_view record);

// One line as the system call syslog gives it: "<prio>[ secs.usec]text", perhaps with "[T123]" before the text. It has
// no sequence number: 0. nullopt: it is no record, or has no time (kernel parameter printk.time=0).
[[nodiscard]] std::optional<KernelRecord> parse_syslog_line(std::string_view line);

// One NEURON_HW_ERR= line. Passive data.
struct KernelError {
  model::KernelErrorKind kind = model::KernelErrorKind::other;
  std::string name;                   // 1 to 64 of A-Z, 0-9, '_'
  std::optional<int> device;          // nd-id, 0 to 9999
  std::optional<int> core;            // nc-id, 0 to 31; nullopt also where there is no nd-id
  std::optional<std::string> serial;  // serial-num, 16 hex digits, lower case
  std::string action;                 // up to 64 of A-Z, 0-9, '_'; "" where there is none
};

// Kinds of lines of the kernel log.
enum class KernelLineKind {
  nothing,
  error,           // NEURON_HW_ERR=, understood
  malformed,       // NEURON_HW_ERR=, not understood
  driver_started,  // "Neuron Driver Started with Version:…": what was before is of the past
  device_found,    // "** BDF: … => nd[3] (routing id: 5)": the same for that device
};

struct KernelLine {
  KernelLineKind kind = KernelLineKind::nothing;
  KernelError error;  // of error
  int device = 0;     // of device_found
};

// `text` of a record. The word NEURON_HW_ERR= begins the line or follows a blank or a colon; fields after it are
// "key=value" between blanks, in any order, each once. Words and keys that are not known are passed over. A key that is
// known with a value that makes no sense makes the line malformed.
[[nodiscard]] KernelLine parse_kernel_line(std::string_view text);

// Whether a line with that serial number may be about the chip that the device is now: so unless both are known and
// differ.
[[nodiscard]] bool is_of_chip(const std::optional<std::string>& serial, const model::NeuronDevice& device);

// The errors of the records read so far. A class, since it keeps at most one entry per device, kind and core of what is
// there. One thread at a time.
class KernelErrors {
 public:
  // Whether the next lines may report a driver start. Records from before the first scan are the only source; later a
  // device must have registered anew as well, so that a forged line cannot clear an error.
  enum class Lookback { yes, no };

  // Before the records of a scan. `devices`: that the scan shows. `renewed`: those that registered with the kernel
  // anew since the last scan; what was said of them in earlier scans is dropped at the end of this one, unless a
  // record does so at its place.
  void begin(std::span<const model::NeuronDevice> devices, std::set<int> renewed, Lookback lookback);
  // In their order. `devices` of begin() must still be there.
  void take(const KernelRecord& record);
  void end();

  // Ascending device (none first), kind, core.
  [[nodiscard]] std::vector<model::KernelLogError> errors() const;
  // NEURON_HW_ERR= lines that were malformed, or name a device, core or serial number that is not there.
  [[nodiscard]] std::uint64_t ignored_lines() const { return ignored_lines_; }

 private:
  using Key = std::tuple<int, model::KernelErrorKind, int>;  // -1: none
  struct Entry {
    model::KernelLogError error;
    bool is_new = false;  // of this scan
  };
  void add(KernelError error, std::chrono::microseconds time);
  void forget_device(int device);
  [[nodiscard]] bool is_there(const KernelError& error) const;
  [[nodiscard]] bool all_renewed() const;

  std::map<Key, Entry> entries_;
  std::span<const model::NeuronDevice> devices_;
  std::set<int> renewed_;
  Lookback lookback_ = Lookback::yes;
  std::uint64_t ignored_lines_ = 0;
};

}  // namespace neuron::health
