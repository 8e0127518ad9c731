#include "plugin/device/admission_gate.h"

#include <utility>

namespace neuron::plugin {

bool Admissions::begin_answer(Ticket ticket, model::Resource resource, holdings::CheckpointVersion version,
                              SteadyTime now) {
  last_call_ = now;
  forget_late(now);
  const bool continues = open_version_ != 0 && (version == 0 || version == open_version_);
  const bool lists_first = lists_.overdue(now) && !continues && answering_ == 0 && !answers_wait() && !never_written_;
  if (!lists_first && sending_ == 0 && (on_the_way_ == 0 || never_written_)) {
    ++answering_;
    return true;
  }
  waiting_.push_back({ticket, resource, Kind::answer, now + kMaxWriteWait, now});
  waiting_.back().lists_first = lists_first;
  return false;
}

void Admissions::wait_for_checkpoint(Ticket ticket, model::Resource resource, SteadyTime earliest) {
  --answering_;
  waiting_.push_back({ticket, resource, Kind::conflicting_answer, earliest + kMaxWriteWait, earliest});
}

void Admissions::answered(Outcome outcome, holdings::CheckpointVersion version, SteadyTime now) {
  --answering_;
  last_call_ = now;
  ++answers_;
  open_version_ = outcome == Outcome::given ? version : 0;
  if (outcome == Outcome::refused) return;
  lists_.want(now);
  holders_.want(now + kAskAfterAnswer);
}

bool Admissions::begin_stream(Ticket ticket, model::Resource resource, SteadyTime now) {
  if (!open()) {
    ++sending_;
    return true;
  }
  waiting_.push_back({ticket, resource, Kind::stream, now + kMaxIdleWait});
  return false;
}

void Admissions::list_published(SteadyTime now) {
  ++on_the_way_;
  last_published_ = now;
  for (Waiting& one : waiting_) one.list_published = one.list_published || now >= one.earliest;
}

void Admissions::checkpoint_written() {
  never_written_ = false;
  on_the_way_ = std::max(on_the_way_ - 1, 0);
}

void Admissions::kubelet_is_new() {
  on_the_way_ = 0;
  open_version_ = 0;
}

void Admissions::want_checkpoint(SteadyTime now) {
  same_list_ = true;
  lists_.want(now);
}

void Admissions::want_holders_by(SteadyTime latest) {
  if (holders_.next().value_or(SteadyTime::max()) > latest) holders_.want(latest);
}

void Admissions::woke(SteadyTime now) {
  woke_at_ = now;
  lists_.woke(now);
  holders_.woke(now);
}

Admissions::Due Admissions::due(const Progress& before, SteadyTime now) {
  Due due;
  forget_late(now);
  if (before.answers == answers_ && before.version != open_version_) open_version_ = 0;
  due.begun = ready(now);
  // A pod that the kubelet refused half-way leaves no checkpoint. One has to be made, or its units stay held.
  if (open_version_ != 0 && now >= stalled_at()) {
    open_version_ = 0;
    want_checkpoint(now);
  }
  bool lists_first = false;
  for (Waiting& one : waiting_) lists_first |= std::exchange(one.lists_first, false);
  if (lists_first) lists_.drop();
  if (lists_first || lists_.due(now, last_call_, open())) {
    due.lists = true;
    due.same_list = std::exchange(same_list_, false);
  }
  for (Waiting& one : waiting_) {
    if (one.kind != Kind::conflicting_answer || one.list_wanted || now < one.earliest) continue;
    due.same_list = one.list_wanted = true;
  }
  if (due.lists || due.same_list) ++sending_;
  due.holders = holders_.due(now, last_call_, open());
  return due;
}

std::vector<Admissions::Ticket> Admissions::ready(SteadyTime now) {
  std::vector<Ticket> begun;
  std::erase_if(waiting_, [&](const Waiting& one) {
    if (!may_go(one, now)) return false;
    begin(one);
    begun.push_back(one.ticket);
    return true;
  });
  return begun;
}

std::vector<Admissions::Ticket> Admissions::release(model::Resource resource) {
  std::vector<Ticket> begun;
  std::erase_if(waiting_, [&](const Waiting& one) {
    if (one.resource != resource) return false;
    begin(one);
    begun.push_back(one.ticket);
    return true;
  });
  return begun;
}

bool Admissions::open() const {
  return answering_ > 0 || answers_wait() || open_version_ != 0;
}

bool Admissions::answers_wait() const {
  return std::any_of(waiting_.begin(), waiting_.end(), [](const Waiting& one) { return one.kind != Kind::stream; });
}

std::optional<SteadyTime> Admissions::next() const {
  std::optional<SteadyTime> next;
  const auto consider = [&next](const std::optional<SteadyTime>& at) {
    if (at && (!next || *at < *next)) next = at;
  };
  consider(lists_.next());
  consider(holders_.next());
  if (open_version_ != 0) consider(stalled_at());
  for (const Waiting& one : waiting_) {
    const bool wants_list = one.lists_first || (one.kind == Kind::conflicting_answer && !one.list_wanted);
    consider(wants_list ? one.earliest : one.until);
  }
  return next;
}

void Admissions::forget_late(SteadyTime now) {
  if (on_the_way_ == 0 || now < last_published_ + kMaxWriteWait) return;
  on_the_way_ = 0;
  never_written_ = true;
}

bool Admissions::may_go(const Waiting& one, SteadyTime now) const {
  if (now >= one.until) return true;
  if (one.kind == Kind::stream) return !open();
  const bool published = one.kind == Kind::answer || one.list_published;
  return !one.lists_first && sending_ == 0 && on_the_way_ == 0 && published;
}

void Admissions::begin(const Waiting& one) {
  ++(one.kind == Kind::stream ? sending_ : answering_);
}

AdmissionGate::AdmissionGate(const Clock& clock, VersionSource version, std::function<void()> changed)
    : clock_(clock), version_(std::move(version)), changed_(std::move(changed)) {}

template <typename Step>
void AdmissionGate::run(const Step& step) {
  std::vector<Continuation> ready;
  {
    const MutexLock lock(mutex_);
    for (const Admissions::Ticket ticket : step(admissions_, clock_.now())) {
      ready.push_back(std::move(waiting_.extract(ticket).mapped()));
    }
  }
  for (const Continuation& then : ready) then();
}

template <typename Begin>
void AdmissionGate::begin_or_wait(Continuation then, const Begin& begin) {
  {
    const MutexLock lock(mutex_);
    if (!begin(admissions_, ++last_ticket_, clock_.now())) {
      waiting_.emplace(last_ticket_, std::move(then));
      then = nullptr;
    }
  }
  if (then) return then();
  changed_();
}

void AdmissionGate::answer(model::Resource resource, Continuation then) {
  begin_or_wait(std::move(then), [this, resource](Admissions& all, Admissions::Ticket ticket, SteadyTime now) {
    return all.begin_answer(ticket, resource, all.lists_overdue(now) ? version_() : 0, now);
  });
}

void AdmissionGate::open_stream(model::Resource resource, Continuation then) {
  const auto start = [this, then = std::move(then)] {
    then();
    lists_sent();
  };
  begin_or_wait(start, [resource](Admissions& all, Admissions::Ticket ticket, SteadyTime now) {
    return all.begin_stream(ticket, resource, now);
  });
}

void AdmissionGate::wait_for_checkpoint(model::Resource resource, SteadyTime earliest, Continuation then) {
  {
    const MutexLock lock(mutex_);
    waiting_.emplace(++last_ticket_, std::move(then));
    admissions_.wait_for_checkpoint(last_ticket_, resource, std::max(earliest, clock_.now()));
  }
  changed_();
}

void AdmissionGate::answered(Admissions::Outcome outcome) {
  run([this, outcome](Admissions& all, SteadyTime now) {
    all.answered(outcome, version_(), now);
    return all.ready(now);
  });
  changed_();
}

void AdmissionGate::release(model::Resource resource) {
  run([resource](Admissions& all, SteadyTime /*now*/) { return all.release(resource); });
}

Admissions::Due AdmissionGate::due(const Admissions::Progress& before) {
  Admissions::Due due;
  run([&](Admissions& all, SteadyTime now) {
    due = all.due(before, now);
    return due.begun;
  });
  return due;
}

void AdmissionGate::lists_sent() {
  run([](Admissions& all, SteadyTime now) {
    all.lists_sent();
    return all.ready(now);
  });
}

void AdmissionGate::checkpoint_written() {
  run([](Admissions& all, SteadyTime now) {
    all.checkpoint_written();
    return all.ready(now);
  });
}

void AdmissionGate::kubelet_is_new() {
  run([](Admissions& all, SteadyTime now) {
    all.kubelet_is_new();
    return all.ready(now);
  });
}

}  // namespace neuron::plugin
