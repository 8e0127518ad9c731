#include "plugin/device/kubelet_link.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <fstream>

#include "agent/base/mutex.h"
#include "plugin/kubelet/socket_file.h"
#include "podresources/v1/api.grpc.pb.h"
#include "test/unit/plugin/service_parts.h"

namespace neuron::plugin {
namespace {

using model::Resource;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// The real link; the kubelet, where there is one, is a stand-in with servers of its own.
struct KubeletLinkTest : ServicePartsTest {
  Workers workers;
  BoundedCalls directory_calls{workers};
  BoundedCalls pod_resources_calls{workers};
  std::optional<KubeletLink> link;
  std::vector<Event> kept;  // taken from the queue and not yet asked for

  void SetUp() override {
    ServicePartsTest::SetUp();
    std::filesystem::create_directory(plugins);
    link.emplace(KubeletLink::Places{plugins, directory_calls, pod_resources, pod_resources_calls}, "1-a", parts());
  }
  void TearDown() override {
    link.reset();
    ServicePartsTest::TearDown();
  }
  // The oldest event of this kind; nullopt when none comes in time.
  template <typename Kind>
  std::optional<Kind> wait_for() {
    const auto until = clock.now() + kDeadline;
    for (;;) {
      for (Event& event : events->take()) kept.push_back(std::move(event));
      const auto is_it = [](const Event& event) { return std::holds_alternative<Kind>(event); };
      if (const auto found = std::find_if(kept.begin(), kept.end(), is_it); found != kept.end()) {
        Kind event = std::get<Kind>(std::move(*found));
        kept.erase(found);
        return event;
      }
      const auto left = std::chrono::ceil<milliseconds>(until - clock.now());
      pollfd wake{events->fd(), POLLIN, 0};
      if (left.count() <= 0 || ::poll(&wake, 1, static_cast<int>(left.count())) == 0) return std::nullopt;
    }
  }
  [[nodiscard]] std::optional<RegisterDone> registering(Resource resource, const std::string& endpoint) {
    link->start_registration(resource, endpoint);
    return wait_for<RegisterDone>();
  }
  // One device, served, registered and seen by the kubelet.
  [[nodiscard]] std::unique_ptr<ResourceServer> registered_device() {
    scan();
    auto server = link->serve(Resource::neuron);
    if (!server) return nullptr;
    (*server)->publish(std::make_shared<const UnitList>(*allocations.unit_list(Resource::neuron)));
    const auto done = registering(Resource::neuron, (*server)->endpoint());
    if (!done || done->error || !kubelet_has(1)) return nullptr;
    return *std::move(server);
  }
};

TEST_F(KubeletLinkTest, ARegistrationIsAcceptedAndTheListIsWatched) {
  start_kubelet();
  scan();
  const auto server = link->serve(Resource::neuron);
  ASSERT_TRUE(server) << server.error().message;
  const std::string endpoint = (*server)->endpoint();
  (*server)->publish(std::make_shared<const UnitList>(*allocations.unit_list(Resource::neuron)));
  const auto done = registering(Resource::neuron, endpoint);
  ASSERT_TRUE(done);
  EXPECT_FALSE(done->error) << done->error->message;
  EXPECT_EQ(done->resource, Resource::neuron);
  EXPECT_EQ(done->endpoint, endpoint);
  EXPECT_TRUE(kubelet_has(1));
  EXPECT_EQ((*server)->watchers(), 1U);
}

TEST_F(KubeletLinkTest, TheKubeletsRefusalIsTheError) {
  start_kubelet({.registration = fakes::RegisterFault::error});
  const auto done = registering(Resource::neuron, "a.sock");
  ASSERT_TRUE(done && done->error);
  EXPECT_EQ(done->endpoint, "a.sock");
  EXPECT_THAT(done->error->message, AllOf(StartsWith("registering aws.amazon.com/neuron: "),
                                          HasSubstr("registration refused by a simulated fault")));
}

TEST_F(KubeletLinkTest, AnEndpointThatTheKubeletCannotDialIsRefused) {
  start_kubelet();
  const auto done = registering(Resource::efa, "nobody.sock");
  ASSERT_TRUE(done && done->error);
  EXPECT_EQ(done->resource, Resource::efa);
  EXPECT_THAT(done->error->message, HasSubstr("failed to dial device plugin"));
}

TEST_F(KubeletLinkTest, AKubeletThatClosesEveryConnectionIsUnavailable) {
  start_kubelet({.registration = fakes::RegisterFault::closes});
  const auto done = registering(Resource::neuron, "a.sock");
  ASSERT_TRUE(done && done->error);
  EXPECT_EQ(done->error->code, ErrorCode::unavailable);
}

TEST_F(KubeletLinkTest, WithoutAKubeletEveryAnswerIsUnavailable) {
  const auto done = registering(Resource::neuron, "a.sock");
  ASSERT_TRUE(done && done->error);
  EXPECT_EQ(done->error->code, ErrorCode::unavailable);
  link->ask_holders(clock.now());
  const auto holders = wait_for<HoldersListed>();
  ASSERT_TRUE(holders && !holders->answer);
  EXPECT_EQ(holders->answer.error().code, ErrorCode::unavailable);
  link->ask_allocatable(clock.now());
  const auto allocatable = wait_for<AllocatableListed>();
  ASSERT_TRUE(allocatable && !allocatable->answer);
  EXPECT_EQ(allocatable->answer.error().code, ErrorCode::unavailable);
}

TEST_F(KubeletLinkTest, AKubeletThatComesLaterIsReached) {
  const auto failed = registering(Resource::neuron, "a.sock");
  ASSERT_TRUE(failed && failed->error);
  start_kubelet();
  EXPECT_TRUE(registered_device());
}

TEST_F(KubeletLinkTest, AllocatableIsWhatTheKubeletHas) {
  start_kubelet();
  const auto server = registered_device();
  ASSERT_TRUE(server);
  const SteadyTime asked_at = clock.now();
  link->ask_allocatable(asked_at);
  const auto listed = wait_for<AllocatableListed>();
  ASSERT_TRUE(listed && listed->answer);
  EXPECT_EQ(listed->asked_at, asked_at);
  EXPECT_EQ(*listed->answer, (model::Allocatable{{kNeuron, {"0"}}}));
}

TEST_F(KubeletLinkTest, HoldersAreThePodsThatTheKubeletShows) {
  start_kubelet();
  const auto server = registered_device();
  ASSERT_TRUE(server);
  admissions.checkpoint_written();  // for the list: an Allocate may begin
  ASSERT_TRUE(kubelet->admit({"train", "ml", {{.name = "main", .requests = {{kNeuron, 1}}}}}));
  const SteadyTime asked_at = clock.now();
  link->ask_holders(asked_at);
  const auto listed = wait_for<HoldersListed>();
  ASSERT_TRUE(listed && listed->answer);
  EXPECT_EQ(listed->asked_at, asked_at);
  EXPECT_THAT(*listed->answer, ElementsAre(model::Allocation{"ml", "train", "main", kNeuron, {"0"}}));
}

// Else it would reconnect to every kubelet that comes.
TEST_F(KubeletLinkTest, TheConnectionOfAFinishedListIsClosed) {
  const auto sockets = [] {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += std::filesystem::read_symlink(entry.path(), gone).string().starts_with("socket:") ? 1U : 0U;
    }
    return count;
  };
  start_kubelet();
  const std::size_t before = sockets();
  link->ask_holders(clock.now());
  ASSERT_TRUE(wait_for<HoldersListed>());
  const auto until = clock.now() + kDeadline;
  do {
    link->close_finished();
  } while (sockets() > before && clock.now() < until);
  EXPECT_LE(sockets(), before);
}

TEST_F(KubeletLinkTest, AnAnswerThatMakesNoSenseIsAnErrorAndNobodysHolding) {
  start_kubelet({.pod_resources = fakes::PodResourcesFault::garbage});
  link->ask_holders(clock.now());
  const auto holders = wait_for<HoldersListed>();
  ASSERT_TRUE(holders && !holders->answer);
  EXPECT_EQ(holders->answer.error().code, ErrorCode::data_corrupt);
  link->ask_allocatable(clock.now());
  const auto allocatable = wait_for<AllocatableListed>();
  ASSERT_TRUE(allocatable && !allocatable->answer);
  EXPECT_EQ(allocatable->answer.error().code, ErrorCode::data_corrupt);
}

TEST_F(KubeletLinkTest, PodResourcesThatHangEndWithTheDeadline) {
  start_kubelet({.pod_resources = fakes::PodResourcesFault::hangs});
  link->ask_holders(clock.now());
  link->ask_allocatable(clock.now());
  const auto holders = wait_for<HoldersListed>();
  ASSERT_TRUE(holders && !holders->answer);
  EXPECT_EQ(holders->answer.error().code, ErrorCode::deadline_exceeded);
  const auto allocatable = wait_for<AllocatableListed>();
  ASSERT_TRUE(allocatable && !allocatable->answer);
  EXPECT_EQ(allocatable->answer.error().code, ErrorCode::deadline_exceeded);
}

// With a deadline of its own, as the link's is long.
TEST_F(KubeletLinkTest, ARegisterThatHangsEndsWithTheDeadline) {
  start_kubelet({.registration = fakes::RegisterFault::hangs});
  KubeletRegistration registration(kubelet->kubelet_socket());
  registration.start(Resource::neuron, "a.sock", milliseconds{100}, [this](std::optional<Error> error) {
    events->post(RegisterDone{Resource::neuron, "", std::move(error)});
  });
  const auto done = wait_for<RegisterDone>();
  ASSERT_TRUE(done && done->error);
  EXPECT_EQ(done->error->code, ErrorCode::deadline_exceeded);
}

// What calls the kubelet, and how long the caller waits: written down, and answered with nothing.
class NotedCalls final : public v1beta1::Registration::Service, public v1::PodResourcesLister::Service {
 public:
  struct Call {
    v1beta1::RegisterRequest request{};
    std::chrono::system_clock::duration time_left{};
  };

