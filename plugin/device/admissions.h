#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "agent/base/clock.h"
#include "agent/holdings/ledger.h"
#include "agent/model/resource.h"
#include "plugin/device/idle_timer.h"

namespace neuron::plugin {

// Who may go first: answers to the kubelet, lists to the kubelet, or questions to it (docs/adr/0006-admission-gate.md).
//
// The kubelet admits one container at a time, asks for its resources one after another without saying for whom, and
// then writes its checkpoint. It writes it for every ListAndWatch message as well. So an answer is told to be the same
// container's as the one before by the checkpoint's version alone, and three rules follow:
// - no list goes out from the first answer of a container until its checkpoint is written: it would look like the end;
// - no answer begins while a list is on its way into the checkpoint, nor while one is being handed out;
// - List, by which the kubelet forgets a container that is being admitted, is asked when none is and nobody calls.
// None holds for ever: a list, a question and an answer go after a patience of their own.
//
// State and event in, what to do out: no lock, no clock, no I/O. `version` is that of the checkpoint, 0 if there is
// none.
class Admissions {
 public:
  using Ticket = std::uint64_t;  // of somebody who waits; chosen by the caller, each once

  // A list that was not written by then never will be: its kubelet is gone. Nor does an answer wait for longer.
  static constexpr std::chrono::milliseconds kWritePatience{1000};
  static constexpr std::chrono::milliseconds kIdlePatience{3000};  // of lists, of questions, and of new streams
  static constexpr std::chrono::milliseconds kListDistance{250};   // a new list after the last call
  static constexpr std::chrono::milliseconds kAskDistance{100};    // List after the last call
  static constexpr std::chrono::milliseconds kAskAfterAnswer{500};
  static constexpr std::chrono::milliseconds kStalled{1000};  // without a call, an admission is over: refused half-way

  // The kubelet has called, for whatever.
  void called(SteadyTime now) { last_call_ = now; }

  // An answer. True: it has begun. False: the ticket waits, and begins when ready() returns it.
  [[nodiscard]] bool begin_answer(Ticket ticket, model::Resource resource, SteadyTime now);
  // The answer that has begun waits, under a ticket, until a list that is offered from now on has been written.
  void doubt(Ticket ticket, model::Resource resource, SteadyTime now);
  // The answer that has begun is on its way. `version`: as it was for this answer. A refused one ends the admission.
  enum class Outcome { given, refused };
  void answered(Outcome outcome, holdings::CheckpointVersion version, SteadyTime now);

  // A new stream is about to show its first list. As begin_answer(); ended by handed().
  [[nodiscard]] bool begin_stream(Ticket ticket, model::Resource resource, SteadyTime now);
  void list_offered(SteadyTime now);  // one message will go to the kubelet
  void handed() { --handing_; }       // ends begin_stream() and Due::lists

  void checkpoint_written();  // once per write
  void kubelet_is_new();      // what was on its way to its predecessor does not arrive, whom it admitted is known to it

  // What the agent wants to do as soon as it may.
  void want_lists(SteadyTime now) { lists_.want(now); }  // if they have changed
  void want_checkpoint(SteadyTime now);                  // a list even if none has changed: it makes the kubelet write
  void want_holders(SteadyTime earliest) { holders_.want(earliest); }
  void want_holders_by(SteadyTime latest);  // unless they are asked for sooner anyway
  void asking_holders() { holders_.drop(); }
  void woke(SteadyTime now);  // the process did not run for a while: calls of the kubelet may lie unread

  // How things stood before checkpoint_written() told the writes so far. due() takes an admission for over only if the
  // checkpoint had been written by then and no answer was made since: so no container's write is left untold, to be
  // taken for that of a list.
  struct Look {
    holdings::CheckpointVersion version = 0;
    std::uint64_t answers = 0;
  };
  [[nodiscard]] Look look(holdings::CheckpointVersion version) const { return {version, answers_}; }

  struct Due {
    bool lists = false;        // hand out what has changed; end with handed()
    bool same_list = false;    // and if nothing has changed, one list as it was
    bool holders = false;      // ask List
    std::vector<Ticket> gone;  // these begin now
  };
  [[nodiscard]] Due due(const Look& before, SteadyTime now);
  // Whoever need not wait any more; they have begun.
  [[nodiscard]] std::vector<Ticket> ready(SteadyTime now);
  [[nodiscard]] std::vector<Ticket> release(model::Resource resource);  // its server is going away: all begin

  [[nodiscard]] bool open() const;  // a container is being admitted, as far as one can tell
  [[nodiscard]] bool answers_wait() const;
  [[nodiscard]] std::optional<SteadyTime> next() const;  // when to call due() again

 private:
  enum class Kind { answer, answer_in_doubt, stream };
  struct Waiting {
    Ticket ticket{};
    model::Resource resource{};
    Kind kind{};
    SteadyTime until{};
    bool list_offered = false;  // since it waits
  };

  void forget_late(SteadyTime now);
  [[nodiscard]] SteadyTime stalled_at() const { return std::max(last_call_, woke_at_) + kStalled; }  // while it is open
  [[nodiscard]] bool may_go(const Waiting& one, SteadyTime now) const;
  void begin(const Waiting& one);

  SteadyTime last_call_{};
  SteadyTime woke_at_{};
  int answering_ = 0;                             // answers that have begun
  std::uint64_t answers_ = 0;                     // so far, given or refused
  holdings::CheckpointVersion open_version_ = 0;  // of the newest that was given, until its admission is over
  int handing_ = 0;                               // lists are being handed out
  int on_the_way_ = 0;                            // lists offered and not yet written
  SteadyTime last_offered_{};
  bool never_written_ = false;  // a kubelet that keeps no checkpoint: waiting for it is in vain
  bool same_list_ = false;
  std::vector<Waiting> waiting_;  // oldest first
  IdleTimer lists_{kListDistance, kIdlePatience};
  IdleTimer holders_{kAskDistance, kIdlePatience};
};

}  // namespace neuron::plugin
