#include <algorithm>
#include <set>

#include "tools/render/node_svg_parts.h"

namespace neuron::render::svg {
namespace {

constexpr int kColours = 8;

std::string name_of(const PodUse& use) {
  return use.pod_namespace + '/' + use.pod;
}

void add(std::vector<int>& pods, int pod) {
  if (std::find(pods.begin(), pods.end(), pod) == pods.end()) pods.push_back(pod);
}

const std::vector<int>& nobody() {
  static const std::vector<int> kNobody;
  return kNobody;
}

}  // namespace

Holders::Holders(const NodeReport& report) {
  if (!report.pods) return;
  known_ = true;
  std::set<std::string> names;
  for (const PodUse& use : *report.pods) names.insert(name_of(use));
  names_.assign(names.begin(), names.end());
  for (const PodUse& use : *report.pods) {
    const int pod = number(use);
    for (const int device : use.devices) add(devices_[device], pod);
    for (const int core : use.cores) add(cores_[core], pod);
    for (const std::string& efa : use.efas) add(efas_[efa], pod);
  }
}

int Holders::number(const PodUse& use) const {
  return static_cast<int>(std::lower_bound(names_.begin(), names_.end(), name_of(use)) - names_.begin());
}

const std::vector<int>& Holders::at(const Pods& pods, int key) {
  const auto found = pods.find(key);
  return found == pods.end() ? nobody() : found->second;
}

const std::vector<int>& Holders::of_efa(const std::string& name) const {
  const auto found = efas_.find(name);
  return found == efas_.end() ? nobody() : found->second;
}

std::string Holders::letters(int pod) {
  constexpr int kLetters = 26;
  std::string text(1, static_cast<char>('A' + pod % kLetters));
  return pod < kLetters ? text : letters(pod / kLetters - 1) + text;
}

std::string Holders::colour(int pod) {
  return "p" + std::to_string(pod % kColours);
}

}  // namespace neuron::render::svg
