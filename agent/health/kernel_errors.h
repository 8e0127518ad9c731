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

#include "agent/base/clock.h"
#include "agent/model/host_scan.h"

// The kernel log's lines about Neuron hardware (docs/reference/driver.md#kernel-log), and their verdicts. Any process
// with access to a Neuron device node or to dev/kmsg can write lines there, so all of them are foreign: parsed
// strictly, bounded, and applied to present devices only. Pure.
namespace neuron::health {

// The action of a line after which the instance has to be replaced (docs/reference/driver.md#kernel-log).
inline constexpr std::string_view kTerminateInstance = "TERMINATE_INSTANCE";

// The head of a record and its first line, which points into what was parsed. Passive data.
struct KernelRecord {
  std::uint64_t sequence = 0;        // of this boot, without gaps among the records that the kernel keeps
  std::chrono::microseconds time{};  // the kernel's clock, since boot
  std::string_view text;             // bytes that are not printable stand as \xNN
};

// One record of dev/kmsg: "<prio>,<seq>,<usec>,<flags>[,…];text" and a newline, then perhaps lines " KEY=value".
// nullopt for other text.
[[nodiscard]] std::optional<KernelRecord> parse_kernel_record(std::string_view record);

// One line of the system call syslog: "<prio>[ secs.usec]text", perhaps with "[T123]" before the text. Its sequence
// number is 0. nullopt for other text, or without a time (kernel parameter printk.time=0).
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

enum class KernelLineKind {
  nothing,
  error,           // NEURON_HW_ERR=, understood
  malformed,       // NEURON_HW_ERR=, not understood
  driver_started,  // "Neuron Driver Started with Version:…": ends all earlier errors
  device_found,    // "** BDF: … => nd[3] (routing id: 5)": ends those of that device
};

struct KernelLine {
  KernelLineKind kind = KernelLineKind::nothing;
  KernelError error;  // of error
  int device = 0;     // of device_found
};

// `text` of a record. The word NEURON_HW_ERR= begins the line or follows a blank or a colon; fields after it are
// "key=value" between blanks, in any order, each once. Unknown words and keys are ignored; a known key with a malformed
// value makes the line malformed.
[[nodiscard]] KernelLine parse_kernel_line(std::string_view text);

// The errors of the records read so far. A class, since it keeps at most one entry per device, kind and core of what is
// there. One thread at a time.
class KernelErrors {
 public:
  // Whether the next records may end earlier errors by themselves. Yes for records from before the first scan; later a
  // device must also have registered again, so that a forged line cannot clear an error.
  enum class Lookback { yes, no };

  // Before the records of a scan. `devices`: of the scan. `renewed`: those that registered again since the last scan;
  // their earlier errors are dropped at the end of this one, unless a record does so at its place.
  void begin(std::span<const model::NeuronDevice> devices, std::set<int> renewed, Lookback lookback);
  // In their order. `devices` of begin() must still be there.
  void take(const KernelRecord& record);
  void end();

  // Ascending device (none first), kind, core.
  [[nodiscard]] std::vector<model::KernelLogError> errors() const;
  // NEURON_HW_ERR= lines that were malformed, or name an absent device, core or serial number.
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

// A hang of collectives counts against a device for so long: the cause is mostly another node, and the log has no line
// for its end. Other errors count until the driver is loaded again or the device is replaced.
inline constexpr std::chrono::minutes kHangHolds{10};

struct KernelFaults {
  model::Health of_device;                // the gravest; healthy where there is none
  std::map<int, model::Health> of_cores;  // physical core -> a fault of its own
};

// Faults by lines that name `device`, which is completed. `now`: of the clock that counts from boot, as the kernel's;
// meaningless on a captured host.
[[nodiscard]] KernelFaults find_kernel_faults(const model::HostScan& scan, const model::NeuronDevice& device,
                                              SteadyTime now);

// By lines that name no device: healthy without any; not assessed where the log is not read.
[[nodiscard]] model::Health verdict_on_node(const model::HostScan& scan, SteadyTime now);

}  // namespace neuron::health
