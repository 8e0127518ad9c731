#include <bit>
#include <string>

#include "agent/allocator/graph.h"
#include "agent/base/parse.h"

namespace neuron::allocator {
namespace {

std::string counted(int count, const std::string& noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : noun.ends_with("ch") ? "es" : "s");
}

std::string list_of(const std::vector<int>& devices) {
  return (devices.size() == 1 ? "device " : "devices ") + format_int_list(devices);
}

std::string efa_head(const Reason& reason, const std::string& whose) {
  const int near = reason.nearest.value_or(0);
  if (near == 0) return "none is nearest to " + whose;
  const std::string devices =
      reason.kind == Reason::Kind::near_free_devices ? "free " + list_of(reason.beside) : list_of(reason.beside);
  if (near == reason.units) return "nearest to " + devices;
  return std::to_string(near) + " of " + std::to_string(reason.units) + " nearest to " + devices;
}

std::string head_of(const Reason& reason) {
  const std::string size = std::to_string(reason.units);
  switch (reason.kind) {
    case Reason::Kind::nothing:
      return "nothing to choose";
    case Reason::Kind::everything:
      return "all that is available";
    case Reason::Kind::aligned_group:
      return reason.units == 1 ? "one device" : "aligned group of " + size;
    case Reason::Kind::run:
      return reason.units == 1 ? "one device" : "run of " + size;
    case Reason::Kind::connected:
      return "connected set of " + size;
    case Reason::Kind::scattered:
      return "set of " + size + ", not connected";
    case Reason::Kind::core_range:
      break;
    case Reason::Kind::core_scatter:
      return "no range of cores is left, scattered over " + counted(reason.devices, "device");
    case Reason::Kind::near_devices:
      return efa_head(reason, "the container's devices");
    case Reason::Kind::near_free_devices:
      return efa_head(reason, "free devices");
    case Reason::Kind::packed:
      return "packed";
    case Reason::Kind::unrated:
      return "ids or core numbers that the topology does not know";
  }
  if (reason.devices == 1) return "one range on device " + std::to_string(reason.first_device);
  return "one range over " + counted(reason.devices, "device");
}

std::string groups_phrase(const Reason::GroupsLeft& left) {
  if (left.of4 > 0 || left.of1 == 0) return "leaves " + counted(left.of4, "group") + " of 4 whole";
  if (left.of2 > 0) return "leaves no group of 4, " + counted(left.of2, "pair");
  return "leaves no group of 4, " + counted(left.of1, "device");
}

}  // namespace

std::string phrase(const Reason& reason) {
  std::string text = head_of(reason);
  if (reason.hops) text += ", " + counted(*reason.hops, "hop");
  if (reason.numa_nodes > 0) text += ", " + counted(reason.numa_nodes - 1, "NUMA crossing");
  if (reason.switches > 0) text += ", " + counted(reason.switches, "switch");
  const bool efas = reason.kind == Reason::Kind::near_devices || reason.kind == Reason::Kind::near_free_devices;
  if (reason.nearest && !efas) text += ", " + counted(*reason.nearest, "EFA") + " nearest";
  if (reason.groups_left) text += ", " + groups_phrase(*reason.groups_left);
  return text;
}

void describe_devices(Reason& reason, const DeviceGraph& graph, const Rater& rater, Mask devices) {
  reason.devices = std::popcount(devices);
  if (devices == 0) return;
  reason.first_device = graph.device(std::countr_zero(devices)).index;
  if (reason.devices > 1 && !graph.topology().switched) reason.hops = graph.hop_sum(devices);
  reason.numa_nodes = graph.numa_nodes(devices);
  if (graph.topology().groups_of_torus) {
    const auto left = [&](int level) { return rater.whole_groups_left(devices, level); };
    reason.groups_left = Reason::GroupsLeft{left(4), left(3), left(2), left(1), left(0)};
  }
}

Choice explained(std::vector<int> ids, const Reason& reason) {
  Choice choice{std::move(ids), phrase(reason), reason};
  return choice;
}

std::optional<Choice> obvious(const Question& question) {
  Reason reason;
  reason.units = question.size;
  if (question.size == 0) return explained({}, reason);
  if (question.size < static_cast<int>(question.available.size())) return std::nullopt;
  reason.kind = Reason::Kind::everything;
  return explained(question.available, reason);
}

}  // namespace neuron::allocator
