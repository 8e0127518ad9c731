#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/list_hub.h"
#include "agent/base/mutex.h"
#include "agent/base/result.h"

namespace neuron::rpc {

// The only mapping between ErrorCode and gRPC's codes. The message is kept.
[[nodiscard]] grpc::Status to_status(const Error& error);

// The inverse, for answers of a peer: `what` names peer and method. `status` must not be OK.
[[nodiscard]] Error to_error(const grpc::Status& status, std::string_view what);

// One asynchronous call with everything it needs to stay alive; derive to add stub and messages.
struct KeptCall {
  virtual ~KeptCall() = default;
  std::shared_ptr<grpc::Channel> channel;
  grpc::ClientContext context;
};

// The calls in flight of one client. A process must not lose its last gRPC channel on one of gRPC's own callback
// threads (the channel would wait for that very thread and abort, gRPC 1.51), so finished calls stay here until the
// client's own thread drops them. Until then their channels stay connected, and connect again when the server returns.
// `finished` from any thread, everything else from the client's.
class CallKeeper {
 public:
  CallKeeper() = default;
  ~CallKeeper() EXCLUDES(mutex_);  // cancels calls in flight and waits for their callbacks
  CallKeeper(const CallKeeper&) = delete;
  CallKeeper& operator=(const CallKeeper&) = delete;

  void keep(std::unique_ptr<KeptCall> call) EXCLUDES(mutex_);  // before it is started; drops finished ones
  void finished(const KeptCall* call) EXCLUDES(mutex_);        // the last thing a callback does
  void drop_finished() EXCLUDES(mutex_);                       // closes their channels

 private:
  struct Entry {
    std::unique_ptr<KeptCall> call;
    bool done = false;
  };
  Mutex mutex_;
  std::condition_variable_any all_done_;
  std::vector<Entry> entries_ GUARDED_BY(mutex_);
};

// A separate channel to a unix socket: shares no subchannel, and so no reconnect backoff, with an earlier one.
[[nodiscard]] std::shared_ptr<grpc::Channel> fresh_channel(const std::string& socket, int max_receive_bytes);

// One open server stream that shows a ListHub's newest list to its peer: one write in flight, one state pending that a
// newer one replaces, finished exactly once and never during a write. Owns itself until gRPC says it is done; the hub
// may hold it a little longer. `publish` and `stop` may come from any thread.
template <typename Response, typename List>
class ListStream final : public grpc::ServerWriteReactor<Response>, public ListSink<List> {
 public:
  using ListPtr = std::shared_ptr<const List>;
  using Convert = std::function<Response(const List&)>;
  enum class End { by_us, by_peer };
  using OnEnd = std::function<void(End)>;   // once, after the stream left the hub; any thread, must not block
  using OnPublish = std::function<void()>;  // once for each message that will go out; any thread, must not block

  // An open stream that shows nothing before it joins `hub`, which must outlive it. It is the reactor that the handler
  // gives to gRPC.
  [[nodiscard]] static std::shared_ptr<ListStream> open(ListHub<List>& hub, Convert convert, OnPublish on_publish,
                                                        OnEnd on_end) {
    std::shared_ptr<ListStream> stream(
        new ListStream(hub, std::move(convert), std::move(on_publish), std::move(on_end)));
    stream->self_ = stream;
    return stream;
  }

  // The hub's newest list from now on. Any thread, also when the peer has gone.
  static void join(const std::shared_ptr<ListStream>& stream) EXCLUDES(stream->mutex_) {
    stream->hub_.add(stream);
    const MutexLock lock(stream->mutex_);
    if (stream->done_) stream->hub_.remove(stream.get());
  }

  void publish(ListPtr list) override EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (ending_ || finished_) return;
    if (!pending_) on_publish_();
    pending_ = std::move(list);
    advance();
  }

  void stop() override EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    if (!ending_) end_ = End::by_us;
    ending_ = true;
    advance();
  }

  void OnWriteDone(bool ok) override EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    writing_ = false;
    if (!ok) ending_ = true;
    advance();
  }

  void OnCancel() override EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    ending_ = true;
    advance();
  }

  void OnDone() override {
    const std::shared_ptr<ListStream> last = std::move(self_);  // `this` lives until the end of this scope at least
    End end = End::by_peer;
    {
      const MutexLock lock(mutex_);
      end = end_;
      done_ = true;
    }
    hub_.remove(this);
    on_end_(end);
  }

 private:
  ListStream(ListHub<List>& hub, Convert convert, OnPublish on_publish, OnEnd on_end)
      : hub_(hub), convert_(std::move(convert)), on_publish_(std::move(on_publish)), on_end_(std::move(on_end)) {}

  // Starts the next possible step. gRPC delivers reactions later, so starting them under the own lock is safe.
  void advance() REQUIRES(mutex_) {
    if (writing_ || finished_) return;
    if (ending_) {
      finished_ = true;
      this->Finish(grpc::Status::OK);
    } else if (pending_) {
      message_ = convert_(*pending_);
      pending_.reset();
      writing_ = true;
      this->StartWrite(&message_);
    }
  }

  ListHub<List>& hub_;
  const Convert convert_;
  const OnPublish on_publish_;
  const OnEnd on_end_;
  std::shared_ptr<ListStream> self_;  // set before the stream is shared, cleared in OnDone

  Mutex mutex_;
  ListPtr pending_ GUARDED_BY(mutex_);
  Response message_ GUARDED_BY(mutex_);
  End end_ GUARDED_BY(mutex_) = End::by_peer;
  bool writing_ GUARDED_BY(mutex_) = false;
  bool ending_ GUARDED_BY(mutex_) = false;
  bool finished_ GUARDED_BY(mutex_) = false;
  bool done_ GUARDED_BY(mutex_) = false;  // gRPC has let go
};

}  // namespace neuron::rpc
