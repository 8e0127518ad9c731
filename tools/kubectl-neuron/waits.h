#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <list>
#include <string>
#include <thread>

#include "agent/base/clock.h"
#include "agent/base/mutex.h"

namespace neuron::fleet {

// Says for which command of kubectl this program waits, once one has taken `patience`: a sentence per run. The first
// call starts a thread. Any thread.
class Waits {
 public:
  using Say = std::function<void(const std::string& sentence)>;  // from that thread, or the caller of say()

  explicit Waits(Say say, std::chrono::milliseconds patience = std::chrono::seconds(3))
      : say_(std::move(say)), patience_(patience) {}
  ~Waits() { end(); }
  Waits(const Waits&) = delete;
  Waits& operator=(const Waits&) = delete;

  // A command that runs until this goes out of scope. Passive but for that.
  class Call {
   public:
    Call(Waits* waits, const std::string& command, std::chrono::milliseconds limit);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    friend class Waits;
    Waits* waits_;  // nullptr: nothing is said
    std::string command_;
    std::chrono::milliseconds limit_;
    SteadyTime since_;
    std::list<Call*>::iterator place_;
  };

  [[nodiscard]] std::chrono::milliseconds patience() const { return patience_; }
  // At once, where the caller itself has waited for so long.
  void say(const std::string& command, std::chrono::milliseconds limit) { say_(sentence_of(command, 0, limit)); }
  // Nothing is said from now on.
  void end() EXCLUDES(mutex_);

 private:
  static std::string sentence_of(const std::string& command, std::size_t others, std::chrono::milliseconds limit);
  void watch() EXCLUDES(mutex_);

  const Say say_;
  const std::chrono::milliseconds patience_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  std::list<Call*> running_ GUARDED_BY(mutex_);  // the oldest first
  bool is_over_ GUARDED_BY(mutex_) = false;      // it was said, or end() was called
  std::jthread watcher_ GUARDED_BY(mutex_);
};

// "60 s", "200 ms".
[[nodiscard]] std::string words_of(std::chrono::milliseconds time);

}  // namespace neuron::fleet
