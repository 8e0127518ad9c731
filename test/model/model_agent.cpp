#include "test/model/model_agent.h"

#include <algorithm>

namespace neuron::check {
namespace {

using std::chrono::milliseconds;

// As in agent/daemon/supervisor.cpp and supervisor_publish.cpp, and --pod-resources-interval's default.
constexpr milliseconds kAskAfterAllocate{1000};
constexpr milliseconds kQuiet{250};
constexpr milliseconds kRpcDistance{100};
constexpr milliseconds kMostPatience{3000};
constexpr milliseconds kInterval{10000};

}  // namespace

struct ModelAgent::Served final : PluginSocket {
  ModelAgent& agent;
  plugin::Resource resource;
  std::string path;
  monitor::UnitListPtr last_list;

  Served(ModelAgent& owner, plugin::Resource of, std::string at) : agent(owner), resource(of), path(std::move(at)) {
    listen_at(path, *this);
  }
  ~Served() override { stop_listening(path); }

  Result<std::vector<std::string>> preferred(const std::vector<std::string>& available,
                                             const std::vector<std::string>& must_include, int size) override {
    return agent.desk_.prefer(resource, available, must_include, size);
  }

  Result<v1beta1::ContainerAllocateResponse> allocate(const std::vector<std::string>& ids) override {
    TRY_ASSIGN(const plugin::ContainerAnswer answer, agent.desk_.allocate(resource, ids));
    v1beta1::ContainerAllocateResponse response;
    for (const auto& [name, value] : answer.envs) (*response.mutable_envs())[name] = value;
    for (const auto& node : answer.device_nodes) {
      v1beta1::DeviceSpec* spec = response.add_devices();
      spec->set_host_path(node.host_path);
      spec->set_container_path(node.container_path);
      spec->set_permissions("rw");
    }
    agent.world_.given(resource, ids);
    agent.allocated();
    return response;
  }
};

ModelAgent::ModelAgent(AgentWorld world, std::string name) : world_(std::move(world)), name_(std::move(name)) {}

ModelAgent::~ModelAgent() = default;

void ModelAgent::later(SteadyTime::duration delay, void (ModelAgent::*call)()) {
  world_.time.after(delay, [weak = weak_from_this(), call] {
    if (const auto self = weak.lock()) (*self.*call)();
  });
}

void ModelAgent::start(plugin::NodeViewPtr view) {
  desk_.set_view(std::move(view));
  ask_holders();
}

void ModelAgent::set_view(plugin::NodeViewPtr view) {
  desk_.set_view(std::move(view));
  if (!holders_known_) return;
  apply_holders();
  request_publish();
}

void ModelAgent::checkpoint_changed() {
  apply_holders();
}

void ModelAgent::kubelet_appeared() {
  served_.clear();  // the kubelet has wiped the sockets
  connect_all();
}

void ModelAgent::connect_all() {
  if (!holders_known_ || !served_.empty()) return;
  for (const plugin::Resource resource : plugin::kAllResources) {
    if (resource == plugin::Resource::neurondevice && !world_.neurondevice) continue;
    auto list = desk_.unit_list(resource);
    if (!list || list->empty()) continue;
    auto served = std::make_unique<Served>(
        *this, resource,
        name_ + "-" + std::string(plugin::short_name(resource)) + "-" + std::to_string(++endpoints_made_));
    if (!world_.connect(resource, served->path)) return served_.clear();
    served->last_list = std::make_shared<const monitor::UnitList>(*std::move(list));
    world_.send(resource, served->last_list);
    served_.push_back(std::move(served));
  }
}

void ModelAgent::allocated() {
  request_publish();
  ask_holders_at(desk_.last_call() + kAskAfterAllocate);
}

void ModelAgent::request_publish() {
  if (!publish_wanted_since_) publish_wanted_since_ = world_.time.now();
  publish_at_ =
      std::min(std::max(*publish_wanted_since_, desk_.last_call() + kQuiet), *publish_wanted_since_ + kMostPatience);
  later(std::max(*publish_at_ - world_.time.now(), SteadyTime::duration{0}), &ModelAgent::run_timers);
}

void ModelAgent::publish_all() {
  publish_at_.reset();
  publish_wanted_since_.reset();
  bool published = false;
  for (const auto& served : served_) {
    auto list = desk_.unit_list(served->resource);
    if (!list || *served->last_list == *list) continue;
    served->last_list = std::make_shared<const monitor::UnitList>(*std::move(list));
    world_.send(served->resource, served->last_list);
    published = true;
  }
  if (fresh_checkpoint_wanted_ && !published) publish_again();
  fresh_checkpoint_wanted_ = false;
}

void ModelAgent::publish_again() {
  for (const auto& served : served_) {
    if (served->resource != plugin::Resource::efa) return world_.send(served->resource, served->last_list);
  }
}

void ModelAgent::ask_holders_at(SteadyTime when) {
  if (!ask_wanted_since_) ask_wanted_since_ = when;
  ask_at_ = std::min(when, *ask_wanted_since_ + kMostPatience);
  later(std::max(*ask_at_ - world_.time.now(), SteadyTime::duration{0}), &ModelAgent::run_timers);
}

void ModelAgent::ask_holders() {
  ask_at_.reset();
  ask_wanted_since_.reset();
  if (asking_holders_) return;
  asking_holders_ = true;
  world_.list([weak = weak_from_this(), asked_at = world_.time.now()](const auto& answer) {
    if (const auto self = weak.lock()) self->listed(asked_at, answer);
  });
}

void ModelAgent::listed(SteadyTime asked_at, const Result<std::vector<rpc::PodDevices>>& answer) {
  asking_holders_ = false;
  if (answer) holders_.set_listed(*answer, asked_at);
  const bool first = !holders_known_;
  holders_known_ = true;
  apply_holders();
  if (first) connect_all();
  if (answer && holders_.wants_fresh_checkpoint()) {
    fresh_checkpoint_wanted_ = true;
    request_publish();
  }
  if (desk_.holds_anything()) ask_holders_at(world_.time.now() + kInterval);
}

void ModelAgent::apply_holders() {
  if (!holders_known_) return;
  const auto shown = holders_.merged();
  if (!shown) return;
  desk_.reconcile(*shown, holders_.asked_at());
  request_publish();
}

void ModelAgent::run_timers() {
  const SteadyTime now = world_.time.now();
  if (publish_at_ && *publish_at_ <= now) {
    request_publish();
    if (*publish_at_ <= now) publish_all();
  }
  if (!ask_at_ || *ask_at_ > now) return;
  const bool patient = now < *ask_wanted_since_ + kMostPatience;
  if (patient && desk_.last_call() + kRpcDistance > now) {
    ask_holders_at(desk_.last_call() + kRpcDistance);
  } else {
    ask_holders();
  }
}

}  // namespace neuron::check
