#pragma once

#include <grpcpp/grpcpp.h>

#include <condition_variable>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace neuron::rpc
