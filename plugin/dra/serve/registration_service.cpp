#include "plugin/dra/serve/registration_service.h"

#include "agent/base/parse.h"

namespace neuron::plugin::dra {

grpc::ServerUnaryReactor* RegistrationService::GetInfo(grpc::CallbackServerContext* context,
                                                       const pluginregistration::InfoRequest* /*request*/,
                                                       pluginregistration::PluginInfo* response) {
  response->set_type("DRAPlugin");
  response->set_name(driver_);
  response->set_endpoint(endpoint_);
  for (const char* version : {"v1.DRAPlugin", "v1beta1.DRAPlugin", "v1alpha1.DRAResourceHealth"}) {
    response->add_supported_versions(version);
  }
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* RegistrationService::NotifyRegistrationStatus(
    grpc::CallbackServerContext* context, const pluginregistration::RegistrationStatus* request,
    pluginregistration::RegistrationStatusResponse* /*response*/) {
  constexpr std::size_t kMostWords = 500;
  tell_({request->plugin_registered(), printable(request->error(), kMostWords)});
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace neuron::plugin::dra
