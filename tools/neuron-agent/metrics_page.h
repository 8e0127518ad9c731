#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/metrics/exposition.h"
#include "agent/metrics/http_server.h"

namespace neuron::agent {

// The text of /metrics, for any number of clients: made anew when the machine was scanned since, else at most once a
// second, and shared by all who ask meanwhile, so that many or hostile clients cost one rendering. Thread-safe.
class MetricsPage {
 public:
  static constexpr std::chrono::seconds kGoodFor{1};

  struct Ports {
    std::function<metrics::MetricsInput()> gather;  // must not block, nor read the machine
    std::function<std::uint64_t()> scan;            // number of the newest one (model::Snapshot::number); 0: none
  };
  // `clock` must outlive it.
  MetricsPage(Ports ports, const Clock& clock) : ports_(std::move(ports)), clock_(clock) {}

  // For a client that sent this header Accept.
  [[nodiscard]] metrics::HttpAnswer answer(std::string_view accept) EXCLUDES(mutex_, quiet_mutex_);

  // Once after each burst of texts: none was made for kGoodFor, so that what making them took, several times their
  // size, can be given back to the system. Never waits for a text that is being made.
  [[nodiscard]] bool take_quiet() EXCLUDES(quiet_mutex_);

 private:
  struct Text {
    std::shared_ptr<const std::string> text;  // nullptr: none yet
    SteadyTime made_at{};
    std::uint64_t scan = 0;
  };

  const Ports ports_;
  const Clock& clock_;
  Mutex mutex_;                                                 // held while a text is made
  std::array<Text, 2> texts_ GUARDED_BY(mutex_);                // by metrics::TextFormat
  Mutex quiet_mutex_;                                           // taken last
  std::optional<SteadyTime> made_at_ GUARDED_BY(quiet_mutex_);  // last, since take_quiet()
};

}  // namespace neuron::agent
