#include "tools/neuron-sim/kubelet/plugin_client.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace neuron::sim {
namespace {

struct CodeName {
  grpc::StatusCode status;
  std::string_view go_name;
  ErrorCode code;
};

constexpr CodeName kCodes[] = {
    {grpc::CANCELLED, "Canceled", ErrorCode::unavailable},
    {grpc::UNKNOWN, "Unknown", ErrorCode::internal},
    {grpc::INVALID_ARGUMENT, "InvalidArgument", ErrorCode::invalid_argument},
    {grpc::DEADLINE_EXCEEDED, "DeadlineExceeded", ErrorCode::deadline_exceeded},
    {grpc::NOT_FOUND, "NotFound", ErrorCode::not_found},
    {grpc::ALREADY_EXISTS, "AlreadyExists", ErrorCode::failed_precondition},
    {grpc::PERMISSION_DENIED, "PermissionDenied", ErrorCode::permission_denied},
    {grpc::RESOURCE_EXHAUSTED, "ResourceExhausted", ErrorCode::unavailable},
    {grpc::FAILED_PRECONDITION, "FailedPrecondition", ErrorCode::failed_precondition},
    {grpc::ABORTED, "Aborted", ErrorCode::unavailable},
    {grpc::OUT_OF_RANGE, "OutOfRange", ErrorCode::invalid_argument},
    {grpc::UNIMPLEMENTED, "Unimplemented", ErrorCode::internal},
    {grpc::INTERNAL, "Internal", ErrorCode::internal},
    {grpc::UNAVAILABLE, "Unavailable", ErrorCode::unavailable},
    {grpc::DATA_LOSS, "DataLoss", ErrorCode::data_corrupt},
    {grpc::UNAUTHENTICATED, "Unauthenticated", ErrorCode::permission_denied},
};

constexpr int kMaxMessageBytes = 4 * 1024 * 1024;  // grpc-go's default, which the kubelet keeps
constexpr std::chrono::milliseconds kDialSlice{20};
constexpr std::chrono::seconds kPreStart{30};

std::shared_ptr<grpc::Channel> make_channel(const std::string& socket_path) {
  grpc::ChannelArguments arguments;
  arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, "localhost");
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);  // no state shared with an earlier client of this path
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 50);
  return grpc::CreateCustomChannel("unix:" + socket_path, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

Error error_from_status(const grpc::Status& status) {
  for (const CodeName& entry : kCodes) {
    if (entry.status == status.error_code()) {
      return make_error(entry.code,
                        fmt::format("rpc error: code = {} desc = {}", entry.go_name, status.error_message()));
    }
  }
  return make_error(ErrorCode::internal, "rpc error: desc = " + status.error_message());
}

PluginClient::Call::Call(PluginClient& client, std::unique_ptr<grpc::ClientContext> context)
    : client_(client), context_(std::move(context)) {
  MutexLock lock(client_.mutex_);
  if (client_.disconnected_) context_->TryCancel();
  client_.calls_.insert(context_.get());
}

PluginClient::Call::~Call() {
  MutexLock lock(client_.mutex_);
  client_.calls_.erase(context_.get());
}

PluginClient::PluginClient(std::string resource, std::string socket_path)
    : resource_(std::move(resource)),
      socket_path_(std::move(socket_path)),
      channel_(make_channel(socket_path_)),
      stub_(v1beta1::DevicePlugin::NewStub(channel_)) {}

Result<void> PluginClient::dial(std::chrono::milliseconds timeout, const std::atomic<bool>& stopping) {
  const auto deadline = std::chrono::system_clock::now() + timeout;
  while (!stopping && std::chrono::system_clock::now() < deadline) {
    if (channel_->WaitForConnected(std::min(deadline, std::chrono::system_clock::now() + kDialSlice))) return {};
  }
  return fail(ErrorCode::deadline_exceeded, "failed to dial device plugin: context deadline exceeded");
}

Result<PluginOptions> PluginClient::options(const grpc::ServerContext& register_call) {
  Call call(*this, grpc::ClientContext::FromServerContext(register_call));
  v1beta1::DevicePluginOptions answer;
  const grpc::Status status = stub_->GetDevicePluginOptions(call.context(), v1beta1::Empty(), &answer);
  if (!status.ok()) return fail(error_from_status(status).with_context("failed to get device plugin options"));
  return PluginOptions{answer.pre_start_required(), answer.get_preferred_allocation_available()};
}

grpc::Status PluginClient::watch(const std::function<void(const v1beta1::ListAndWatchResponse&)>& sink) {
  Call call(*this, std::make_unique<grpc::ClientContext>());
  const auto reader = stub_->ListAndWatch(call.context(), v1beta1::Empty());
  v1beta1::ListAndWatchResponse message;
  while (reader->Read(&message)) sink(message);
  call.context()->TryCancel();  // a message above the limit ends reading but not the stream: Finish would wait for it
  return reader->Finish();
}

Result<std::vector<std::string>> PluginClient::preferred(const std::vector<std::string>& available,
                                                         const std::vector<std::string>& must_include, int size) {
  v1beta1::PreferredAllocationRequest request;
  auto* container = request.add_container_requests();
  container->mutable_available_deviceids()->Assign(available.begin(), available.end());
  container->mutable_must_include_deviceids()->Assign(must_include.begin(), must_include.end());
  container->set_allocation_size(size);
  Call call(*this, std::make_unique<grpc::ClientContext>());
  v1beta1::PreferredAllocationResponse answer;
  const grpc::Status status = stub_->GetPreferredAllocation(call.context(), request, &answer);
  if (!status.ok()) {
    return fail(error_from_status(status).with_context("device plugin GetPreferredAllocation rpc failed with err"));
  }
  if (answer.container_responses().empty()) return std::vector<std::string>();
  const auto& ids = answer.container_responses(0).deviceids();
  return std::vector<std::string>(ids.begin(), ids.end());
}

Result<v1beta1::ContainerAllocateResponse> PluginClient::allocate(const std::vector<std::string>& ids) {
  v1beta1::AllocateRequest request;
  request.add_container_requests()->mutable_devices_ids()->Assign(ids.begin(), ids.end());
  Call call(*this, std::make_unique<grpc::ClientContext>());
  v1beta1::AllocateResponse answer;
  const grpc::Status status = stub_->Allocate(call.context(), request, &answer);
  if (!status.ok()) return fail(error_from_status(status));
  if (answer.container_responses().empty()) {
    return fail(ErrorCode::internal, "no containers return in allocation response");
  }
  return answer.container_responses(0);
}

Result<void> PluginClient::pre_start(const std::vector<std::string>& ids) {
  v1beta1::PreStartContainerRequest request;
  request.mutable_devices_ids()->Assign(ids.begin(), ids.end());
  Call call(*this, std::make_unique<grpc::ClientContext>());
  call.context()->set_deadline(std::chrono::system_clock::now() + kPreStart);
  v1beta1::PreStartContainerResponse answer;
  const grpc::Status status = stub_->PreStartContainer(call.context(), request, &answer);
  if (status.ok()) return {};
  return fail(error_from_status(status).with_context("device plugin PreStartContainer rpc failed with err"));
}

void PluginClient::disconnect() {
  MutexLock lock(mutex_);
  disconnected_ = true;
  for (grpc::ClientContext* context : calls_) context->TryCancel();
}

}  // namespace neuron::sim
