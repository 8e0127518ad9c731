#include "agent/health/kernel_errors.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/base/parse.h"
#include "agent/health/reasons.h"

namespace neuron::health {
namespace {

using model::Health;
using model::KernelErrorKind;
using model::KernelLogError;
using model::NeuronDevice;

constexpr std::string_view kMark = "NEURON_HW_ERR=";
constexpr std::string_view kStarted = "Neuron Driver Started with Version:";
constexpr std::size_t kMaxWord = 64;
constexpr int kMaxDeviceIndex = 9999;
constexpr int kMaxCoreIndex = 31;

// NEURON_HW_ERR=<name>; a name with REPAIRABLE is of hbm_repairable, and each other one of `other`.
struct Kind {
  std::string_view name;
  KernelErrorKind kind;
  const Reason* reason;
};

constexpr std::array kKinds = {
    Kind{"SRAM_UNCORRECTABLE_ERROR", KernelErrorKind::sram, &reasons::kSramEccUncorrected},
    Kind{"NC_UNCORRECTABLE_ERROR", KernelErrorKind::core, &reasons::kHwNcUeError},
    Kind{"HBM_UNCORRECTABLE_ERROR", KernelErrorKind::hbm, &reasons::kMemEccUncorrected},
    Kind{"DMA_ERROR", KernelErrorKind::dma, &reasons::kHwDmaAbortError},
    Kind{"HANG_ON_COLLECTIVES", KernelErrorKind::collectives, &reasons::kHangOnCollectives},
    Kind{"", KernelErrorKind::hbm_repairable, &reasons::kMemEccRepairable},
};

bool is_capital_word(std::string_view text) {
  return !text.empty() && text.size() <= kMaxWord &&
         std::ranges::all_of(text, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; });
}

KernelErrorKind kind_of(std::string_view name) {
  const auto known = std::ranges::find(kKinds, name, &Kind::name);
  if (known != kKinds.end()) return known->kind;
  const auto at = name.find("REPAIRABLE");
  const bool unrepairable = at != std::string_view::npos && name.substr(0, at).ends_with("UN");
  if (at != std::string_view::npos && !unrepairable) return KernelErrorKind::hbm_repairable;
  return KernelErrorKind::other;
}

std::optional<std::string> serial_of(std::string_view text) {
  constexpr std::size_t kDigits = 16;
  if (text.size() != kDigits) return std::nullopt;
  std::string serial = lower_ascii(text);
  if (serial.find_first_not_of("0123456789abcdef") != std::string::npos) return std::nullopt;
  return serial;
}

// Up to the next blank; takes it and the blanks after it off `rest`.
std::string_view next_word(std::string_view& rest) {
  const auto end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(rest.find_first_not_of(' ', end), rest.size()));
  return word;
}

// The fields after the kind; false: one that is known makes no sense, or comes twice.
class Fields {
 public:
  [[nodiscard]] bool take(std::string_view word) {
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) return true;
    const std::string_view key = word.substr(0, equals);
    const std::string_view value = word.substr(equals + 1);
    if (key == "nd-id") return number(value, kMaxDeviceIndex, error_.device);
    if (key == "nc-id") return number(value, kMaxCoreIndex, error_.core);
    if (key == "serial-num") return !error_.serial && (error_.serial = serial_of(value)).has_value();
    if (key != "action") return true;
    const bool fits = error_.action.empty() && is_capital_word(value);
    if (fits) error_.action = value;
    return fits;
  }
  [[nodiscard]] KernelError end() && {
    if (!error_.device) error_.core.reset();
    if (error_.serial == model::kSerialOfOnes) error_.serial.reset();
    return std::move(error_);
  }

 private:
  static bool number(std::string_view text, int max, std::optional<int>& value) {
    if (value || !is_digits(text)) return false;
    value = parse_int(text, 0, max);
    return value.has_value();
  }

  KernelError error_;
};

// After NEURON_HW_ERR=.
KernelLine parse_error(std::string_view rest) {
  const std::string_view name = next_word(rest);
  if (!is_capital_word(name)) return {KernelLineKind::malformed, {}, 0};
  Fields fields;
  while (!rest.empty()) {
    if (!fields.take(next_word(rest))) return {KernelLineKind::malformed, {}, 0};
  }
  KernelError error = std::move(fields).end();
  error.kind = kind_of(name);
  error.name = name;
  return {KernelLineKind::error, std::move(error), 0};
}

