#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/result.h"
#include "agent/model/device.h"

// Internal to agent/report: reads foreign JSON, and the keys that writer and reader share.
namespace neuron::report {

// The first problem in a document, by the path of its key: "devices[3].core_ids is not …". Passive data.
struct FirstProblem {
  std::optional<Error> error;
};

// One object of a document. A value that is missing or null is nullopt; one of the wrong type or out of bounds is too,
// and the first of these is kept. The object and `problem` must outlive it.
class Fields {
 public:
  static constexpr std::size_t kMostTextBytes = 4096;

  Fields(const nlohmann::json& object, std::string where, FirstProblem& problem)
      : object_(object), where_(std::move(where)), problem_(problem) {}

  [[nodiscard]] bool has(const char* key) const { return member(key) != nullptr; }
  [[nodiscard]] std::optional<int> number(const char* key, int min, int max) const;
  [[nodiscard]] std::optional<std::uint64_t> count(const char* key) const;
  [[nodiscard]] std::optional<bool> flag(const char* key) const;
  [[nodiscard]] std::optional<std::string> text(const char* key) const;  // at most kMostTextBytes
  [[nodiscard]] std::optional<std::vector<int>> numbers(const char* key, std::size_t most, int min, int max) const;
  [[nodiscard]] std::optional<std::vector<int>> ascending(const char* key, std::size_t most, int max) const;  // from 0
  [[nodiscard]] std::optional<std::vector<int>> cpus(const char* key) const;  // as "0-31,64-95"
  [[nodiscard]] std::optional<std::vector<std::string>> texts(const char* key, std::size_t most) const;
  [[nodiscard]] std::optional<Fields> object(const char* key) const;
  [[nodiscard]] std::vector<Fields> objects(const char* key, std::size_t most) const;  // empty without any

  // `{"value": …, "origin": …}`; `read` gets its fields.
  template <typename Read>
  [[nodiscard]] auto sourced(const char* key, const Read& read) const
      -> model::Maybe<typename std::invoke_result_t<Read, const Fields&>::value_type> {
    const auto fields = object(key);
    if (!fields) return std::nullopt;
    const auto origin = fields->text("origin");
    if (origin != "live" && origin != "assumed") fields->wrong("origin", "live or assumed");
    auto value = read(*fields);
    if (!value) {
      fields->wrong("value", "known");
      return std::nullopt;
    }
    using Value = typename std::invoke_result_t<Read, const Fields&>::value_type;
    return model::Sourced<Value>{std::move(*value), origin == "live" ? model::Origin::live : model::Origin::assumed};
  }

  // `expected`: "a number", after "is not".
  void wrong(const char* key, const std::string& expected) const;

 private:
  [[nodiscard]] const nlohmann::json* member(const char* key) const;  // nullptr: missing or null
  [[nodiscard]] const nlohmann::json* list(const char* key, std::size_t most) const;

  const nlohmann::json& object_;
  std::string where_;
  FirstProblem& problem_;
};

inline constexpr const char* kFormat = "neuron-ls/1";

struct DeviceCounter {
  const char* name;
  std::optional<std::uint64_t> model::DeviceSignals::*field;
};
inline constexpr std::array<DeviceCounter, 10> kDeviceCounters = {{
    {"sram_ecc_uncorrected", &model::DeviceSignals::sram_ecc_uncorrected},
    {"mem_ecc_uncorrected", &model::DeviceSignals::mem_ecc_uncorrected},
    {"mem_ecc_repairable_uncorrected", &model::DeviceSignals::mem_ecc_repairable_uncorrected},
    {"sram_ecc_corrected", &model::DeviceSignals::sram_ecc_corrected},
    {"mem_ecc_corrected", &model::DeviceSignals::mem_ecc_corrected},
    {"heartbeat", &model::DeviceSignals::heartbeat},
    {"hw_error_events", &model::DeviceSignals::hw_error_events},
    {"hbm_ecc_errors", &model::DeviceSignals::hbm_ecc_errors},
    {"repairable_hbm_ecc_errors", &model::DeviceSignals::repairable_hbm_ecc_errors},
    {"sram_ecc_errors", &model::DeviceSignals::sram_ecc_errors},
}};

struct CoreCounter {
  const char* name;
  std::optional<std::uint64_t> model::CoreSignals::*field;
};
inline constexpr std::array<CoreCounter, 6> kCoreCounters = {{
    {"device_memory_bytes", &model::CoreSignals::device_memory_bytes},
    {"hw_error", &model::CoreSignals::hw_error},
    {"hw_hbm_ue_error", &model::CoreSignals::hw_hbm_ue_error},
    {"hw_nc_ue_error", &model::CoreSignals::hw_nc_ue_error},
    {"hw_dma_abort_error", &model::CoreSignals::hw_dma_abort_error},
    {"hw_repairable_hbm_ue_error", &model::CoreSignals::hw_repairable_hbm_ue_error},
}};

}  // namespace neuron::report
