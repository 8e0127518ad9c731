#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/health/signals.h"
#include "agent/host/fs_root.h"
#include "agent/model/host_scan.h"

namespace neuron::host {

// Path of one device's entry: "sys/class/neuron_device/neuron<N>".
[[nodiscard]] std::string device_path(int index);

// Bytes of device memory that processes own on one physical core now, without the driver's own (driver_memory,
// notifications, dma_rings): .../neuron_core<core>/stats/memory_usage/device_mem/<kind>/total. Live in every driver
// version. A kind with more than `limit`, the device's memory, is unknown: such a counter went below zero
// (docs/reference/driver.md#reading-counters). nullopt: no kind is known, or the known ones are 0 and another that the
// driver has is not. Any thread; blocks on file reads.
[[nodiscard]] std::optional<std::uint64_t> process_memory_of_core(const FsRoot& root, int device, int physical_core,
                                                                  std::optional<std::uint64_t> limit = std::nullopt);

// Reads one Neuron device through a handle on its directory that stays open. After the first read only files that exist
// are read, and those that this driver has on this family (health/signals.h). Follows core folders that come or go,
// since the driver may still be making the device. Make a new reader when the driver, the inventory or the id of the
// device's entry changes. One thread at a time; may block inside a hung driver.
class NeuronDeviceReader {
 public:
  // `root` need only live for the call. `driver_version`: sys/module/neuron/version, "" when unknown. Errors: not_found
  // when the device left; others when its entry is no folder.
  [[nodiscard]] static Result<NeuronDeviceReader> open(const FsRoot& root, int index, std::string_view driver_version);

  // The open directory; compare with FsRoot::identify(device_path(index)).
  [[nodiscard]] const FileId& id() const { return id_; }

  // Everything below the class entry but the files of read_shown(). Absent and unreadable values are empty, unreadable
  // ones are also named in `problems`. Architecture and core count are read until they exist, the rest each time.
  [[nodiscard]] model::NeuronDevice read();

  // Adds files without a verdict (health::CoreSignal::reason is null) to the device of the newest read().
  void read_shown(model::NeuronDevice& device);

  // Set when the newest read is no evidence: files could not be opened for want of descriptors or memory.
  [[nodiscard]] const std::optional<Error>& shortage() const { return shortage_; }

  // The generation of the files that exist; `unknown` when none does. Valid after a read.
  [[nodiscard]] model::DriverLayout layout() const;

 private:
  enum class State { unprobed, present, absent };
  enum class Access { everyone, root_only };
  struct Known {
    std::string path;  // below the device's directory
    model::ProblemKind problem_kind = model::ProblemKind::file;
    State state = State::unprobed;
  };
  struct KnownDeviceFile : Known {
    const health::DeviceSignal* signal = nullptr;
  };
  struct KnownCoreFile : Known {
    std::size_t core = 0;  // position in core_indices_
    const health::CoreSignal* signal = nullptr;
  };

  NeuronDeviceReader(FsRoot directory, FileId id, int index, std::optional<health::DriverRelease> release)
      : directory_(std::move(directory)), id_(id), index_(index), release_(release) {}
  void set_entries(std::vector<std::string> entries);
  [[nodiscard]] bool lacks_cores() const;
  void follow_entries();
  [[nodiscard]] bool may_exist(const Known& known, const health::Lifetime& life) const;
  [[nodiscard]] std::optional<std::string> read_known(Known& known, Access access, model::NeuronDevice& device);
  // The value of the text that was read; nullopt without a text, and for a malformed one, which is a problem.
  template <typename Value>
  [[nodiscard]] std::optional<Value> value_of(const Known& known, const std::optional<std::string>& text,
                                              Result<Value> (*parse)(std::string_view),
                                              model::NeuronDevice& device) const;
  void read_facts();
  void read_neighbours(model::NeuronDevice& device);
  void read_serial(model::NeuronDevice& device);
  void read_core_file(KnownCoreFile& known, model::NeuronDevice& device);
  void complain(model::NeuronDevice& device, const Known& known, const Error& error) const;

  FsRoot directory_;
  FileId id_;
  int index_ = 0;
  std::optional<health::DriverRelease> release_;
  DirectoryStamp stamp_;                      // of the directory when `entries_` was read
  std::vector<std::string> entries_;          // of the directory
  bool only_bare_entries_ = true;             // nothing of driver 2.8 or later
  bool has_root_files_ = false;               // core_count or reset, readable or not
  std::vector<int> core_indices_;             // M of the neuron_core<M> folders, ascending
  bool facts_complete_ = false;               // nothing of facts_ is pending
  std::optional<Error> shortage_;             // of the newest read
  std::optional<model::NeuronDevice> facts_;  // index, family, arch, physical_cores, and their problems
  Known neighbours_{"connected_devices"};
  Known serial_{"info/serial_number"};
  std::vector<KnownDeviceFile> device_files_;
  std::vector<KnownCoreFile> core_files_;
};

}  // namespace neuron::host