// N of "** BDF: 10:1b.0 => nd[N] (routing id: 5)", wherever in the line.
std::optional<int> found_device(std::string_view text) {
  constexpr std::string_view kBdf = "** BDF: ";
  constexpr std::string_view kIndex = " => nd[";
  constexpr std::string_view kEnd = "] (routing id: ";
  const auto bdf = text.find(kBdf);
  if (bdf == std::string_view::npos) return std::nullopt;
  const auto begin = text.find(kIndex, bdf);
  const auto end = text.find(kEnd, bdf);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin + kIndex.size()) {
    return std::nullopt;
  }
  const std::string_view digits = text.substr(begin + kIndex.size(), end - begin - kIndex.size());
  return is_digits(digits) ? parse_int(digits, 0, kMaxDeviceIndex) : std::nullopt;
}

const Reason& reason_of(const KernelLogError& error) {
  const auto known = std::ranges::find(kKinds, error.kind, &Kind::kind);
  if (known != kKinds.end()) return *known->reason;
  return error.action == kTerminateInstance ? reasons::kHwError : reasons::kKernelLogError;
}

Health verdict_of(const KernelLogError& error, const std::string& name) {
  std::string sentence = name + ": the kernel log reports NEURON_HW_ERR=" + error.name;
  if (error.core) sentence += " of core " + std::to_string(*error.core);
  if (!error.device) sentence += " and names no device";
  if (!error.action.empty()) sentence += " (action=" + error.action + ")";
  return verdict(reason_of(error), std::move(sentence));
}

bool has_ended(const KernelLogError& error, SteadyTime now) {
  return error.kind == KernelErrorKind::collectives && now.time_since_epoch() > error.last_at + kHangHolds;
}

// Unless both serial numbers are known and differ. That of a device off the bus, which reads ones, is not.
bool is_of_chip(const std::optional<std::string>& serial, const NeuronDevice& device) {
  if (!serial || !device.serial) return true;
  const std::string own = lower_ascii(*device.serial);
  return own == model::kSerialOfOnes || own == *serial;
}

// Whether nc-id counts logical or physical cores is unknown, so it names a core only where both are the same.
bool is_of_core(const KernelLogError& error, const model::HostScan& scan, const model::NeuronDevice& device) {
  return error.kind == KernelErrorKind::core && error.core && scan.lnc && scan.lnc->value == 1 &&
         device.physical_cores && *error.core < device.physical_cores->value;
}

}  // namespace

std::optional<KernelRecord> parse_kernel_record(std::string_view record) {
  const auto semicolon = record.find(';');
  if (semicolon == std::string_view::npos) return std::nullopt;
  std::string_view head = record.substr(0, semicolon);
  const std::string_view priority = take_until(head, ',');
  const std::string_view sequence = take_until(head, ',');
  const std::string_view time = take_until(head, ',');
  if (head.empty() || !is_digits(priority) || !is_digits(sequence) || !is_digits(time)) return std::nullopt;
  const auto number = parse_u64(sequence);
  const auto microseconds = parse_i64(time);
  if (!parse_u64(priority) || !number || !microseconds) return std::nullopt;
  std::string_view rest = record.substr(semicolon + 1);
  return KernelRecord{*number, std::chrono::microseconds(*microseconds), take_until(rest, '\n')};
}

std::optional<KernelRecord> parse_syslog_line(std::string_view line) {
  const auto priority_end = line.find(">[");
  if (!line.starts_with('<') || priority_end == std::string_view::npos) return std::nullopt;
  if (!is_digits(line.substr(1, priority_end - 1))) return std::nullopt;
  std::string_view rest = line.substr(priority_end + 2);
  std::string_view time = trim(take_until(rest, ']'));
  const std::string_view seconds = take_until(time, '.');
  constexpr std::size_t kDigits = 6;  // of microseconds
  constexpr std::int64_t kMaxSeconds = 1'000'000'000;
  if (!is_digits(seconds) || !is_digits(time) || time.size() != kDigits) return std::nullopt;
  const auto whole = parse_i64(seconds);
  const auto part = parse_i64(time);
  if (!whole || !part || *whole > kMaxSeconds) return std::nullopt;
  if (rest.starts_with('[')) take_until(rest, ']');  // the source of the line
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  return KernelRecord{0, std::chrono::seconds(*whole) + std::chrono::microseconds(*part), rest};
}

