#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"
#include "agent/kube/limits.h"
#include "agent/kube/object_watch.h"
#include "plugin/dra/slices/pool_writer.h"

namespace neuron::plugin::dra {

// How far publishing is. Passive data.
struct PublishState {
  bool published = false;         // the newest attempt to store what is wanted succeeded
  std::string error;              // why not, or else what the watch complains of; "" = nothing
  std::size_t slices = 0;         // as published last
  std::size_t devices = 0;        // in them
  std::int64_t generation = 0;    // of the pool
  std::uint64_t writes = 0;       // creates, updates and deletes since the start
  std::uint64_t republished = 0;  // times that what had been stored was gone or changed, and was written again
  friend bool operator==(const PublishState&, const PublishState&) = default;
};

// Keeps the slices of this node's pool at the API server as they should be, for ever: writes when the pool changes (1 s
// after the first of several changes), and again within a second when the kubelet or anybody else deletes them. Writes
// nothing else: an idle node makes two small GETs every few minutes, and a list.
//
// set_pool(), look_again() and state() from any thread. run() blocks one thread and uses a second one for the watch.
class SlicePublisher final : public kube::WatchSink {
 public:
  struct Settings {
    std::string driver;
    std::string pool;  // its name; the node's as a rule
    std::string node;
    kube::WatchTimes watch{};
    std::function<void(const PublishState&)> tell{};  // after every attempt, from run()'s thread; must not block
  };
  static constexpr std::chrono::milliseconds kPoolPause{1000};   // several changes become one write
  static constexpr std::chrono::milliseconds kStoredPause{200};  // slices are deleted one by one
  // Somebody else who also writes these slices is written over once in this time, so that two that do not know of each
  // other do not keep the API server busy.
  static constexpr std::chrono::seconds kContestedPause{30};
  static constexpr std::chrono::milliseconds kFirstRetry{1000}, kLongestRetry{60'000};

  SlicePublisher(kube::Api& api, Settings settings, const Clock& clock);
  ~SlicePublisher() override = default;
  SlicePublisher(const SlicePublisher&) = delete;
  SlicePublisher& operator=(const SlicePublisher&) = delete;

  // What should be there; nothing is published before the first call. With what claims hold, from the first call on.
  void set_pool(Pool pool) EXCLUDES(mutex_);
  // The kubelet took the driver, and may have deleted slices before the watch tells.
  void look_again() EXCLUDES(mutex_);
  [[nodiscard]] PublishState state() const EXCLUDES(mutex_);

  // Until `stop` is requested; then a call that is under way still takes its time (ApiClient::close() ends it).
  void run(const std::stop_token& stop);

  // What run() does again and again: what is due, and how long until something is. For tests, without the watch.
  [[nodiscard]] std::chrono::milliseconds turn() EXCLUDES(mutex_);

  // Of the watch's thread.
  void on_reset() override EXCLUDES(mutex_);
  void on_upsert(const kube::ApiObject& object) override EXCLUDES(mutex_);
  void on_remove(const kube::ApiObject& object) override EXCLUDES(mutex_);
  void on_synced() override EXCLUDES(mutex_);
  void on_trouble(const Error& error) override EXCLUDES(mutex_);

 private:
  using PoolPtr = std::shared_ptr<const Pool>;

  // What a turn has to do. Passive data.
  struct Task {
    enum class Kind { nothing, look_at_server, write } kind = Kind::nothing;
    std::chrono::milliseconds pause{};  // nothing: until there may be something
    PoolPtr pool{};
    PoolWriter::Overwrite overwrite = PoolWriter::Overwrite::yes;
    bool is_repair = false;  // the pool is as it was when it was last written
  };
  [[nodiscard]] Task next_task() EXCLUDES(mutex_);
  [[nodiscard]] std::optional<SteadyTime> due_time() REQUIRES(mutex_);
  void wake() REQUIRES(mutex_);
  void look_at_server();
  void write(const Task& task);
  void finish(const Task& task, const Written& written) REQUIRES(mutex_);
  void fail_with(const Error& error) REQUIRES(mutex_);
  void say_left_out(const std::vector<std::string>& left_out);

  const Settings settings_;
  kube::Api& api_;
  const Clock& clock_;
  PoolWriter writer_;                  // of the thread in run()
  kube::Backoff backoff_;              // the same
  std::vector<std::string> left_out_;  // the same; said last

  mutable Mutex mutex_;
  std::condition_variable_any woken_;
  std::uint64_t wakes_ GUARDED_BY(mutex_) = 0;
  PoolPtr pool_ GUARDED_BY(mutex_);
  std::optional<SteadyTime> pool_due_ GUARDED_BY(mutex_);    // it differs from what was written: when to write
  std::optional<SteadyTime> stored_due_ GUARDED_BY(mutex_);  // the watch told something new: when to compare
  std::optional<SteadyTime> retry_due_ GUARDED_BY(mutex_);   // something failed, or has to wait
  bool look_ GUARDED_BY(mutex_) = false;
  bool server_is_due_ GUARDED_BY(mutex_) = false;
  bool refused_ GUARDED_BY(mutex_) = false;          // this pool is invalid; only another one, or much time, may help
  SteadyTime not_before_ GUARDED_BY(mutex_){};       // whatever is due waits until then
  SteadyTime contested_until_ GUARDED_BY(mutex_){};  // as of kContestedPause
  SliceVersions seen_ GUARDED_BY(mutex_);            // by the watch
  std::optional<SliceVersions> written_ GUARDED_BY(mutex_);  // when a pool was last written
  PoolPtr written_pool_ GUARDED_BY(mutex_);                  // that pool
  std::string watch_error_ GUARDED_BY(mutex_);
  PublishState state_ GUARDED_BY(mutex_);
};

}  // namespace neuron::plugin::dra
