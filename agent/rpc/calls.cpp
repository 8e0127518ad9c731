#include "agent/rpc/calls.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/base/parse.h"

namespace neuron::rpc {
namespace {

constexpr std::array<std::pair<ErrorCode, grpc::StatusCode>, 8> kTable = {{
    {ErrorCode::not_found, grpc::StatusCode::NOT_FOUND},
    {ErrorCode::permission_denied, grpc::StatusCode::PERMISSION_DENIED},
    {ErrorCode::invalid_argument, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::failed_precondition, grpc::StatusCode::FAILED_PRECONDITION},
    {ErrorCode::unavailable, grpc::StatusCode::UNAVAILABLE},
    {ErrorCode::data_corrupt, grpc::StatusCode::DATA_LOSS},
    {ErrorCode::deadline_exceeded, grpc::StatusCode::DEADLINE_EXCEEDED},
    {ErrorCode::internal, grpc::StatusCode::INTERNAL},
}};

}  // namespace

grpc::Status to_status(const Error& error) {
  for (const auto& [ours, theirs] : kTable) {
    if (ours == error.code) return {theirs, error.message};
  }
  return {grpc::StatusCode::INTERNAL, error.message};
}

Error to_error(const grpc::Status& status, std::string_view what) {
  constexpr std::size_t kMaxForeignText = 400;
  ErrorCode code = ErrorCode::internal;
  for (const auto& [ours, theirs] : kTable) {
    if (theirs == status.error_code()) code = ours;
  }
  return make_error(code, std::string(what) + ": " + printable(status.error_message(), kMaxForeignText) +
                              " (gRPC status " + std::to_string(status.error_code()) + ")");
}

CallKeeper::~CallKeeper() {
  std::vector<Entry> last;  // destroyed after the lock: channels close without it
  const MutexLock lock(mutex_);
  for (const Entry& entry : entries_) {
    if (!entry.done) entry.call->context.TryCancel();
  }
  while (!std::all_of(entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.done; })) {
    all_done_.wait(mutex_);
  }
  last.swap(entries_);
}

void CallKeeper::keep(std::unique_ptr<KeptCall> call) {
  drop_finished();
  const MutexLock lock(mutex_);
  entries_.push_back({std::move(call), false});
}

void CallKeeper::drop_finished() {
  std::vector<Entry> dropped;  // destroyed after the lock
  const MutexLock lock(mutex_);
  const auto done = std::stable_partition(entries_.begin(), entries_.end(), [](const Entry& one) { return !one.done; });
  std::move(done, entries_.end(), std::back_inserter(dropped));
  entries_.erase(done, entries_.end());
}

void CallKeeper::finished(const KeptCall* call) {
  const MutexLock lock(mutex_);
  for (Entry& entry : entries_) {
    if (entry.call.get() == call) entry.done = true;
  }
  all_done_.notify_all();
}

std::shared_ptr<grpc::Channel> fresh_channel(const std::string& socket, int max_receive_bytes) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(max_receive_bytes);
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel("unix:" + socket, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace neuron::rpc