KernelLine parse_kernel_line(std::string_view text) {
  constexpr std::string_view kNewline = "\\x0a";
  while (!text.empty()) {
    const auto end = std::min(text.find(kNewline), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + kNewline.size(), text.size()));
    if (line.starts_with(kStarted)) return {KernelLineKind::driver_started, {}, 0};
    const auto mark = line.find(kMark);
    const bool is_own_word =
        mark == 0 || (mark != std::string_view::npos && (line[mark - 1] == ' ' || line[mark - 1] == ':'));
    if (is_own_word) return parse_error(line.substr(mark + kMark.size()));
    if (const auto device = found_device(line)) return {KernelLineKind::device_found, {}, *device};
  }
  return {};
}

void KernelErrors::begin(std::span<const NeuronDevice> devices, std::set<int> renewed, Lookback lookback) {
  devices_ = devices;
  renewed_ = std::move(renewed);
  lookback_ = lookback;
  for (auto& [key, entry] : entries_) entry.is_new = false;
}

bool KernelErrors::all_renewed() const {
  return !devices_.empty() &&
         std::ranges::all_of(devices_, [&](const NeuronDevice& device) { return renewed_.contains(device.index); });
}

void KernelErrors::take(const KernelRecord& record) {
  KernelLine line = parse_kernel_line(record.text);
  switch (line.kind) {
    case KernelLineKind::nothing:
      return;
    case KernelLineKind::malformed:
      ++ignored_lines_;
      return;
    case KernelLineKind::error:
      return add(std::move(line.error), record.time);
    case KernelLineKind::driver_started:
      if (lookback_ == Lookback::no && renewed_.empty()) return;
      entries_.clear();
      renewed_.clear();
      return;
    case KernelLineKind::device_found:
      if (lookback_ == Lookback::yes || renewed_.erase(line.device) > 0) forget_device(line.device);
      return;
  }
}

void KernelErrors::end() {
  const bool all = all_renewed();
  std::erase_if(entries_, [&](const auto& item) {
    const int device = std::get<0>(item.first);
    return !item.second.is_new && (renewed_.contains(device) || (all && device < 0));
  });
  devices_ = {};
}

bool KernelErrors::is_there(const KernelError& error) const {
  if (!error.device) return true;
  const auto found = std::ranges::find(devices_, *error.device, &NeuronDevice::index);
  if (found == devices_.end()) return false;
  if (error.core && found->physical_cores && *error.core >= found->physical_cores->value) return false;
  return is_of_chip(error.serial, *found);
}

void KernelErrors::add(KernelError error, std::chrono::microseconds time) {
  if (!is_there(error)) {
    ++ignored_lines_;
    return;
  }
  Entry& entry = entries_[{error.device.value_or(-1), error.kind, error.core.value_or(-1)}];
  model::KernelLogError& known = entry.error;
  const bool other_chip = known.serial && error.serial && *known.serial != *error.serial;
  if (known.lines == 0 || other_chip) {
    known = {error.kind, error.name, error.device, error.core, error.serial, error.action, 0, time, time};
  } else if (error.action == kTerminateInstance && known.action != kTerminateInstance) {  // no earlier line hides that
    known.name = std::move(error.name);
    known.action = std::move(error.action);
  }
  ++known.lines;
  known.last_at = std::max(known.last_at, time);
  entry.is_new = true;
}

void KernelErrors::forget_device(int device) {
  std::erase_if(entries_, [&](const auto& item) { return std::get<0>(item.first) == device; });
}

std::vector<model::KernelLogError> KernelErrors::errors() const {
  std::vector<model::KernelLogError> list;
  list.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) list.push_back(entry.error);
  return list;
}

KernelFaults find_kernel_faults(const model::HostScan& scan, const model::NeuronDevice& device, SteadyTime now) {
  KernelFaults faults{healthy(), {}};
  for (const KernelLogError& error : scan.kernel_log.errors) {
    if (error.device != device.index || !is_of_chip(error.serial, device) || has_ended(error, now)) continue;
    Health health = verdict_of(error, "neuron" + std::to_string(device.index));
    if (is_of_core(error, scan, device)) {
      faults.of_cores.try_emplace(*error.core, std::move(health));
    } else {
      keep_graver(faults.of_device, std::move(health));
    }
  }
  return faults;
}

Health verdict_on_node(const model::HostScan& scan, SteadyTime now) {
  Health worst = scan.kernel_log.state == model::KernelLogState::reading ? healthy() : Health{};
  for (const KernelLogError& error : scan.kernel_log.errors) {
    if (error.device || has_ended(error, now)) continue;
    keep_graver(worst, verdict_of(error, "node"));
  }
  return worst;
}

}  // namespace neuron::health
