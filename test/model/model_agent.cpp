#include "test/model/model_agent.h"

#include <algorithm>
#include <utility>

namespace neuron::check {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kInterval{10000};  // --pod-resources-interval's default

}  // namespace

// A served resource: what PluginServer and DevicePluginService are over gRPC.
class ModelAgent::Socket final : public plugin::ResourceServer, public PluginSocket {
 public:
  Socket(ModelAgent& agent, model::Resource resource, std::string path)
      : agent_(agent), resource_(resource), path_(std::move(path)) {
    agent_.sockets_[path_] = this;
    listen_at(path_, *this);
  }
  ~Socket() override {
    stop_listening(path_);
    if (!lost_) agent_.sockets_.erase(path_);
  }

  [[nodiscard]] const std::string& endpoint() const override { return path_; }
  [[nodiscard]] std::size_t watchers() const override { return watched_ ? 1 : 0; }
  void publish(plugin::UnitListPtr units) override {
    newest_ = std::move(units);
    if (watched_) send();
  }
  void end_streams() override { watched_ = false; }
  void close() override { watched_ = false; }

  // The kubelet has wiped the directory: nobody reaches this one any more.
  void lose() {
    lost_ = true;
    watched_ = false;
    stop_listening(path_);
  }
  // The kubelet at the other end is dead, which nobody here has noticed yet.
  void cut() { connected_ = false; }
  void notice_end() {
    if (connected_ || !std::exchange(watched_, false)) return;
    agent_.tell(plugin::StreamEnded{resource_});
  }
  // The kubelet opens ListAndWatch.
  void watch() {
    agent_.admissions_.open_stream(resource_, [this, alive = std::weak_ptr<bool>(alive_)] {
      if (alive.expired()) return;
      watched_ = connected_ = true;
      send();
    });
  }

  Result<std::vector<std::string>> preferred(const std::vector<std::string>& available,
                                             const std::vector<std::string>& must_include, int size) override {
    agent_.admissions_.called();
    return agent_.allocations_.prefer(resource_, available, must_include, size);
  }

  Result<v1beta1::ContainerAllocateResponse> allocate(const std::vector<std::string>& ids) override {
    const auto agent = agent_.shared_from_this();
    const std::weak_ptr<bool> alive = alive_;
    const model::Resource resource = resource_;
    agent->allocations_.call_began();
    agent->wait_for(
        [&](plugin::AdmissionGate::Continuation then) { agent->admissions_.answer(resource, std::move(then)); });
    const auto wait_for_checkpoint = [&](SteadyTime earliest) {
      agent->wait_for([&](plugin::AdmissionGate::Continuation then) {
        agent->admissions_.wait_for_checkpoint(resource, earliest, std::move(then));
      });
    };
    if (!alive.expired() && agent->allocations_.needs_fresh_checkpoint(resource, ids)) {
      wait_for_checkpoint(agent->world_.time.now());
      const auto later = alive.expired() ? std::nullopt : agent->allocations_.needs_second_checkpoint(resource, ids);
      if (later) wait_for_checkpoint(*later);
    }
    const Result<grant::Grant> answer = agent->allocations_.allocate(resource, ids);
    agent->admissions_.answered(answer ? plugin::Admissions::Outcome::given : plugin::Admissions::Outcome::refused);
    if (alive.expired() || lost_) return fail(ErrorCode::unavailable, "nobody listens");
    if (!answer) return fail(answer.error());
    v1beta1::ContainerAllocateResponse response;
    for (const auto& [name, value] : answer->envs) (*response.mutable_envs())[name] = value;
    for (const auto& each : answer->device_nodes) {
      v1beta1::DeviceSpec* spec = response.add_devices();
      spec->set_host_path(each.host_path);
      spec->set_container_path(each.container_path);
      spec->set_permissions("rw");
    }
    agent->world_.given(resource, ids);
    return response;
  }

 private:
  void send() {
    agent_.admissions_.list_published();
    if (connected_) agent_.world_.send(resource_, newest_);
  }

