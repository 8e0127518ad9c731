#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "deviceplugin/v1beta1/api.grpc.pb.h"

namespace neuron::bench {

// What any gRPC plugin costs before it does anything: a server on a unix socket of its own in a new directory below
// /tmp, and a client that calls it. It is the floor of what the kubelet waits for. One thread; aborts when it cannot
// be made or a call fails.
class EmptyCall {
 public:
  EmptyCall();
  ~EmptyCall();
  EmptyCall(const EmptyCall&) = delete;
  EmptyCall& operator=(const EmptyCall&) = delete;

  [[nodiscard]] double microseconds();  // of one round trip with empty messages

  // Round trip of `request` to a handler that answers with the first ids: what the messages of a preferred allocation
  // cost whoever chooses.
  [[nodiscard]] double microseconds(const v1beta1::PreferredAllocationRequest& request);

  [[nodiscard]] const std::string& directory() const { return directory_; }  // removed with it

 private:
  class Service;
  std::string directory_;
  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1beta1::DevicePlugin::Stub> stub_;
};

[[nodiscard]] std::unique_ptr<v1beta1::DevicePlugin::Stub> connect(const std::string& socket);

}  // namespace neuron::bench
