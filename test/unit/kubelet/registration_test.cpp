#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "test/unit/kubelet/test_plugin.h"

namespace neuron::sim::test {
namespace {

using ::testing::HasSubstr;
constexpr const char* kResource = "example.com/chip";

FakeKubeletOptions quick_dial() {
  FakeKubeletOptions options;
  options.dial_timeout = std::chrono::milliseconds(50);
  return options;
}

FakeKubeletOptions with_fault(RegisterFault fault) {
  FakeKubeletOptions options;
  options.faults.registration = fault;
  return options;
}

TEST(RegistrationTest, CallsBackInsideRegisterAndThenFollowsTheList) {
  KubeletTest kubelet;
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(4));
  const grpc::Status status = plugin.register_plugin();
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(plugin.authority(), "localhost");  // the options call happened before Register answered
  ASSERT_TRUE(kubelet.reaches(kResource, 4));
  EXPECT_EQ(kubelet->capacity(kResource), 4);
  EXPECT_EQ(kubelet->registrations(kResource), 1);
  plugin.set_devices({{"0"}, {"1", false}, {"2"}});
  ASSERT_TRUE(kubelet.reaches(kResource, 2));
  EXPECT_EQ(kubelet->resource_view(kResource).unhealthy, IdSet{"1"});
  EXPECT_EQ(kubelet->capacity(kResource), 3);
}

TEST(RegistrationTest, RefusesAnotherVersion) {
  KubeletTest kubelet;
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(1));
  EXPECT_THAT(plugin.register_plugin("v1alpha").error_message(),
              HasSubstr("requested API version \"v1alpha\" is not supported by kubelet"));
  EXPECT_EQ(kubelet->registrations(kResource), 0);
}

TEST(RegistrationTest, RefusesNamesThatAreNoExtendedResource) {
  KubeletTest kubelet;
  for (const std::string name :
       {"chip", "kubernetes.io/chip", "example.com/", "requests.example.com/chip", "example.com/a b", "/chip"}) {
    TestPlugin plugin(*kubelet, name, "chip.sock", numbered_devices(1));
    EXPECT_THAT(plugin.register_plugin().error_message(), HasSubstr("is invalid")) << name;
  }
}

TEST(RegistrationTest, FailsWhenThePluginDoesNotServe) {
  KubeletTest kubelet(quick_dial());
  { TestPlugin gone(*kubelet, kResource, "gone.sock", {}); }
  TestPlugin plugin(*kubelet, kResource, "other.sock", {});
  const auto channel = grpc::CreateChannel("unix:" + kubelet->kubelet_socket(), grpc::InsecureChannelCredentials());
  v1beta1::RegisterRequest request;
  request.set_version("v1beta1");
  request.set_endpoint("gone.sock");
  request.set_resource_name(kResource);
  v1beta1::Empty answer;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  EXPECT_THAT(v1beta1::Registration::NewStub(channel)->Register(&context, request, &answer).error_message(),
              HasSubstr("failed to dial device plugin"));
}

TEST(RegistrationTest, ReturnsTheErrorOfTheOptionsCall) {
  KubeletTest kubelet;
  TestPlugin::Behaviour behaviour;
  behaviour.on_options = [] { return grpc::Status(grpc::INTERNAL, "no options today"); };
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(1), behaviour);
  EXPECT_THAT(plugin.register_plugin().error_message(),
              HasSubstr("failed to get device plugin options: rpc error: code = Internal desc = no options today"));
}

TEST(RegistrationTest, StartWipesSocketsOnly) {
  const TempDir dir;
  const std::string plugins = dir.path() + "/device-plugins";
  std::filesystem::create_directories(plugins);
  std::ofstream(plugins + "/notes") << "stays";
  ASSERT_TRUE(ClosingSocket::open(plugins + "/live.sock").has_value());
  const auto live = ClosingSocket::open(plugins + "/live.sock");
  ASSERT_TRUE(live.has_value());
  const auto kubelet = FakeKubelet::start(dir.path());
  ASSERT_TRUE(kubelet.has_value()) << kubelet.error().message;
  EXPECT_FALSE(std::filesystem::exists(plugins + "/live.sock"));
  EXPECT_TRUE(std::filesystem::exists(plugins + "/notes"));
}

TEST(RegistrationTest, RefusesToStartBesideAnotherKubelet) {
  const TempDir dir;
  const auto first = FakeKubelet::start(dir.path());
  ASSERT_TRUE(first.has_value());
  TestPlugin plugin(**first, kResource, "chip.sock", numbered_devices(2));
  const auto second = FakeKubelet::start(dir.path());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, ErrorCode::failed_precondition);
  EXPECT_TRUE(plugin.register_plugin().ok());  // its socket was not wiped
}

TEST(RegistrationTest, NeverRetriesAnEndedStreamAndForgetsAfterFiveMinutes) {
  KubeletTest kubelet;
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(4));
  ASSERT_TRUE(plugin.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kResource, 4));
  plugin.end_streams();
  ASSERT_TRUE(kubelet.reaches(kResource, 0));
  EXPECT_EQ(kubelet->capacity(kResource), 4);
  EXPECT_FALSE(kubelet->resource_view(kResource).connected);
  kubelet->advance(std::chrono::minutes(4));
  EXPECT_EQ(kubelet->capacity(kResource), 4);
  kubelet->advance(std::chrono::minutes(1));
  EXPECT_EQ(kubelet->capacity(kResource), 0);
  EXPECT_TRUE(kubelet->resources().contains(kResource));  // "0" in the node status for ever
  EXPECT_TRUE(plugin.wait_for([&] { return plugin.open_streams() == 0; }));
  ASSERT_TRUE(plugin.register_plugin().ok());
  EXPECT_TRUE(kubelet.reaches(kResource, 4));
}

