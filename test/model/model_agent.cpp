#include "test/model/model_agent.h"

#include <algorithm>

namespace neuron::check {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kAskAfterFailure{1000};  // as in plugin/device/supervisor_publish.cpp
constexpr milliseconds kAskWhileWithheld{500};

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
    agent.admissions_.called();
    return agent.desk_.prefer(resource, available, must_include, size);
  }

  Result<v1beta1::ContainerAllocateResponse> allocate(const std::vector<std::string>& ids) override {
    const auto self = agent.shared_from_this();
    const std::weak_ptr<bool> socket = open;
    const model::Resource asked = resource;
    self->wait_for([&](plugin::AdmissionGate::Go go) { self->admissions_.answer(asked, std::move(go)); });
    if (!socket.expired() && self->desk_.doubtful(asked, ids)) {
      self->wait_for([&](plugin::AdmissionGate::Go go) { self->admissions_.doubt(asked, std::move(go)); });
    }
    const Result<plugin::ContainerAnswer> answer = self->desk_.allocate(asked, ids);
    self->admissions_.answered(answer ? plugin::Admissions::Outcome::given : plugin::Admissions::Outcome::refused);
    if (socket.expired()) return fail(ErrorCode::unavailable, "nobody listens");
    if (!answer) return fail(answer.error());
    v1beta1::ContainerAllocateResponse response;
    for (const auto& [name, value] : answer->envs) (*response.mutable_envs())[name] = value;
    for (const auto& node : answer->device_nodes) {
      v1beta1::DeviceSpec* spec = response.add_devices();
      spec->set_host_path(node.host_path);
      spec->set_container_path(node.container_path);
      spec->set_permissions("rw");
    }
    agent.world_.given(resource, ids);
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
  admissions_.want_lists();
  wake();
}

void ModelAgent::checkpoint_changed() {
  apply_holders();
  admissions_.checkpoint_written();
  wake();
}

void ModelAgent::kubelet_appeared() {
  served_.clear();  // the kubelet has wiped the sockets
  admissions_.kubelet_is_new();
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

void ModelAgent::send(const Served& served) {
  admissions_.list_offered();
  desk_.note_published(served.resource, *served.last_list);
  world_.send(served.resource, served.last_list);
}

void ModelAgent::wake() {
  later(SteadyTime::duration{0}, &ModelAgent::run_timers);
}

void ModelAgent::wait_for(const std::function<void(plugin::AdmissionGate::Go)>& begin) {
  const auto begun = std::make_shared<bool>(false);
  begin([begun] { *begun = true; });
  while (!*begun) world_.time.advance(milliseconds(1));
}

bool ModelAgent::publish_changed() {
  bool published = false;
  for (const auto& served : served_) {
    auto list = desk_.unit_list(served->resource);
    if (!list || *served->last_list == *list) continue;
    served->last_list = std::make_shared<const plugin::UnitList>(*std::move(list));
    send(*served);
    published = true;
  }
  return published;
}

void ModelAgent::publish_again() {
  for (const auto& served : served_) {
    if (served->resource != model::Resource::efa) return send(*served);
  }
}

void ModelAgent::ask_holders() {
  admissions_.asking_holders();
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
  if (holders_.wants_fresh_checkpoint(world_.time.now())) admissions_.want_checkpoint();
  if (desk_.holds_anything()) admissions_.want_holders(answer ? ask_interval() : kAskAfterFailure);
  wake();
}

milliseconds ModelAgent::ask_interval() const {
  const bool withheld = std::any_of(served_.begin(), served_.end(),
                                    [this](const auto& served) { return desk_.withholds(served->resource); });
  return withheld ? std::min(kAskWhileWithheld, kInterval) : kInterval;
}

void ModelAgent::apply_holders() {
  if (!holders_known_) return;
  const auto shown = holders_.merged(world_.time.now());
  if (!shown) return;
  desk_.reconcile(*shown);
  if (const auto* written = holders_.written()) desk_.confirm(written->holdings, written->mark);
  if (desk_.holds_anything() && !asking_holders_) admissions_.want_holders_by(ask_interval());
  admissions_.want_lists();
  wake();
}

void ModelAgent::run_timers() {
  const SteadyTime now = world_.time.now();
  const plugin::Admissions::Look before = admissions_.look();
  world_.deliver_events();
  const plugin::AdmissionGate::Due due = admissions_.due(before);
  asks_by_list_ = due.list_for_doubt;
  const bool published = due.lists && publish_changed();
  if (!published && (due.same_list || due.list_for_doubt)) publish_again();
  asks_by_list_ = false;
  if (due.lists) admissions_.handed();
  if (due.holders) ask_holders();
  const std::optional<SteadyTime> next = admissions_.next();
  if (!next || (timer_at_ && *timer_at_ > now && *timer_at_ <= *next)) return;
  timer_at_ = std::max(*next, now + microseconds(1));
  later(*timer_at_ - now, &ModelAgent::run_timers);
}

}  // namespace neuron::check
