#include "test/bench/fragmentation_simulation.h"

#include <functional>
#include <list>
#include <map>
#include <optional>
#include <queue>
#include <utility>

namespace neuron::bench {
namespace {

int cores_of(const Fabric& fabric, const Request& request) {
  return request.unit == Unit::device ? request.size * fabric.per_device() : request.size;
}

// Where containers run. `start` answers false, and holds nothing, when the request cannot run now.
class Player {
 public:
  Player() = default;
  Player(const Player&) = delete;
  Player& operator=(const Player&) = delete;
  virtual ~Player() = default;
  virtual bool start(const Request& request, bool measured, Measures& measures) = 0;
  virtual void finish(const Request& request) = 0;
  [[nodiscard]] virtual int free_cores() const = 0;
  virtual void note_loss(const Request& request, Measures& measures) const = 0;
};

class PolicyPlayer final : public Player {
 public:
  PolicyPlayer(const Fabric& fabric, const Policy& policy)
      : fabric_(fabric), policy_(policy), node_(fabric), empty_(fabric) {}

  bool start(const Request& request, bool measured, Measures& measures) override {
    if (!node_.enough(request)) return false;
    Placement placement = policy_.place(fabric_, node_, request);
    if (static_cast<int>(placement.ids.size()) != request.size || !fabric_.valid(request.unit, placement.ids)) {
      return false;  // refused, or the container fails in the runtime and gives all back
    }
    if (measured) measure(request, placement, measures);
    node_.take(request.unit, placement);
    held_.emplace(request.id, std::move(placement));
    return true;
  }
  void finish(const Request& request) override {
    const auto entry = held_.find(request.id);
    node_.release(request.unit, entry->second);
    held_.erase(entry);
  }
  [[nodiscard]] int free_cores() const override { return static_cast<int>(node_.free_cores().size()); }
  void note_loss(const Request& request, Measures& measures) const override {
    if (policy_.place(fabric_, empty_, request).ids.empty()) ++measures.refused;
    if (node_.any_valid(request)) ++measures.missed;
  }

 private:
  void measure(const Request& request, const Placement& placement, Measures& measures) const {
    const std::vector<int> devices = fabric_.devices_of(request.unit, placement.ids);
    if (const auto hops = fabric_.mean_hops(devices)) {
      measures.hops += *hops;
      ++measures.pairs;
    }
    if (request.efas == 0) return;
    ++measures.with_nics;
    const bool aligned = fabric_.nics_aligned(devices, placement.efas);
    if (aligned) ++measures.aligned_nics;
    if (aligned || node_.any_aligned(request)) ++measures.alignable_nics;
  }

  const Fabric& fabric_;
  const Policy& policy_;
  Occupancy node_;
  Occupancy empty_;
  std::map<int, Placement> held_;
};

class CountPlayer final : public Player {
 public:
  explicit CountPlayer(const Fabric& fabric) : fabric_(fabric), free_(fabric.devices() * fabric.per_device()) {}

  bool start(const Request& request, bool /*measured*/, Measures& /*measures*/) override {
    if (cores_of(fabric_, request) > free_) return false;
    free_ -= cores_of(fabric_, request);
    return true;
  }
  void finish(const Request& request) override { free_ += cores_of(fabric_, request); }
  [[nodiscard]] int free_cores() const override { return free_; }
  void note_loss(const Request& /*request*/, Measures& /*measures*/) const override {}

 private:
  const Fabric& fabric_;
  int free_;
};

class Simulation {
 public:
  Simulation(const Fabric& fabric, Player& player, const std::vector<Request>& stream, Waiting waiting)
      : fabric_(fabric), player_(player), stream_(stream), waiting_(waiting) {}

  Measures run() {
    for (const Request& request : stream_) {
      finish_until(request.arrival);
      arrive(request);
    }
    finish_until(kWarmUp + kDay);
    for (const Request* request : queue_) {
      if (measured(*request)) measures_.wait_minutes += kWarmUp + kDay - request->arrival;
    }
    return measures_;
  }

 private:
  using Departure = std::pair<double, int>;  // when, request

  [[nodiscard]] static bool measured(const Request& request) { return request.arrival >= kWarmUp; }

  void arrive(const Request& request) {
    if (measured(request)) {
      ++measures_.offered;
      if (cores_of(fabric_, request) <= player_.free_cores()) ++measures_.room;
      measures_.offered_core_minutes += cores_of(fabric_, request) * request.lifetime;
    }
    if (try_start(request, request.arrival)) return;
    if (measured(request)) player_.note_loss(request, measures_);
    if (waiting_ == Waiting::queued) queue_.push_back(&request);
  }

  bool try_start(const Request& request, double now) {
    if (!player_.start(request, measured(request), measures_)) return false;
    departures_.emplace(now + request.lifetime, request.id);
    if (!measured(request)) return true;
    measures_.wait_minutes += now - request.arrival;
    if (now - request.arrival <= kPatience) {
      ++measures_.fitted;
      measures_.fitted_core_minutes += cores_of(fabric_, request) * request.lifetime;
    }
    return true;
  }

  void finish_until(double now) {
    while (!departures_.empty() && departures_.top().first <= now) {
      const auto [when, id] = departures_.top();
      departures_.pop();
      player_.finish(stream_[static_cast<std::size_t>(id)]);
      queue_.remove_if([this, at = when](const Request* request) { return try_start(*request, at); });
    }
  }

  const Fabric& fabric_;
  Player& player_;
  const std::vector<Request>& stream_;
  Waiting waiting_;
  Measures measures_;
  std::priority_queue<Departure, std::vector<Departure>, std::greater<>> departures_;
  std::list<const Request*> queue_;
};

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

}  // namespace

Measures& Measures::operator+=(const Measures& other) {
  offered += other.offered;
  fitted += other.fitted;
  refused += other.refused;
  missed += other.missed;
  room += other.room;
  offered_core_minutes += other.offered_core_minutes;
  fitted_core_minutes += other.fitted_core_minutes;
  wait_minutes += other.wait_minutes;
  hops += other.hops;
  pairs += other.pairs;
  with_nics += other.with_nics;
  aligned_nics += other.aligned_nics;
  alignable_nics += other.alignable_nics;
  return *this;
}

double Measures::fitted_share() const {
  return ratio(fitted, offered);
}
double Measures::room_share() const {
  return ratio(fitted, room);
}
double Measures::work_share() const {
  return ratio(fitted_core_minutes, offered_core_minutes);
}
double Measures::mean_hops() const {
  return ratio(hops, pairs);
}
double Measures::aligned_share() const {
  return ratio(aligned_nics, with_nics);
}
double Measures::mean_wait() const {
  return ratio(wait_minutes, offered);
}

Measures simulate(const Fabric& fabric, const Policy& policy, const std::vector<Request>& stream, Waiting waiting) {
  PolicyPlayer player(fabric, policy);
  return Simulation(fabric, player, stream, waiting).run();
}

Measures simulate_by_count(const Fabric& fabric, const std::vector<Request>& stream, Waiting waiting) {
  CountPlayer player(fabric);
  return Simulation(fabric, player, stream, waiting).run();
}

}  // namespace neuron::bench
