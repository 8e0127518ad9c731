#pragma once

#include <functional>
#include <string>

#include "pluginregistration/v1/api.grpc.pb.h"

namespace neuron::plugin::dra {

// What the kubelet said about our registration.
struct RegistrationNews {
  bool registered = false;
  std::string error;  // why not, foreign text made printable
};

// The kubelet's Registration service for a driver: says who we are and where claims are served, and passes on whether
// the kubelet took it. Answers at once.
class RegistrationService final : public pluginregistration::Registration::CallbackService {
 public:
  using Tell = std::function<void(RegistrationNews)>;  // on gRPC's threads; must not block

  // `endpoint`: path of the claims' socket, which must be served already. The versions are in the order of preference,
  // as the kubelet takes the first that it knows (docs/reference/kubelet.md#dra).
  RegistrationService(std::string driver, std::string endpoint, Tell tell)
      : driver_(std::move(driver)), endpoint_(std::move(endpoint)), tell_(std::move(tell)) {}

  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context,
                                    const pluginregistration::InfoRequest* request,
                                    pluginregistration::PluginInfo* response) override;
  grpc::ServerUnaryReactor* NotifyRegistrationStatus(grpc::CallbackServerContext* context,
                                                     const pluginregistration::RegistrationStatus* request,
                                                     pluginregistration::RegistrationStatusResponse* response) override;

 private:
  const std::string driver_;
  const std::string endpoint_;
  const Tell tell_;
};

}  // namespace neuron::plugin::dra
