#include "plugin/device/admission_gate.h"

#include <utility>

namespace neuron::plugin {

AdmissionGate::AdmissionGate(const Clock& clock, VersionSource version, std::function<void()> changed)
    : clock_(clock), version_(std::move(version)), changed_(std::move(changed)) {}

Admissions::Ticket AdmissionGate::keep(Go go) {
  waiting_.emplace(++last_ticket_, std::move(go));
  return last_ticket_;
}

std::vector<AdmissionGate::Go> AdmissionGate::take(const std::vector<Admissions::Ticket>& tickets) {
  std::vector<Go> going;
  for (const Admissions::Ticket ticket : tickets) going.push_back(std::move(waiting_.extract(ticket).mapped()));
  return going;
}

void AdmissionGate::called() {
  const MutexLock lock(mutex_);
  admissions_.called(clock_.now());
}

void AdmissionGate::answer(model::Resource resource, Go go) {
  {
    const MutexLock lock(mutex_);
    if (!admissions_.begin_answer(last_ticket_ + 1, resource, clock_.now())) {
      keep(std::move(go));
      go = nullptr;
    }
  }
  if (go) return go();
  changed_();
}

void AdmissionGate::doubt(model::Resource resource, Go go) {
  {
    const MutexLock lock(mutex_);
    admissions_.doubt(keep(std::move(go)), resource, clock_.now());
    doubts_ = true;
  }
  changed_();
}

void AdmissionGate::answered(Admissions::Outcome outcome) {
  {
    const MutexLock lock(mutex_);
    admissions_.answered(outcome, version_(), clock_.now());
  }
  go_on();
  changed_();
}

void AdmissionGate::open_stream(model::Resource resource, Go go) {
  Go start = [this, go = std::move(go)] {
    go();
    handed();
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
  std::vector<Go> going;
  {
    const MutexLock lock(mutex_);
    going = take(admissions_.release(resource));
  }
  for (const Go& go : going) go();
}

Admissions::Look AdmissionGate::look() const {
  const MutexLock lock(mutex_);
  return admissions_.look(version_());
}

AdmissionGate::Due AdmissionGate::due(const Admissions::Look& before) {
  Due due;
  std::vector<Go> going;
  {
    const MutexLock lock(mutex_);
    const Admissions::Due all = admissions_.due(before, clock_.now());
    going = take(all.gone);
    due = {all.lists, all.same_list, std::exchange(doubts_, false), all.holders};
  }
  for (const Go& go : going) go();
  return due;
}

void AdmissionGate::handed() {
  {
    const MutexLock lock(mutex_);
    admissions_.handed();
  }
  go_on();
}

void AdmissionGate::checkpoint_written() {
  {
    const MutexLock lock(mutex_);
    admissions_.checkpoint_written();
  }
  go_on();
}

void AdmissionGate::kubelet_is_new() {
  {
    const MutexLock lock(mutex_);
    admissions_.kubelet_is_new();
  }
  go_on();
}

void AdmissionGate::go_on() {
  std::vector<Go> going;
  {
    const MutexLock lock(mutex_);
    going = take(admissions_.ready(clock_.now()));
  }
  for (const Go& go : going) go();
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