TEST(RegistrationTest, TheEndOfTheOldStreamDropsTheNewClient) {
  KubeletTest kubelet;
  TestPlugin old_instance(*kubelet, kResource, "old.sock", numbered_devices(4));
  ASSERT_TRUE(old_instance.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kResource, 4));
  TestPlugin new_instance(*kubelet, kResource, "new.sock", numbered_devices(3));
  ASSERT_TRUE(new_instance.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kResource, 3));
  EXPECT_EQ(old_instance.open_streams(), 1);  // not closed by the kubelet
  old_instance.end_streams();
  ASSERT_TRUE(new_instance.wait_for([&] { return new_instance.open_streams() == 0; }));
  ASSERT_TRUE(kubelet.reaches(kResource, 0));
  EXPECT_EQ(kubelet->capacity(kResource), 3);
  // The end of the new stream may in turn drop what registers meanwhile: a plugin has to try again.
  bool back = false;
  for (int tries = 0; tries < 4 && !back; ++tries) {
    back = new_instance.register_plugin().ok() && kubelet.reaches(kResource, 3);
  }
  EXPECT_TRUE(back);
}

TEST(RegistrationTest, TwoLiveStreamsReplaceEachOthersLists) {
  KubeletTest kubelet;
  TestPlugin first(*kubelet, kResource, "a.sock", numbered_devices(4));
  ASSERT_TRUE(first.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kResource, 4));
  TestPlugin second(*kubelet, kResource, "b.sock", numbered_devices(3));
  ASSERT_TRUE(second.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kResource, 3));
  first.set_devices(numbered_devices(7));
  EXPECT_TRUE(kubelet.reaches(kResource, 7));
}

TEST(RegistrationTest, AFailedReRegistrationUncouplesTheOldStream) {
  KubeletTest kubelet(quick_dial());
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(4));
  ASSERT_TRUE(plugin.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kResource, 4));
  {
    TestPlugin::Behaviour broken;
    broken.on_options = [] { return grpc::Status(grpc::INTERNAL, "broken"); };
    TestPlugin second(*kubelet, kResource, "broken.sock", {}, broken);
    EXPECT_FALSE(second.register_plugin().ok());
  }
  EXPECT_FALSE(kubelet->drop_client(kResource));  // no client of that name any more
  plugin.set_devices(numbered_devices(5));        // but its stream lives
  ASSERT_TRUE(kubelet.reaches(kResource, 5));
  plugin.end_streams();
  ASSERT_TRUE(plugin.wait_for([&] { return plugin.open_streams() == 0; }));
  EXPECT_EQ(kubelet->allocatable(kResource), 5);  // nobody marks its devices unhealthy
}

TEST(RegistrationTest, AMessageAboveFourMebibytesEndsTheStream) {
  KubeletTest kubelet;
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(4));
  ASSERT_TRUE(plugin.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kResource, 4));
  std::vector<TestDevice> many;
  for (int i = 0; i < 50'000; ++i) many.push_back({"device-" + std::string(80, 'x') + std::to_string(i)});
  plugin.set_devices(many);
  ASSERT_TRUE(kubelet.reaches(kResource, 0));
  EXPECT_EQ(kubelet->capacity(kResource), 4);
}

TEST(RegistrationTest, ACutClientIsLikeAnEndedStream) {
  KubeletTest kubelet;
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(4));
  ASSERT_TRUE(plugin.register_plugin().ok());
  ASSERT_TRUE(kubelet.reaches(kResource, 4));
  EXPECT_TRUE(kubelet->drop_client(kResource));
  EXPECT_TRUE(kubelet.reaches(kResource, 0));
  EXPECT_TRUE(plugin.wait_for([&] { return plugin.open_streams() == 0; }));
}

TEST(RegistrationFaultTest, AnswersAnErrorUntilHealed) {
  KubeletTest kubelet(with_fault(RegisterFault::error));
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(1));
  EXPECT_EQ(plugin.register_plugin().error_code(), grpc::UNKNOWN);
  ASSERT_TRUE(kubelet->set_faults({}).has_value());
  EXPECT_TRUE(plugin.register_plugin().ok());
}

TEST(RegistrationFaultTest, HangsUntilHealed) {
  KubeletTest kubelet(with_fault(RegisterFault::hangs));
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(1));
  grpc::Status status;
  std::thread caller([&] { status = plugin.register_plugin(); });
  ASSERT_TRUE(kubelet->set_faults({}).has_value());
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST(RegistrationFaultTest, AHangingRegisterEndsWithTheKubelet) {
  KubeletTest kubelet(with_fault(RegisterFault::hangs));
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(1));
  grpc::Status status;
  std::thread caller([&] { status = plugin.register_plugin(); });
  kubelet->stop();
  caller.join();
  EXPECT_FALSE(status.ok());
}

TEST(RegistrationFaultTest, ClosesConnections) {
  KubeletTest kubelet(with_fault(RegisterFault::closes));
  TestPlugin plugin(*kubelet, kResource, "chip.sock", numbered_devices(1));
  EXPECT_EQ(plugin.register_plugin().error_code(), grpc::UNAVAILABLE);
  ASSERT_TRUE(kubelet->set_faults({}).has_value());
  EXPECT_TRUE(plugin.register_plugin().ok());
}

}  // namespace
}  // namespace neuron::sim::test
