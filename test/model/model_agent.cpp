#include "test/model/model_agent.h"

#include <algorithm>

namespace neuron::check {
namespace {

using std::chrono::milliseconds;

}  // namespace

struct ModelAgent::Served final : PluginSocket {
  ModelAgent& agent;
  model::Resource resource;
  std::string path;
  plugin::UnitListPtr last_list;
  std::shared_ptr<bool> open = std::make_shared<bool>(true);  // dies with this

  Served(ModelAgent& owner, model::Resource of, std::string at) : agent(owner), resource(of), path(std::move(at)) {
    listen_at(path, *this);
  }
  ~Served() override { stop_listening(path); }

  Result<std::vector<std::string>> preferred(const std::vector<std::string>& available,
                                             const std::vector<std::string>& must_include, int size) override {
    return agent.desk_.prefer(resource, available, must_include, size);
  }

  Result<v1beta1::ContainerAllocateResponse> allocate(const std::vector<std::string>& ids) override {
    const auto self = agent.shared_from_this();
    const std::weak_ptr<bool> socket = open;
    self->hold();
    if (socket.expired()) return fail(ErrorCode::unavailable, "nobody listens");
    if (agent.desk_.doubtful(resource, ids)) {
      const model::Resource asked = resource;
      self->hold_for_checkpoint(asked);
      if (socket.expired()) {  // a server that goes away answers what it holds
        static_cast<void>(self->desk_.allocate(asked, ids));
        return fail(ErrorCode::unavailable, "nobody listens");
      }
    }
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
  connect_all();
  request_publish();
}

void ModelAgent::checkpoint_changed() {
  apply_holders();
  lists_.checkpoint_written();
}

void ModelAgent::kubelet_appeared() {
  served_.clear();  // the kubelet has wiped the sockets
  lists_.kubelet_is_new();
  holders_.kubelet_is_new();
  connect_all();
}

void ModelAgent::connect_all() {
  if (!holders_known_ || !desk_.view() || !served_.empty()) return;
  for (const model::Resource resource : model::kAllResources) {
    auto list = desk_.unit_list(resource);
    if (!list || list->empty()) continue;
    auto served = std::make_unique<Served>(
        *this, resource,
        name_ + "-" + std::string(model::short_name(resource)) + "-" + std::to_string(++endpoints_made_));
    if (!world_.connect(resource, served->path)) return served_.clear();
    served->last_list = std::make_shared<const plugin::UnitList>(*std::move(list));
    send(*served);
    served_.push_back(std::move(served));
  }
}

void ModelAgent::allocated() {
  request_publish();
  want(ask_moment_, desk_.last_call() + plugin::kAskAfterAllocate);
  want(open_moment_, desk_.last_call());
}

void ModelAgent::send(const Served& served) {
  lists_.sent();
  desk_.note_published(served.resource, *served.last_list);
  world_.send(served.resource, served.last_list);
}

// An Allocate is answered when no list is on its way any more; the kubelet waits, the world goes on.
void ModelAgent::hold() {
  bool held = lists_.hold(model::Resource::neuron, [&held] { held = false; });
  while (held) {
    world_.time.advance(milliseconds(1));
    static_cast<void>(lists_.expire());
  }
}

// An Allocate in doubt waits for what a list of ours makes the kubelet write.
void ModelAgent::hold_for_checkpoint(model::Resource resource) {
  bool held = true;
  lists_.hold_for_next(resource, [&held] { held = false; });
  world_.deliver_events();
  asks_by_list_ = true;
  publish_again();
  asks_by_list_ = false;
  while (held) {
    world_.time.advance(milliseconds(1));
    static_cast<void>(lists_.expire());
  }
}

void ModelAgent::want(plugin::QuietMoment& moment, SteadyTime earliest) {
  moment.want(earliest);
  later(SteadyTime::duration{0}, &ModelAgent::run_timers);
}

void ModelAgent::request_publish() {
  want(publish_moment_, world_.time.now());
}

void ModelAgent::publish_all() {
  bool published = false;
  for (const auto& served : served_) {
    auto list = desk_.unit_list(served->resource);
    if (!list || *served->last_list == *list) continue;
    served->last_list = std::make_shared<const plugin::UnitList>(*std::move(list));
    send(*served);
    published = true;
  }
  if (fresh_checkpoint_wanted_ && !published) publish_again();
  fresh_checkpoint_wanted_ = false;
}

void ModelAgent::publish_again() {
  for (const auto& served : served_) {
    if (served->resource != model::Resource::efa) return send(*served);
  }
}

void ModelAgent::ask_holders() {
  ask_moment_.drop();
  if (asking_holders_) return;
  asking_holders_ = true;
  world_.list([weak = weak_from_this(), asked_at = world_.time.now()](const auto& answer) {
    if (const auto self = weak.lock()) self->listed(asked_at, answer);
  });
}

void ModelAgent::listed(SteadyTime asked_at, const Result<std::vector<rpc::PodDevices>>& answer) {
  asking_holders_ = false;
  if (answer) {
    holders_.set_listed(*answer, asked_at);
  } else {
    holders_.list_failed();
  }
  const bool first = !holders_known_;
  holders_known_ = true;
  apply_holders();
  if (first) connect_all();
  if (holders_.wants_fresh_checkpoint(world_.time.now())) {
    fresh_checkpoint_wanted_ = true;
    request_publish();
  }
  if (!desk_.holds_anything()) return;
  want(ask_moment_, world_.time.now() + (answer ? ask_interval() : plugin::kAskAfterFailure));
}

milliseconds ModelAgent::ask_interval() const {
  const bool withheld = std::any_of(served_.begin(), served_.end(),
                                    [this](const auto& served) { return desk_.withholds(served->resource); });
  return withheld ? std::min(plugin::kAskWhileWithheld, kInterval) : kInterval;
}

void ModelAgent::apply_holders() {
  if (!holders_known_) return;
  const auto shown = holders_.merged(world_.time.now());
  if (!shown) return;
  desk_.reconcile(*shown);
  if (const auto* written = holders_.written()) desk_.confirm(written->holdings, written->mark);
  if (desk_.holds_anything() && !asking_holders_ && !ask_moment_.next()) {
    want(ask_moment_, world_.time.now() + ask_interval());
  }
  request_publish();
}

void ModelAgent::run_timers() {
  const SteadyTime now = world_.time.now();
  if (publish_moment_.due(now, desk_.last_call(), desk_.admission_open())) publish_all();
  if (open_moment_.due(now, desk_.last_call(), false) && desk_.admission_open()) ask_moment_.want(now);
  if (ask_moment_.due(now, desk_.last_call(), lists_.holds())) ask_holders();
  std::optional<SteadyTime> next = publish_moment_.next();
  for (const auto& moment : {ask_moment_.next(), open_moment_.next()}) {
    if (moment) next = std::min(next.value_or(*moment), *moment);
  }
  if (!next || (timer_at_ && *timer_at_ > now && *timer_at_ <= *next)) return;
  timer_at_ = std::max(*next, now + microseconds(1));
  later(*timer_at_ - now, &ModelAgent::run_timers);
}

}  // namespace neuron::check
