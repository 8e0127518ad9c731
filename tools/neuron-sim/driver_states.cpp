#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>

#include "agent/base/clock.h"
#include "agent/base/parse.h"
#include "tools/neuron-sim/faults.h"
#include "tools/neuron-sim/host_directory.h"
#include "tools/neuron-sim/host_plan.h"

namespace neuron::sim {
namespace {

constexpr const char* kParameters = "sys/module/neuron/parameters/";
constexpr const char* kDevices = "sys/devices/virtual/neuron_device";
constexpr const char* kHealth = "/stats/hardware/health_status";
constexpr unsigned kPerRegister = 4096;  // of a register that packs both counts: bits 15:12 uncorrectable
constexpr int kLastPacked = 25;          // 2.25.4
constexpr int kLastHiding = 27;          // 2.27.4

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool has_repair(const std::string& device_folder) {
  const auto family = model::parse_family(first_line(device_folder + "/info/architecture/device_name"));
  return family == model::Family::trainium2 || family == model::Family::trainium3;
}

// Changes for the files that are there.
class Files {
 public:
  explicit Files(const std::string& dir) : dir_(dir) {}
  void set(const std::string& folder, std::initializer_list<std::pair<const char*, std::string>> texts) {
    for (const auto& [name, text] : texts) {
      if (is_there(dir_ + '/' + folder + name)) files_.push_back({folder + name, text + '\n'});
    }
  }
  void add(StateFile file) { files_.push_back(std::move(file)); }
  [[nodiscard]] std::vector<StateFile> take() { return std::move(files_); }