  ModelAgent& agent_;
  const model::Resource resource_;
  const std::string path_;
  plugin::UnitListPtr newest_;
  bool watched_ = false;
  bool connected_ = false;  // the kubelet that watches lives
  bool lost_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);  // dies with this
};

ModelAgent::ModelAgent(AgentWorld world, std::string name)
    : world_(std::move(world)),
      name_(std::move(name)),
      resources_({name_, kInterval, world_.offer}, {world_.time, allocations_, admissions_, world_.checkpoint, *this}) {
}

ModelAgent::~ModelAgent() = default;

void ModelAgent::later(SteadyTime::duration delay, std::function<void(ModelAgent&)> call) {
  world_.time.after(delay, [weak = weak_from_this(), call = std::move(call)] {
    if (const auto self = weak.lock()) call(*self);
  });
}

template <typename Event>
void ModelAgent::tell(Event event) {
  later(SteadyTime::duration{0}, [event = std::move(event)](ModelAgent& agent) {
    agent.resources_.handle(event);
    agent.step();
  });
}

void ModelAgent::start(grant::NodeUnitsPtr node) {
  allocations_.set_node(std::move(node));
  plugin::KubeletDirectory::Changes changes;
  changes.usable = true;
  resources_.handle(changes);
}

void ModelAgent::set_node(grant::NodeUnitsPtr node) {
  allocations_.set_node(std::move(node));
  tell(plugin::SnapshotChanged{});
}

void ModelAgent::kubelet_died() {
  for (const auto& [path, socket] : sockets_) socket->cut();
}

void ModelAgent::streams_end() {
  for (const auto& [path, socket] : sockets_) socket->notice_end();
}

void ModelAgent::kubelet_appeared() {
  for (const auto& [path, socket] : sockets_) socket->lose();
  sockets_.clear();
  kubelet_appeared_ = true;
}

Result<std::unique_ptr<plugin::ResourceServer>> ModelAgent::serve(model::Resource resource) {
  const std::string path =
      name_ + "-" + std::string(model::short_name(resource)) + "-" + std::to_string(++endpoints_made_);
  return std::make_unique<Socket>(*this, resource, path);
}

bool ModelAgent::exists(const std::string& endpoint) const {
  return sockets_.contains(endpoint);
}

void ModelAgent::start_registration(model::Resource resource, const std::string& endpoint) {
  later(SteadyTime::duration{0}, [resource, endpoint](ModelAgent& agent) {
    const auto found = agent.sockets_.find(endpoint);
    std::optional<Error> error;
    if (found == agent.sockets_.end() || !agent.world_.connect(resource, endpoint)) {
      error = Error{ErrorCode::unavailable, "there is no kubelet"};
    } else {
      found->second->watch();
    }
    agent.tell(plugin::RegisterDone{resource, endpoint, std::move(error)});
  });
}

void ModelAgent::ask_holders(SteadyTime now) {
  world_.list([weak = weak_from_this(), now](const auto& answer) {
    if (const auto self = weak.lock()) self->tell(plugin::HoldersListed{now, answer});
  });
}

void ModelAgent::wake() {
  later(SteadyTime::duration{0}, [](ModelAgent& agent) { agent.step(); });
}

void ModelAgent::wait_for(const std::function<void(plugin::AdmissionGate::Continuation)>& begin) {
  const auto begun = std::make_shared<bool>(false);
  begin([begun] { *begun = true; });
  while (!*begun) world_.time.advance(milliseconds(1));
}

void ModelAgent::step() {
  const plugin::Admissions::Progress before = admissions_.progress();
  plugin::KubeletDirectory::Changes changes;
  changes.checkpoints_written = world_.take_events();
  changes.kubelet_appeared = std::exchange(kubelet_appeared_, false);
  resources_.handle(changes);
  resources_.run_due(before);
  const SteadyTime now = world_.time.now();
  const std::optional<SteadyTime> next = resources_.next();
  if (!next || (timer_at_ && *timer_at_ > now && *timer_at_ <= *next)) return;
  timer_at_ = std::max(*next, now + microseconds(1));
  later(*timer_at_ - now, [](ModelAgent& agent) { agent.step(); });
}

}  // namespace neuron::check
