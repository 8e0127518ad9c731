#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "agent/base/clock.h"
#include "agent/model/allocation.h"
#include "agent/model/resource.h"
#include "plugin/device/units.h"
#include "plugin/kubelet/checkpoint.h"

namespace neuron::plugin {

// Notices that the kubelet no longer uses this agent for a resource though the stream is open. Another plugin that
// registers the same name replaces the kubelet's endpoint without notice; when it leaves, all devices of that name stay
// unhealthy and no plugin is asked for them (docs/reference/kubelet.md#end-of-a-watch). Any of three signs:
// - the kubelet's allocatable differs from the published list: in two consecutive answers, or in a single one after
//   another plugin's socket went away;
// - another plugin's socket went away, and the kubelet's answer proves nothing: a list sent later makes the devices
//   look healthy though the endpoint is dead, and a list without a healthy unit looks the same either way;
// - the kubelet's checkpoint shows a container with units that this process did not give: another plugin with the same
//   ids is asked for them, which no list shows.
// Plain bookkeeping on times and names; one thread.
class RegistrationCheck {
 public:
  using Listening = std::function<bool(const std::string& name)>;  // a process serves that socket; must not block

  // A resource that the kubelet has registered for this agent.
  struct Registered {
    model::Resource resource{};
    SteadyTime registered_at{};
    SteadyTime published_at{};  // when `units` were given to the stream
    UnitListPtr units;          // never null
  };
  struct Lost {
    model::Resource resource{};
    std::string why;  // the evidence in words, with the sockets of other plugins
    int times = 1;    // in a row, less than kCalm apart; more than 1: another plugin runs and registers it as well
  };

  // An answer counts only for what was published and registered at least this long before the question.
  static constexpr std::chrono::milliseconds kSettled{1500};
  static constexpr std::chrono::milliseconds kSoon{1000};  // the next question after something was seen
  // One resource is reported lost again after kFirstPause at the earliest, doubling up to kLongestPause; after kCalm
  // without a loss it starts over.
  static constexpr std::chrono::seconds kFirstPause{5};
  static constexpr std::chrono::seconds kLongestPause{300};
  static constexpr std::chrono::minutes kCalm{10};
  // An entry of the checkpoint may be of an answer so much older than the checkpoint read before: other plugins of the
  // same container may have taken long. Of a predecessor's answers as well, after the first registration.
  static constexpr std::chrono::seconds kAnswerLasts{60};
  static constexpr std::chrono::seconds kPredecessor{5};

  // `pace`: how often to ask when nothing happens.
  RegistrationCheck(std::chrono::milliseconds pace, Listening listening);

  // The socket of another plugin, of whatever resource, was seen or is gone.
  void other_appeared(const std::string& name, SteadyTime now);
  void other_vanished(const std::string& name, SteadyTime now);

  // True: ask the kubelet now, then call answered(). Looks which of the others still listen.
  [[nodiscard]] bool due(SteadyTime now);
  [[nodiscard]] std::optional<SteadyTime> next() const;  // when to call due() again; nullopt while an answer is awaited

  // Returns the resources to register again. `allocatable`: an error proves nothing about a list. `registered`: all
  // resources registered now; one that was registered or published later than kSettled before `asked_at` waits for the
  // next answer.
  [[nodiscard]] std::vector<Lost> answered(SteadyTime asked_at, const Result<model::Allocatable>& allocatable,
                                           const std::vector<Registered>& registered, SteadyTime now);

  // When this process last gave that unit in an Allocate; nullopt: never.
  using GivenAt = std::function<std::optional<SteadyTime>(model::Resource, const std::string& id)>;
  // To be called with each checkpoint that was read; the first shows the holdings from before. Returns the resources to
  // register again, as answered() does.
  [[nodiscard]] std::vector<Lost> written(const Checkpoint& checkpoint, const std::vector<Registered>& registered,
                                          const GivenAt& given_at, SteadyTime now);

 private:
  using Entry = std::tuple<std::string, std::string, std::string>;  // pod's uid, container, resource
  struct Other {
    SteadyTime appeared_at{};
    SteadyTime seen_at{};  // last known to listen
    std::optional<SteadyTime> gone_at;
  };
  struct Record {  // of one resource
    std::optional<SteadyTime> differs_since;
    std::optional<SteadyTime> lost_at;
    std::optional<SteadyTime> served_since;  // first registered by this process
    int times = 0;
    std::chrono::milliseconds pause = kFirstPause;
  };

  void ask_by(SteadyTime at);
  [[nodiscard]] bool other_gone_since(const Registered& one) const;
  [[nodiscard]] bool lost_unseen(const Registered& one, bool answer_missing) const;
  [[nodiscard]] bool differs(const Registered& one, const model::Allocatable& allocatable, SteadyTime asked_at);
  [[nodiscard]] std::string names_of_others() const;
  // nullopt: too soon after the last time.
  [[nodiscard]] std::optional<Lost> lose(model::Resource resource, const std::string& why, SteadyTime now);

  const std::chrono::milliseconds pace_;
  const Listening listening_;
  std::optional<SteadyTime> ask_at_;
  bool asking_ = false;
  std::map<std::string, Other> others_;  // by socket name
  std::map<model::Resource, Record> records_;
  holdings::CheckpointVersion version_ = 0;  // of the checkpoint read last
  SteadyTime read_at_{};                     // and when
  std::set<Entry> entries_;                  // in it
};

}  // namespace neuron::plugin