 private:
  const std::string& dir_;
  std::vector<StateFile> files_;
};

std::vector<std::string> device_folders(const std::string& dir) {
  std::vector<std::string> folders = names_in(dir + '/' + kDevices);
  for (std::string& name : folders) name.insert(0, std::string(kDevices) + '/');
  return folders;
}

void put_hbm(Files& files, const std::string& folder, std::pair<unsigned, unsigned> counts) {
  files.set(folder + "/stats/hardware/", {{"mem_ecc_uncorrected", std::to_string(counts.first)},
                                          {"mem_ecc_repairable_uncorrected", std::to_string(counts.second)}});
}

Result<HbmRegisters> parse_registers(std::string_view value) {
  const auto parts = split(value, ',');
  const auto number = [&](std::size_t i, int max) { return i < parts.size() ? parse_int(parts[i], 0, max) : 0; };
  const auto uncorrectable = number(0, 15);
  const auto repairable = number(1, 4095);
  const auto state = number(2, 2);
  if (parts.size() > 3 || !uncorrectable || !repairable || !state) {
    return fail(ErrorCode::invalid_argument,
                "\"" + printable(value) + "\" is not UNCORRECTABLE[,REPAIRABLE[,REPAIR_STATE]] (0-15, 0-4095, 0-2)");
  }
  return HbmRegisters{static_cast<unsigned>(*uncorrectable), static_cast<unsigned>(*repairable),
                      static_cast<unsigned>(*state)};
}

// All registers of the device read ones.
void take_off_the_bus(Files& files, const std::string& dir, const std::string& folder, int minor) {
  const bool repairs = has_repair(dir + '/' + folder);
  const unsigned registers = repairs ? 4 : 2;
  const unsigned uncorrectable = registers * 15;
  const unsigned repairable = repairs ? registers * (kPerRegister - 1) : 0;
  // Up to 2.25.4 no count is printed for a repair state of all ones.
  const unsigned packed = repairs ? 0 : registers * 65535;
  put_hbm(files, folder, minor <= kLastPacked ? std::pair(packed, 0U) : std::pair(uncorrectable, repairable));
  files.set(folder, {{"/info/serial_number", "ffffffffffffffff"},
                     {"/fw_api_version", "4294967295"},
                     {"/fw_build", "4294967295"},
                     {"/stats/hardware/sram_ecc_uncorrected", "65535"},
                     {"/stats/hardware/sram_ecc_corrected", "65535"},
                     {"/stats/hardware/mem_ecc_corrected", "65535"}});
  files.set(folder + kHealth,
            {{"/sram_ecc_err_count", "65535"},
             {"/hbm_ecc_err_count", std::to_string(uncorrectable)},
             {"/repairable_hbm_ecc_err_count", std::to_string(repairable)},
             {"/healthcheck_heartbeat", "255"},
             {"/unhealthy_components",
              "hbm,firmware_service_api,firmware_service_processor,sram,link_intraserver,link_host,link_efa,"
              "link_interserver,link_switch,axi_fabric"}});
}

// The files of health_status/ before the driver's thread has read a register.
void stop_health_thread(Files& files, const std::string& dir) {
  for (const std::string& folder : device_folders(dir)) {
    files.set(folder + kHealth, {{"/healthcheck_heartbeat", "0"},
                                 {"/hw_error_event", "0"},
                                 {"/hbm_ecc_err_count", "0"},
                                 {"/repairable_hbm_ecc_err_count", "0"},
                                 {"/sram_ecc_err_count", "0"},
                                 {"/unhealthy_components", ""}});
  }
}

constexpr std::size_t kMaxLogBytes = std::size_t{512} << 10U;

// "neuron3/core1" -> " nd-id=3 nc-id=1", "neuron3" -> " nd-id=3"; "" for other targets.
std::string fields_of(std::string_view target) {
  constexpr std::string_view kDevice = "neuron";
  constexpr std::string_view kCore = "/core";
  if (!target.starts_with(kDevice)) return "";
  const auto slash = target.find(kCore);
  std::string fields = " nd-id=" + std::string(target.substr(kDevice.size(), slash - kDevice.size()));
  if (slash != std::string_view::npos) fields += " nc-id=" + std::string(target.substr(slash + kCore.size()));
  return fields;
}

std::string escaped(std::string_view line) {
  std::string text;
  for (const char c : line) {
    const bool plain = c >= ' ' && c < '\x7f' && c != '\\';
    text += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return text;
}

// Number of the record after the last one.
std::uint64_t next_number(const std::string& log) {
  if (log.size() < 2) return 1;
  const auto begin = log.rfind('\n', log.size() - 2);
  const auto fields = split(std::string_view(log).substr(begin == std::string::npos ? 0 : begin + 1), ',');
  return fields.size() < 2 ? 1 : parse_u64(fields[1]).value_or(0) + 1;
}

// Decimal, or hexadecimal as masks are written: 0x3.
std::optional<std::uint64_t> number_of(std::string_view text) {
  if (!text.starts_with("0x")) return parse_u64(text);
  text.remove_prefix(2);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<std::string> entry_of(std::string_view text) {
  const auto fields = split(text, ':');
  const auto number = [&](std::size_t i) { return i < fields.size() ? number_of(fields[i]) : 0; };
  const auto pid = number(0);
  const auto mask = number(1);
  const auto host = number(2);
  const auto device = number(3);
  if (fields.empty() || fields.size() > 4 || !pid || !mask || !host || !device) {
    return fail(ErrorCode::invalid_argument,
                "\"" + printable(text) + "\" is not PID[:CORE_MASK[:HOST_BYTES[:DEVICE_BYTES]]]");
  }
  return fmt::format(R"({{ "pid": {}, "nc_lock_map": {}, "host_mem_bytes": {}, "device_mem_bytes": {} }})", *pid, *mask,
                     *host, *device);
}

}  // namespace

std::pair<unsigned, unsigned> printed_hbm(int minor, bool repairs, const HbmRegisters& registers) {
  const auto [uncorrectable, repairable, state] = registers;
  const unsigned packed = uncorrectable * kPerRegister + repairable;
  if (!repairs) return {minor <= kLastPacked ? packed : uncorrectable, 0};
  if (minor <= kLastPacked) return state == 1 ? std::pair(0U, packed) : std::pair(packed, 0U);
  if (minor <= kLastHiding) {
    const bool hides = (state != 0 && uncorrectable == 0) || (state == 1 && repairable == 0);
    return hides ? std::pair(0U, 0U) : std::pair(uncorrectable, repairable);
  }
  return {uncorrectable + (state == 2 ? 1 : 0), repairable + (state == 1 && repairable == 0 ? 1 : 0)};
}

bool is_driver_state(TargetKind kind, std::string_view key) {
  if (kind == TargetKind::device) return key == "hbm" || key == "off-bus";
  return kind == TargetKind::host && (key == "nmetric_log_posts" || key == "enable_sysfs_health_status_nodes");
}

Result<std::vector<StateFile>> files_of_state(const std::string& dir, const FaultTarget& target, std::string_view key,
                                              std::string_view value) {
  Files files(dir);
  if (target.kind == TargetKind::host) {
    files.add({kParameters + std::string(key), std::string(value) + '\n'});
    if (value == "0" && key == "nmetric_log_posts") stop_health_thread(files, dir);
    const bool drops_nodes = value == "0" && key == "enable_sysfs_health_status_nodes";
    for (const std::string& folder : drops_nodes ? device_folders(dir) : std::vector<std::string>()) {
      if (is_there(dir + '/' + folder + kHealth)) files.add({folder + kHealth, std::nullopt});
    }
    return files.take();
  }
  // An unreadable version text counts as the newest driver, as it did when the files were written.
  const auto driver = generation_of(first_line(dir + "/sys/module/neuron/version"));
  const int minor = driver ? driver->minor : DriverGeneration().minor;
  if (key == "off-bus") {
    take_off_the_bus(files, dir, target.folder, minor);
    return files.take();
  }
  TRY_ASSIGN(const HbmRegisters registers, parse_registers(value));
  put_hbm(files, target.folder, printed_hbm(minor, has_repair(dir + '/' + target.folder), registers));
  return files.take();
}

std::string hardware_error_line(const std::string& dir, const FaultTarget& target, std::string_view kind) {
  std::string line = utc_text(std::chrono::system_clock::now()) + " NEURON_HW_ERR=";
  if (kind.find(' ') != std::string_view::npos) return line.append(kind);
  const std::string device = target.name.substr(0, target.name.find('/'));
  const std::string serial = first_line(dir + "/sys/class/neuron_device/" + device + "/info/serial_number");
  line.append(kind);
  line += " instance-id=" + first_line(dir + "/sys/devices/virtual/dmi/id/board_asset_tag");
  line += " hostname=simulated" + fields_of(target.name);
  if (!serial.empty()) line += " serial-num=" + serial;
  return kind == "HANG_ON_COLLECTIVES" ? line : line + " action=TERMINATE_INSTANCE";
}

std::string with_kernel_line(std::string log, std::string_view line) {
  const auto since_boot = std::chrono::steady_clock::now().time_since_epoch();
  const auto usec = std::chrono::duration_cast<std::chrono::microseconds>(since_boot).count();
  log += fmt::format("3,{},{},-;{}\n", next_number(log), usec, escaped(line));
  if (log.size() <= kMaxLogBytes) return log;
  return log.substr(log.find('\n', log.size() - kMaxLogBytes) + 1);
}

std::string without_kernel_lines(const std::string& log, std::string_view target) {
  const std::string fields = fields_of(target);
  std::string kept;
  for (std::size_t at = 0; at < log.size();) {
    const auto end = std::min(log.find('\n', at), log.size() - 1) + 1;
    const std::string line = log.substr(at, end - at);
    at = end;
    const auto found = line.find(fields);
    const bool names_it = !fields.empty() && found != std::string::npos &&
                          (line[found + fields.size()] == ' ' || line[found + fields.size()] == '\n');
    if (!names_it) kept += line;
  }
  return kept;
}

Result<std::string> with_processes(const std::string& answers, const std::string& processes) {
  constexpr std::string_view kOpening = "\"apps\": [";
  const auto begin = answers.find(kOpening);
  const auto end = begin == std::string::npos ? begin : answers.find(']', begin);
  if (end == std::string::npos)
    return fail(ErrorCode::data_corrupt, "recorded answers without \"apps\": heal them first");
  std::string list;
  for (const auto text : split(processes, ',')) {
    TRY_ASSIGN(const std::string entry, entry_of(text));
    list += (list.empty() ? " " : ", ") + entry;
  }
  if (!list.empty()) list += " ";
  return answers.substr(0, begin + kOpening.size()) + list + answers.substr(end);
}

}  // namespace neuron::sim
