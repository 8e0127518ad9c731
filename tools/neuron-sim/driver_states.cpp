#include "tools/neuron-sim/driver_states.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "agent/base/parse.h"
#include "tools/neuron-sim/driver_generation.h"

namespace neuron::sim {
namespace {

namespace fs = std::filesystem;

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

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(fs::symlink_status(path, error));
}

bool has_repair(const std::string& device_folder) {
  const auto family = model::parse_family(first_line(device_folder + "/info/architecture/device_name"));
  return family == model::Family::trainium2 || family == model::Family::trainium3;
}

// Changes for the files that are there.
class Files {
 public:
  explicit Files(const std::string& dir) : dir_(dir) {}
  void set(const std::string& path, const std::string& text) {
    if (exists(dir_ + '/' + path)) files_.push_back({path, text + '\n'});
  }
  void add(StateFile file) { files_.push_back(std::move(file)); }
  [[nodiscard]] std::vector<StateFile> take() { return std::move(files_); }

 private:
  const std::string& dir_;
  std::vector<StateFile> files_;
};

std::vector<std::string> device_folders(const std::string& dir) {
  std::vector<std::string> folders;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(dir + '/' + kDevices, error)) {
    folders.push_back(std::string(kDevices) + '/' + entry.path().filename().string());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

void put_hbm(Files& files, const std::string& folder, std::pair<unsigned, unsigned> counts) {
  files.set(folder + "/stats/hardware/mem_ecc_uncorrected", std::to_string(counts.first));
  files.set(folder + "/stats/hardware/mem_ecc_repairable_uncorrected", std::to_string(counts.second));
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
  const std::string hardware = folder + "/stats/hardware/";
  const std::string health = folder + kHealth + '/';
  const unsigned uncorrectable = registers * 15;
  const unsigned repairable = repairs ? registers * (kPerRegister - 1) : 0;
  files.set(folder + "/info/serial_number", "ffffffffffffffff");
  files.set(folder + "/fw_api_version", "4294967295");
  files.set(folder + "/fw_build", "4294967295");
  for (const char* name : {"sram_ecc_uncorrected", "sram_ecc_corrected", "mem_ecc_corrected"}) {
    files.set(hardware + name, "65535");
  }
  // A repair state of ones is none that a driver up to 2.25.4 prints a count for.
  const unsigned packed = repairs ? 0 : registers * 65535;
  put_hbm(files, folder, minor <= kLastPacked ? std::pair(packed, 0U) : std::pair(uncorrectable, repairable));
  files.set(health + "sram_ecc_err_count", "65535");
  files.set(health + "hbm_ecc_err_count", std::to_string(uncorrectable));
  files.set(health + "repairable_hbm_ecc_err_count", std::to_string(repairable));
  files.set(health + "healthcheck_heartbeat", "255");
  files.set(health + "unhealthy_components",
            "hbm,firmware_service_api,firmware_service_processor,sram,link_intraserver,link_host,link_efa,"
            "link_interserver,link_switch,axi_fabric");
}

// The files of health_status/ as they are before the driver's thread has read a register.
void stop_health_thread(Files& files, const std::string& dir) {
  for (const std::string& folder : device_folders(dir)) {
    const std::string health = folder + kHealth + '/';
    for (const char* name : {"healthcheck_heartbeat", "hw_error_event", "hbm_ecc_err_count",
                             "repairable_hbm_ecc_err_count", "sram_ecc_err_count"}) {
      files.set(health + name, "0");
    }
    files.set(health + "unhealthy_components", "");
  }
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
    if (value != "0") return files.take();
    if (key == "nmetric_log_posts") {
      stop_health_thread(files, dir);
      return files.take();
    }
    for (const std::string& folder : device_folders(dir)) {
      if (exists(dir + '/' + folder + kHealth)) files.add({folder + kHealth, std::nullopt});
    }
    return files.take();
  }
  // Of a version text that is none the newest driver, as that is how its files were made.
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

}  // namespace neuron::sim