  grpc::Status Register(grpc::ServerContext* context, const v1beta1::RegisterRequest* request,
                        v1beta1::Empty* /*answer*/) override {
    return note(*context, *request);
  }
  grpc::Status List(grpc::ServerContext* context, const v1::ListPodResourcesRequest* /*request*/,
                    v1::ListPodResourcesResponse* /*answer*/) override {
    return note(*context, {});
  }
  grpc::Status GetAllocatableResources(grpc::ServerContext* context, const v1::AllocatableResourcesRequest* /*request*/,
                                       v1::AllocatableResourcesResponse* /*answer*/) override {
    return note(*context, {});
  }
  [[nodiscard]] std::vector<Call> take() EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    return std::move(calls_);
  }

 private:
  grpc::Status note(const grpc::ServerContext& context, v1beta1::RegisterRequest request) EXCLUDES(mutex_) {
    const MutexLock lock(mutex_);
    calls_.push_back({std::move(request), context.deadline() - std::chrono::system_clock::now()});
    return grpc::Status::OK;
  }

  Mutex mutex_;
  std::vector<Call> calls_ GUARDED_BY(mutex_);
};

struct KubeletLinkCalls : KubeletLinkTest {
  static constexpr milliseconds kRounding{100};  // a deadline goes over the wire with few digits
  NotedCalls calls;
  std::unique_ptr<grpc::Server> server;

