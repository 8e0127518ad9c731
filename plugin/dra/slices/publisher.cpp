#include "plugin/dra/slices/publisher.h"

#include <malloc.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <thread>

namespace neuron::plugin::dra {

using std::chrono::milliseconds;

SlicePublisher::SlicePublisher(kube::Api& api, Settings settings, const Clock& clock)
    : settings_(std::move(settings)),
      api_(api),
      clock_(clock),
      writer_(api, settings_.driver, settings_.pool, settings_.node, clock),
      backoff_(kFirstRetry, kLongestRetry) {}

// ---- From other threads

void SlicePublisher::stored_changed() {
  if (!stored_due_) stored_due_ = clock_.now() + kStoredPause;
  loop_.wake();
}

void SlicePublisher::set_pool(Pool pool) {
  const MutexLock lock(mutex_);
  if (pool_ && *pool_ == pool) return;
  const milliseconds pause = pool_ ? kPoolPause : milliseconds(0);  // the first is published at once
  if (!pool_due_) pool_due_ = clock_.now() + pause;
  pool_ = std::make_shared<const Pool>(std::move(pool));
  loop_.wake();
}

void SlicePublisher::compare_again() {
  const MutexLock lock(mutex_);
  compare_ = true;
  loop_.wake();
}

PublishState SlicePublisher::state() const {
  const MutexLock lock(mutex_);
  PublishState state = state_;
  if (state.error.empty()) state.error = watch_error_;
  return state;
}

void SlicePublisher::on_reset() {
  const MutexLock lock(mutex_);
  seen_.clear();
}

void SlicePublisher::on_upsert(const kube::ApiObject& object) {
  const MutexLock lock(mutex_);
  seen_[object.name] = object.resource_version;
  stored_changed();
}

void SlicePublisher::on_remove(const kube::ApiObject& object) {
  const MutexLock lock(mutex_);
  seen_.erase(object.name);
  stored_changed();
}

void SlicePublisher::on_synced() {
  const MutexLock lock(mutex_);
  server_is_due_ = true;
  if (!watch_error_.empty()) spdlog::info("ResourceSlice watch restored");
  watch_error_.clear();
  stored_changed();
}

void SlicePublisher::on_trouble(const Error& error) {
  const MutexLock lock(mutex_);
  if (watch_error_ != error.message) spdlog::warn("ResourceSlice watch failed: {}", error.message);
  watch_error_ = error.message;
}

// ---- The publishing thread

milliseconds SlicePublisher::check_early() {
  const auto checked = writer_.check_server();
  const MutexLock lock(mutex_);
  if (!checked) {
    set_error(checked.error());
    return backoff_.next();
  }
  state_.error.clear();
  backoff_.reset();
  return PoolWriter::kFactsAge;
}

void SlicePublisher::run(const std::stop_token& stop) {
  backoff_.reset();
  const std::jthread watcher([this](const std::stop_token& inner) {
    const kube::WatchPlace place{kSlicesPath, "spec.driver=" + settings_.driver + ",spec.nodeName=" + settings_.node};
    kube::ObjectWatch(api_, place, *this, clock_).run(inner);
  });
  loop_.run(stop, [this] { return turn(); });
}

// When the next work is due, `now` if at once; nullopt: none is.
std::optional<SteadyTime> SlicePublisher::due_time(SteadyTime now) {
  if (!pool_) return std::nullopt;
  // Own writes come back through the watch, a little later.
  if (written_ && seen_ == *written_) stored_due_.reset();
  std::optional<SteadyTime> due = retry_due_;
  const auto sooner = [&](SteadyTime time) { due = due ? std::min(*due, time) : time; };
  if (pool_due_) sooner(*pool_due_);
  if (stored_due_ && written_ && !refused_) sooner(*stored_due_);
  if ((compare_ && !refused_) || server_is_due_) sooner(now);
  return due ? std::optional(std::max(*due, not_before_)) : std::nullopt;
}

SlicePublisher::Task SlicePublisher::next_task() {
  constexpr milliseconds kLongest = std::chrono::minutes(1);
  const MutexLock lock(mutex_);
  const SteadyTime now = clock_.now();
  const auto due = due_time(now);
  if (!due) return {.pause = kLongest};
  if (*due > now) return {.pause = std::min(std::chrono::ceil<milliseconds>(*due - now), kLongest)};
  const auto is_due = [&](const std::optional<SteadyTime>& time) { return time && *time <= now; };
  const bool stored_is_due = is_due(stored_due_) && written_ && !refused_;
  const bool has_to_write = is_due(pool_due_) || is_due(retry_due_) || stored_is_due || (compare_ && !refused_);
  server_is_due_ = false;
  if (!has_to_write) return {.kind = Task::Kind::check_server};
  Task task{.kind = Task::Kind::write, .pool = pool_};
  task.is_repair = written_pool_ == pool_;
  if (task.is_repair && now < contested_until_) task.overwrite = PoolWriter::Overwrite::no;
  compare_ = false;
  refused_ = false;
  pool_due_.reset();
  stored_due_.reset();
  retry_due_.reset();
  return task;
}

milliseconds SlicePublisher::turn() {
  const Task task = next_task();
  if (task.kind == Task::Kind::nothing) return task.pause;
  if (task.kind == Task::Kind::check_server) {
    check_server();
  } else {
    write(task);
  }
  return milliseconds(0);
}

// On an idle node, after a list of the watch: another version may take another shape.
void SlicePublisher::check_server() {
  const auto is_new = writer_.check_server();
  const MutexLock lock(mutex_);
  if (is_new) {
    compare_ = compare_ || *is_new;
    return;
  }
  // Published slices stay.
  if (watch_error_ != is_new.error().message)
    spdlog::warn("API server not checked for changes: {}", is_new.error().message);
  watch_error_ = is_new.error().message;
  server_is_due_ = true;
  not_before_ = clock_.now() + backoff_.next();
}

void SlicePublisher::write(const Task& task) {
  const auto written = writer_.write(*task.pool, task.overwrite);
  ::malloc_trim(0);  // a pool with cores takes megabytes as JSON
  if (written && written->left_out != left_out_) {
    for (const std::string& sentence : written->left_out) spdlog::warn("left out of slices: {}", sentence);
    left_out_ = written->left_out;
  }
  const MutexLock lock(mutex_);
  if (!written) return fail_with(written.error());
  backoff_.reset();
  finish(task, *written);
}

void SlicePublisher::finish(const Task& task, const Written& written) {
  if (written.overwrote && task.is_repair) {
    const std::string contested =
        "another writer changes ResourceSlices of driver " + settings_.driver + " on this node";
    if (state_.error != contested)
      spdlog::warn("ResourceSlices contested, overwriting at most every {1} s: {0}", contested,
                   kContestedPause.count());
    if (written.deferred) {
      state_.published = false;
      state_.error = contested;
      retry_due_ = contested_until_;
      not_before_ = clock_.now() + kPoolPause;
      return;
    }
    contested_until_ = clock_.now() + kContestedPause;
  }
  if (written.writes > 0) {
    spdlog::info("published slices={} devices={} generation={} writes={}", written.versions.size(), written.devices,
                 written.generation, written.writes);
  }
  written_ = written.versions;
  written_pool_ = task.pool;
  state_.published = true;
  state_.error.clear();
  state_.slices = written.versions.size();
  state_.devices = written.devices;
  state_.writes += written.writes;
}

void SlicePublisher::set_error(const Error& error) {
  if (state_.error != error.message) spdlog::error("slices not published: {}", error.message);
  state_.published = false;
  state_.error = error.message;
}

void SlicePublisher::fail_with(const Error& error) {
  refused_ = error.code == ErrorCode::invalid_argument;
  set_error(error);
  retry_due_ = clock_.now() + (refused_ ? milliseconds(PoolWriter::kTryAgain) : backoff_.next());
  if (!refused_) not_before_ = *retry_due_;
}

}  // namespace neuron::plugin::dra
