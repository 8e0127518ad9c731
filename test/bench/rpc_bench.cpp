// Round trips over the unix socket: our Allocate and GetPreferredAllocation against an empty unary call on the same
// transport, taken in turns in one run. Prints medians, 99th percentiles and their ratios.
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

#include "plugin/list_gate.h"
#include "plugin/plugin_server.h"
#include "test/unit/plugin/views.h"

namespace neuron {
namespace {

using plugin::Resource;

// What any gRPC plugin costs before it does anything.
class EmptyService final : public v1beta1::DevicePlugin::CallbackService {
  grpc::ServerUnaryReactor* PreStartContainer(grpc::CallbackServerContext* context,
                                              const v1beta1::PreStartContainerRequest* /*request*/,
                                              v1beta1::PreStartContainerResponse* /*response*/) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

std::unique_ptr<v1beta1::DevicePlugin::Stub> connect(const std::string& socket) {
  return v1beta1::DevicePlugin::NewStub(grpc::CreateChannel("unix:" + socket, grpc::InsecureChannelCredentials()));
}

struct Timing {
  std::vector<double> microseconds;
  [[nodiscard]] double at(double part) {
    std::sort(microseconds.begin(), microseconds.end());
    return microseconds[static_cast<std::size_t>(part * static_cast<double>(microseconds.size() - 1))];
  }
};

void time_one(Timing& timing, const std::function<bool()>& call) {
  const auto start = std::chrono::steady_clock::now();
  if (!call()) {
    fmt::print(stderr, "a call failed\n");
    std::exit(1);
  }
  timing.microseconds.push_back(
      std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
}

int run(int rounds) {
  std::string directory = "/tmp/rpc-bench-XXXXXX";
  if (mkdtemp(directory.data()) == nullptr) return 1;
  EmptyService empty;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + directory + "/empty.sock", grpc::InsecureServerCredentials());
  builder.RegisterService(&empty);
  const auto floor_server = builder.BuildAndStart();
  const SystemClock clock;
  core::AdmissionMark mark = 0;
  plugin::AllocationDesk desk(
      {}, [&mark] { return ++mark; }, clock);
  const auto view = plugin::view_of("trn2.48xlarge");
  desk.set_view(view);
  plugin::ListGate gate(clock);
  const plugin::DevicePluginService::Hooks hooks{
      [](auto, auto) {}, [] {},       [&gate](auto resource, auto go) { return gate.hold(resource, std::move(go)); },
      [](auto) {},       [](auto) {}, {},
      [](auto) {}};
  auto server = plugin::PluginServer::start(Resource::neuron, directory, "neuron.sock", desk, hooks);
  if (!server) return 1;

  const auto floor = connect(directory + "/empty.sock");
  const auto ours = connect(directory + "/neuron.sock");
  v1beta1::PreferredAllocationRequest prefer;
  auto* wish = prefer.add_container_requests();
  for (const std::string& id : plugin::ids(*view, Resource::neuron)) wish->add_available_deviceids(id);
  wish->set_allocation_size(4);
  v1beta1::AllocateRequest allocate;
  auto* four = allocate.add_container_requests();
  for (const char* id : {"0", "1", "2", "3"}) four->add_devices_ids(id);

  Timing empty_time;
  Timing prefer_time;
  Timing allocate_time;
  for (int i = -rounds / 10; i < rounds; ++i) {
    if (i == 0) empty_time = prefer_time = allocate_time = Timing{};  // the start warmed up
    time_one(empty_time, [&] {
      grpc::ClientContext context;
      v1beta1::PreStartContainerResponse response;
      return floor->PreStartContainer(&context, {}, &response).ok();
    });
    time_one(prefer_time, [&] {
      grpc::ClientContext context;
      v1beta1::PreferredAllocationResponse response;
      return ours->GetPreferredAllocation(&context, prefer, &response).ok();
    });
    time_one(allocate_time, [&] {
      grpc::ClientContext context;
      v1beta1::AllocateResponse response;
      return ours->Allocate(&context, allocate, &response).ok();
    });
  }
  fmt::print("{:<24} {:>12} {:>8} {:>12} {:>8}\n", "call", "median us", "ratio", "p99 us", "ratio");
  const auto line = [&](const char* name, Timing& timing) {
    fmt::print("{:<24} {:>12.1f} {:>8.2f} {:>12.1f} {:>8.2f}\n", name, timing.at(0.5),
               timing.at(0.5) / empty_time.at(0.5), timing.at(0.99), timing.at(0.99) / empty_time.at(0.99));
  };
  line("empty unary call", empty_time);
  line("GetPreferredAllocation", prefer_time);
  line("Allocate", allocate_time);
  server->reset();
  floor_server->Shutdown();
  return 0;
}

}  // namespace
}  // namespace neuron

int main(int argc, char** argv) {
  return neuron::run(argc > 1 ? std::atoi(argv[1]) : 5000);
}