  void SetUp() override {
    KubeletLinkTest::SetUp();
    std::filesystem::create_directory(directory + "/pod-resources");
    grpc::ServerBuilder builder;
    builder.AddListeningPort("unix:" + plugins + "/kubelet.sock", grpc::InsecureServerCredentials());
    builder.AddListeningPort("unix:" + pod_resources, grpc::InsecureServerCredentials());
    builder.RegisterService(static_cast<v1beta1::Registration::Service*>(&calls));
    builder.RegisterService(static_cast<v1::PodResourcesLister::Service*>(&calls));
    server = builder.BuildAndStart();
    ASSERT_TRUE(server);
  }
};

TEST_F(KubeletLinkCalls, RegisterSaysWhatIsServedAndWhere) {
  for (const Resource resource : model::kAllResources) {
    const auto done = registering(resource, "a.sock");
    ASSERT_TRUE(done && !done->error);
    const auto noted = calls.take();
    ASSERT_EQ(noted.size(), 1U);
    const v1beta1::RegisterRequest& request = noted[0].request;
    EXPECT_EQ(request.version(), "v1beta1");
    EXPECT_EQ(request.endpoint(), "a.sock");
    EXPECT_EQ(request.resource_name(), model::resource_name(resource));
    EXPECT_TRUE(request.options().get_preferred_allocation_available());
    EXPECT_EQ(request.options().pre_start_required(), model::has_cores(resource));
    EXPECT_GT(noted[0].time_left, seconds{10}) << "the kubelet dials back for so long";
    EXPECT_LE(noted[0].time_left, seconds{15} + kRounding);
  }
}

