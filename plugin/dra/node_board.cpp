#include "plugin/dra/node_board.h"

#include <utility>

namespace neuron::plugin::dra {

void NodeBoard::set_node(grant::NodeUnitsPtr node) {
  const MutexLock lock(mutex_);
  node_ = std::move(node);
  held_ = ports_.held();
  show();
}

void NodeBoard::held_changed() {
  const MutexLock lock(mutex_);
  std::vector<std::string> held = ports_.held();
  if (!node_ || held == held_) return;
  held_ = std::move(held);
  show();
}

void NodeBoard::marks_changed() {
  const MutexLock lock(mutex_);
  if (node_) show();
}

grant::NodeUnitsPtr NodeBoard::node() const {
  const MutexLock lock(mutex_);
  return node_;
}

bool NodeBoard::is_empty() const {
  const MutexLock lock(mutex_);
  return node_ && empty_;
}

void NodeBoard::show() {
  Pool pool = make_pool(*node_, settings_.pool, held_);
  empty_ = pool.devices.empty();
  auto health = std::make_shared<const HealthList>(make_health_list(pool, *node_, settings_.pool_name));
  if (!health_ || *health != *health_) {
    health_ = health;
    ports_.health.publish(std::move(health));
  }
  if (ports_.mark) ports_.mark(pool, *node_);
  ports_.publish(std::move(pool));
}

}  // namespace neuron::plugin::dra
