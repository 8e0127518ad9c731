#include "test/model/truth.h"

#include <algorithm>
#include <iterator>

#include "agent/base/parse.h"

namespace neuron::check {
namespace {

std::set<int> cores_of(const grant::NodeUnits& node, model::Resource resource, const std::set<std::string>& ids) {
  std::set<int> cores;
  for (const std::string& id : ids) {
    const int unit = std::stoi(id);
    if (resource == model::Resource::neuroncore) {
      cores.insert(unit);
    } else {
      const int each = node.topology().cores_per_device;
      for (int i = 0; i < each; ++i) cores.insert(unit * each + i);
    }
  }
  return cores;
}

bool intersect(const auto& a, const auto& b) {
  return std::any_of(a.begin(), a.end(), [&](const auto& one) { return b.contains(one); });
}

std::string say(const Truth::Container& c) {
  std::string text = c.pod + "/" + c.name + " (";
  for (const auto& [resource, ids] : c.ids) {
    text += resource + "=";
    for (const std::string& id : ids) text += id + ",";
    text += " ";
  }
  return text + ")";
}

// Runs to its end before `later` starts. Side cars go on; a plain init container after a side car runs beside it.
bool over_before(const Truth::Container& earlier, const Truth::Container& later) {
  return earlier.pod == later.pod && earlier.kind == sim::ContainerKind::init &&
         (later.kind == sim::ContainerKind::app || later.kind == sim::ContainerKind::init ||
          later.kind == sim::ContainerKind::restartable_init);
}

}  // namespace

std::optional<std::string> Truth::decode(const sim::ContainerGrant& grant, Container& container) const {
  for (const auto& [resource, ids] : grant.ids) container.ids[resource] = {ids.begin(), ids.end()};
  if (!grant.conflicts.empty()) return "two answers of one container differ: " + grant.conflicts.front();
  std::vector<int> devices;
  std::set<std::string> verbs;
  for (const sim::DeviceNode& node : grant.devices) {
    if (node.container_path.starts_with("/dev/neuron")) devices.push_back(std::stoi(node.container_path.substr(11)));
    if (node.container_path.starts_with("/dev/infiniband/")) verbs.insert(node.container_path.substr(16));
  }
  std::sort(devices.begin(), devices.end());
  if (const auto env = grant.env.find("NEURON_RT_VISIBLE_CORES"); env != grant.env.end()) {
    constexpr int kMost = 4096;
    const auto numbers = parse_int_list(env->second, kMost);
    if (!numbers) return "unreadable core list " + env->second;
    const int each = node_->topology().cores_per_device;
    for (const int number : *numbers) {
      const auto place = static_cast<std::size_t>(number / each);
      if (!host_numbering_ && place >= devices.size()) return "core number beyond the devices: " + env->second;
      container.cores.insert(host_numbering_ ? number : devices[place] * each + number % each);
    }
  }
  std::set<std::string> expected_verbs;
  for (const auto& [name, ids] : container.ids) {
    const auto resource = model::parse_resource(name);
    if (*resource != model::Resource::efa) {
      if (cores_of(*node_, *resource, ids) != container.cores) return "environment does not match the ids of " + name;
      continue;
    }
    for (const std::string& id : ids) {
      if (const auto unit = node_->unit_of(*resource, id)) expected_verbs.insert(node_->efa(*unit).uverbs.value_or(""));
    }
  }
  if (verbs != expected_verbs) return std::string("interfaces in the container are not those allocated");
  return std::nullopt;
}

std::optional<std::string> Truth::compare(Container& a, Container& b) {
  if (over_before(a, b)) return std::nullopt;
  bool same_id = false;
  for (const auto& [resource, ids] : a.ids) {
    const auto others = b.ids.find(resource);
    if (others != b.ids.end() && intersect(ids, others->second)) same_id = true;
  }
  if (same_id) {
    ++counts_.double_given;
    a.excepted = b.excepted = true;
    return std::nullopt;
  }
  if (a.excepted || b.excepted || !intersect(a.cores, b.cores)) return std::nullopt;
  return "a core is usable from two containers: " + say(a) + " and " + say(b);
}

std::optional<std::string> Truth::start(const sim::PodSpec& spec, const sim::PodResult& result, Answers answers) {
  std::optional<std::string> wrong;
  for (const bool init : {true, false}) {
    for (std::size_t i = 0; i < spec.containers.size(); ++i) {
      if ((spec.containers[i].kind != sim::ContainerKind::app) != init) continue;
      Container container{spec.name, result.uid, spec.containers[i].name, spec.containers[i].kind, {}, {}, false};
      auto found = decode(result.containers[i], container);
      if (found && answers == Answers::may_differ) {
        found.reset();
        for (const auto& [name, ids] : container.ids) {
          const auto resource = model::parse_resource(name);
          if (*resource != model::Resource::efa) container.cores.merge(cores_of(*node_, *resource, ids));
        }
      }
      for (Container& other : containers_) {
        if (!found) found = compare(other, container);
      }
      if (found && !wrong) wrong = std::move(found);
      ++counts_.containers;
      if (!container.ids.empty()) containers_.push_back(std::move(container));
    }
  }
  return wrong;
}

void Truth::passed(const std::string& pod, const std::string& resource, const std::vector<std::string>& ids) {
  for (Container& one : containers_) {
    const auto has = one.ids.find(resource);
    if (one.pod != pod && has != one.ids.end() && intersect(ids, has->second)) one.excepted = true;
  }
}

void Truth::end(const std::string& pod) {
  std::erase_if(containers_, [&](const Container& one) { return one.pod == pod; });
}

void Truth::keep_known(const std::vector<sim::PodView>& known) {
  std::set<std::string> entries;
  for (const sim::PodView& pod : known) {
    for (const auto& container : pod.containers) {
      for (const auto& device : container.devices) {
        entries.insert(pod.name + "/" + container.name + "/" + device.resource + "/" + device.id);
      }
    }
  }
  for (Container& one : containers_) {
    for (const auto& [resource, ids] : one.ids) {
      for (const std::string& id : ids) {
        if (one.excepted || entries.contains(one.pod + "/" + one.name + "/" + resource + "/" + id)) continue;
        one.excepted = one.forgotten = true;
        ++counts_.forgotten;
      }
    }
  }
}

std::set<int> Truth::blocked(model::Resource resource, bool with_excepted) const {
  std::set<int> all;
  for (const Container& one : containers_) {
    if (one.excepted && !with_excepted) continue;
    std::set<int> through;  // this resource
    const auto ids = one.ids.find(std::string(model::resource_name(resource)));
    if (ids != one.ids.end()) through = cores_of(*node_, resource, ids->second);
    std::set_difference(one.cores.begin(), one.cores.end(), through.begin(), through.end(),
                        std::inserter(all, all.end()));
  }
  return all;
}

std::set<int> Truth::forgotten() const {
  std::set<int> all;
  for (const Container& one : containers_) {
    if (one.forgotten) all.insert(one.cores.begin(), one.cores.end());
  }
  return all;
}

bool Truth::has(model::Resource resource, const std::string& id) const {
  return std::any_of(containers_.begin(), containers_.end(), [&](const Container& one) {
    const auto ids = one.ids.find(std::string(model::resource_name(resource)));
    return ids != one.ids.end() && ids->second.contains(id);
  });
}

std::set<std::string> Truth::holders_of(int core) const {
  std::set<std::string> names;
  for (const Container& one : containers_) {
    if (!one.cores.contains(core)) continue;
    names.insert("default/" + one.pod + "/" + one.name);
    names.insert("pod " + one.uid + "/" + one.name);
  }
  return names;
}

}  // namespace neuron::check
