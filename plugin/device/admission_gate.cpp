#include "plugin/device/admission_gate.h"

#include <utility>

namespace neuron::plugin {

AdmissionGate::AdmissionGate(const Clock& clock, VersionSource version, std::function<void()> changed)
    : clock_(clock), version_(std::move(version)), changed_(std::move(changed)) {}

Admissions::Ticket AdmissionGate::keep(Continuation then) {
  waiting_.emplace(++last_ticket_, std::move(then));
  return last_ticket_;
}

std::vector<AdmissionGate::Continuation> AdmissionGate::take(const std::vector<Admissions::Ticket>& tickets) {
  std::vector<Continuation> ready;
  for (const Admissions::Ticket ticket : tickets) ready.push_back(std::move(waiting_.extract(ticket).mapped()));
  return ready;
}

void AdmissionGate::called() {
  const MutexLock lock(mutex_);
  admissions_.called(clock_.now());
}

void AdmissionGate::answer(model::Resource resource, Continuation then) {
  {
    const MutexLock lock(mutex_);
    if (!admissions_.begin_answer(last_ticket_ + 1, resource, clock_.now())) {
      keep(std::move(then));
      then = nullptr;
    }
  }
  if (then) return then();
  changed_();
}

void AdmissionGate::wait_for_checkpoint(model::Resource resource, Continuation then) {
  {
    const MutexLock lock(mutex_);
    admissions_.wait_for_checkpoint(keep(std::move(then)), resource, clock_.now());
  }
  changed_();
}

void AdmissionGate::answered(Admissions::Outcome outcome) {
  {
    const MutexLock lock(mutex_);
    admissions_.answered(outcome, version_(), clock_.now());
  }
  run_ready();
  changed_();
}

void AdmissionGate::open_stream(model::Resource resource, Continuation then) {
  Continuation start = [this, then = std::move(then)] {
    then();
    lists_sent();
  };
  {
    const MutexLock lock(mutex_);
    if (!admissions_.begin_stream(last_ticket_ + 1, resource, clock_.now())) {
      keep(std::move(start));
      start = nullptr;
    }
  }
  if (start) return start();
  changed_();
}

void AdmissionGate::list_offered() {
  const MutexLock lock(mutex_);
  admissions_.list_offered(clock_.now());
}

void AdmissionGate::release(model::Resource resource) {
  std::vector<Continuation> ready;
  {
    const MutexLock lock(mutex_);
    ready = take(admissions_.release(resource));
  }
  for (const Continuation& then : ready) then();
}

Admissions::Progress AdmissionGate::progress() const {
  const MutexLock lock(mutex_);
  return admissions_.progress(version_());
}

Admissions::Due AdmissionGate::due(const Admissions::Progress& before) {
  Admissions::Due due;
  std::vector<Continuation> ready;
  {
    const MutexLock lock(mutex_);
    due = admissions_.due(before, clock_.now());
    ready = take(due.begun);
  }
  for (const Continuation& then : ready) then();
  return due;
}

void AdmissionGate::lists_sent() {
  {
    const MutexLock lock(mutex_);
    admissions_.lists_sent();
  }
  run_ready();
}

void AdmissionGate::checkpoint_written() {
  {
    const MutexLock lock(mutex_);
    admissions_.checkpoint_written();
  }
  run_ready();
}

void AdmissionGate::kubelet_is_new() {
  {
    const MutexLock lock(mutex_);
    admissions_.kubelet_is_new();
  }
  run_ready();
}

void AdmissionGate::run_ready() {
  std::vector<Continuation> ready;
  {
    const MutexLock lock(mutex_);
    ready = take(admissions_.ready(clock_.now()));
  }
  for (const Continuation& then : ready) then();
}

void AdmissionGate::woke() {
  const MutexLock lock(mutex_);
  admissions_.woke(clock_.now());
}

void AdmissionGate::want_lists() {
  const MutexLock lock(mutex_);
  admissions_.want_lists(clock_.now());
}

void AdmissionGate::want_checkpoint() {
  const MutexLock lock(mutex_);
  admissions_.want_checkpoint(clock_.now());
}

void AdmissionGate::want_holders(std::chrono::milliseconds after) {
  const MutexLock lock(mutex_);
  admissions_.want_holders(clock_.now() + after);
}

void AdmissionGate::want_holders_by(std::chrono::milliseconds after) {
  const MutexLock lock(mutex_);
  admissions_.want_holders_by(clock_.now() + after);
}

void AdmissionGate::asking_holders() {
  const MutexLock lock(mutex_);
  admissions_.asking_holders();
}

std::optional<SteadyTime> AdmissionGate::next() const {
  const MutexLock lock(mutex_);
  return admissions_.next();
}

}  // namespace neuron::plugin