TEST_F(KubeletLinkCalls, PodResourcesAreGivenTwoSeconds) {
  link->ask_holders(clock.now());
  ASSERT_TRUE(wait_for<HoldersListed>());
  link->ask_allocatable(clock.now());
  ASSERT_TRUE(wait_for<AllocatableListed>());
  const auto noted = calls.take();
  ASSERT_EQ(noted.size(), 2U);
  for (const NotedCalls::Call& call : noted) EXPECT_LE(call.time_left, seconds{2} + kRounding);
}

TEST_F(KubeletLinkTest, WhatIsInFlightHasEndedWhenTheLinkIsGone) {
  start_kubelet({fakes::RegisterFault::hangs, fakes::PodResourcesFault::hangs});
  link->start_registration(Resource::neuron, "a.sock");
  link->ask_holders(clock.now());
  link->ask_allocatable(clock.now());
  ASSERT_TRUE(kubelet->wait_for([&] { return kubelet->list_calls() == 1; }, kDeadline));
  const SteadyTime before = clock.now();
  link.reset();
  EXPECT_LT(clock.now() - before, kDeadline) << "Register alone would have gone on for 15 s";
  const std::vector<Event> ended = events->take();
  ASSERT_EQ(ended.size(), 3U) << "nothing comes later, when the queue may be gone";
  for (const Event& event : ended) {
    const auto* done = std::get_if<RegisterDone>(&event);
    const auto* holders = std::get_if<HoldersListed>(&event);
    const auto* allocatable = std::get_if<AllocatableListed>(&event);
    EXPECT_TRUE((done && done->error) || (holders && !holders->answer) || (allocatable && !allocatable->answer));
  }
  kubelet->stop();  // the kubelet's own answers come to nobody
  EXPECT_TRUE(events->take().empty());
}

TEST_F(KubeletLinkTest, AnEndpointIsNewEachTimeAndGoneWithItsServer) {
  auto first = link->serve(Resource::neuron);
  ASSERT_TRUE(first);
  const std::string name = (*first)->endpoint();
  EXPECT_TRUE(is_socket_of(name, "1-a"));
  EXPECT_TRUE(link->exists(name));
  EXPECT_TRUE(link->is_listening(name));
  first->reset();
  EXPECT_FALSE(link->exists(name));
  EXPECT_FALSE(link->is_listening(name));
  const auto second = link->serve(Resource::neuron);
  ASSERT_TRUE(second);
  EXPECT_NE((*second)->endpoint(), name);
}

TEST_F(KubeletLinkTest, OnlyWhatCanBeToldCountsAsNotListening) {
  std::ofstream(plugins + "/file.sock") << "no socket";
  EXPECT_TRUE(link->is_listening("file.sock")) << "cannot be told";
  EXPECT_FALSE(link->is_listening("missing.sock"));
  auto server = link->serve(Resource::neuron);
  ASSERT_TRUE(server);
  const std::string name = (*server)->endpoint();
  EXPECT_TRUE(link->is_listening(name));
  std::filesystem::rename(plugins + "/" + name, plugins + "/left.sock");  // as kill -9 would leave it
  server->reset();
  EXPECT_TRUE(link->exists("left.sock"));
  std::filesystem::create_symlink("loop.sock", plugins + "/loop.sock");
  EXPECT_TRUE(link->exists("loop.sock")) << "ELOOP is no evidence of absence";
  EXPECT_FALSE(link->is_listening("left.sock"));
}

TEST_F(KubeletLinkTest, WithoutTheDirectoryNothingIsServed) {
  std::filesystem::remove(plugins);
  const auto server = link->serve(Resource::neuron);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, ErrorCode::unavailable);
}

TEST_F(KubeletLinkTest, AKubeletIsToldFromItsSuccessor) {
  EXPECT_EQ(link->kubelet(), 0U);
  start_kubelet();
  const std::uint64_t first = link->kubelet();
  EXPECT_NE(first, 0U);
  EXPECT_EQ(link->kubelet(), first);
  kubelet->go_down();
  ASSERT_TRUE(kubelet->come_up());
  EXPECT_NE(link->kubelet(), 0U);
  EXPECT_NE(link->kubelet(), first);
}

}  // namespace
}  // namespace neuron::plugin
