#include "tools/neuron-sim/kubelet/fake_kubelet.h"

#include <utility>

namespace neuron::sim {

FakeKubelet::FakeKubelet(const std::string& dir, KubeletOptions options)
    : dir_(dir), options_(std::move(options)), manager_(options_, checkpoint_path()) {}

FakeKubelet::~FakeKubelet() {
  stop();
}

Result<std::unique_ptr<FakeKubelet>> FakeKubelet::start(const std::string& dir, KubeletOptions options) {
  std::unique_ptr<FakeKubelet> kubelet(new FakeKubelet(dir, std::move(options)));
  TRY(kubelet->come_up());
  return kubelet;
}

ResourceView FakeKubelet::resource_view(const std::string& resource) {
  const auto all = manager_.resources();
  const auto found = all.find(resource);
  return found == all.end() ? ResourceView{} : found->second;
}

int FakeKubelet::registrations(const std::string& resource) {
  MutexLock lock(servers_mutex_);
  return plugins_ ? plugins_->registrations(resource) : 0;
}

int FakeKubelet::list_calls() {
  MutexLock lock(servers_mutex_);
  return pod_resources_ ? pod_resources_->list_calls() : 0;
}

bool FakeKubelet::drop_client(const std::string& resource) {
  MutexLock lock(servers_mutex_);
  return plugins_ && plugins_->drop_client(resource);
}

Result<void> FakeKubelet::set_faults(const KubeletFaults& faults) {
  std::shared_ptr<PluginServer> plugins;
  std::shared_ptr<PodResourcesServer> pod_resources;
  {
    MutexLock lock(servers_mutex_);
    options_.faults = faults;
    plugins = plugins_;
    pod_resources = pod_resources_;
  }
  if (pod_resources) TRY(pod_resources->set_fault(faults.pod_resources));
  if (plugins) TRY(plugins->set_fault(faults.registration));
  return {};
}

void FakeKubelet::go_down() {
  std::shared_ptr<PluginServer> plugins;
  std::shared_ptr<PodResourcesServer> pod_resources;
  {
    MutexLock lock(servers_mutex_);
    plugins.swap(plugins_);
    pod_resources.swap(pod_resources_);
  }
  if (plugins) plugins->stop();
  if (pod_resources) pod_resources->stop();
  manager_.forget();
}

Result<void> FakeKubelet::come_up() {
  if (is_listening(kubelet_socket())) {
    return fail(ErrorCode::failed_precondition, "a kubelet answers on " + kubelet_socket() + "; stop it first");
  }
  manager_.restore();
  const auto pod_resources = std::make_shared<PodResourcesServer>(manager_, options_, dir_ + "/pod-resources");
  const auto plugins = std::make_shared<PluginServer>(manager_, options_, device_plugin_dir());
  {
    MutexLock lock(servers_mutex_);  // registrations may arrive as soon as the sockets are there
    pod_resources_ = pod_resources;
    plugins_ = plugins;
  }
  TRY(pod_resources->start());
  TRY(plugins->start());
  manager_.notify();
  return {};
}

Result<void> FakeKubelet::restart() {
  go_down();
  return come_up();
}

}  // namespace neuron::sim
