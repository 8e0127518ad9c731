#include "tools/kubectl-neuron/public_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <set>
#include <vector>

#include "agent/base/parse.h"
#include "tools/kubectl-neuron/why.h"

namespace neuron::fleet {
namespace {

constexpr std::size_t kMostDigits = 5;  // no account, no address
constexpr std::size_t kMostDeviceDigits = 3;

// In lower case.
constexpr std::string_view kPlain =
    "a aborted above account accounts admission after again agent alive all allocate allocated allocating "
    "allocation already an and anonymous another answer answered answers any api apis apps are as asked at "
    "attached available aws.amazon.com back be because been before being but by cannot changed claim claims "
    "class classes cluster cluster-scope code constraint constraints container containers cordoned core cores "
    "could count cpu create created deadline deadlineexceeded default default-scheduler deleted demand denied "
    "deny desc destination details device deviceclasses deviceclasses.resource.k8s.io devices did didn "
    "disk-pressure does don driver due each efa else empty end ended ends error events exceed exceeded exclude "
    "exist exists expected expired fail failed failedprecondition failing failure few finished first fit fits "
    "for forbidden found free from full get given go goes group groups had has have healthy held host http https "
    "id if image in incoming insufficient interface interfaces internal into invalid is it item items its keep "
    "kind know known kube-node-lease kube-public kube-system kubelet kubernetes kubernetes.io label labels last "
    "later left less limit list lists lock longer main make match matched matches may memory memory-pressure "
    "message missing mode more most ms must name names namespace namespaces need needs network-unavailable "
    "neuron neuron-agent neuron-agent-dra neuron-agent-efa neuron-node neuronagent neuroncore neurondevice no "
    "no-execute node node.kubernetes.io nodes noexecute none nor noschedule not not-ready notfound nothing now "
    "null of off offered offers older on once one only open or other others out over own page pages parsed "
    "pending permission persistentvolumeclaim pid-pressure pleg plugin pod pods policy port preemption prepare "
    "proxy pull pulled pulling reach reached read ready reason refused registered rejected removed request "
    "requested requests resource resource.k8s.io resourceclaim resourceclaims resourceclaims.resource.k8s.io "
    "resourceclaimtemplates resourceclaimtemplates.resource.k8s.io resourceexhausted resources resourceslices "
    "resourceslices.resource.k8s.io restarting rpc run running runs s scanned scheduled scheduler scheduling "
    "scope second seconds seen selector serve served server serves service show shown since slice slices sockets "
    "some spread started starting state stopped successfully such supported t taint taints template templates "
    "than that the their them then there these they this those through time timeout to too topology tried two "
    "unable unauthenticated unauthorized unavailable under unexpected unhealthy unknown unreachable "
    "unschedulable until untolerated up use used user uses using v1 v1beta1 v1beta2 version victims volume "
    "vpc.amazonaws.com wait waiting waits was were what when where which while whole will with within without "
    "wrong yet new deallocate still schedulable found victims helpful satisfy sufficient pressure evicted evicting";

std::string lower(std::string_view text) {
  std::string all(text);
  std::ranges::transform(all, all.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return all;
}

using Words = std::set<std::string, std::less<>>;

const Words& known_words() {
  static const Words kWords = [] {
    Words words;
    std::vector<std::string_view> texts = texts_of_tables();
    texts.push_back(kPlain);
    for (std::string_view text : texts) {
      while (!text.empty()) {
        const std::size_t end = std::min(text.find_first_not_of(kWordCharacters), text.size());
        if (end > 0) words.insert(lower(text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
      }
    }
    return words;
  }();
  return kWords;
}

}  // namespace

bool is_public_word(std::string_view word) {
  if (is_digits(word)) return word.size() <= kMostDigits;
  constexpr std::string_view kDevice = "neuron";
  const std::string_view rest = word.starts_with(kDevice) ? word.substr(kDevice.size()) : "";
  if (is_digits(rest)) return rest.size() <= kMostDeviceDigits;
  return known_words().contains(lower(word));
}

bool is_public_domain(std::string_view domain) {
  constexpr std::array<std::string_view, 6> kEnds = {"aws.amazon.com", "kubernetes.io", "k8s.io",
                                                     "amazonaws.com",  "aws.com",       "k8s.aws"};
  const bool ends = std::ranges::any_of(kEnds, [&](std::string_view end) { return domain.ends_with(end); });
  return ends || domain == "neuron-agent";
}

bool is_public_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  return slash != std::string_view::npos && is_public_domain(key.substr(0, slash));
}

bool is_public_value(std::string_view key, std::string_view value) {
  if (value == "true" || value == "false" || is_digits(value)) return true;
  const std::string_view name = key.substr(key.find('/') + 1);
  constexpr std::array<std::string_view, 4> kNames = {"instance-type", "arch", "os", "capacityType"};
  return is_public_key(key) && (key.starts_with("neuron-agent/") || std::ranges::find(kNames, name) != kNames.end());
}

bool is_public_expression(std::string_view text) {
  constexpr std::array<std::string_view, 5> kValues = {"efa", "neuron_", "trainium", "inferentia", "healthy"};
  while (true) {
    const std::size_t begin = text.find_first_of("'\"");
    if (begin == std::string_view::npos) return true;
    const std::size_t end = text.find(text[begin], begin + 1);
    if (end == std::string_view::npos) return false;
    const std::string_view quoted = text.substr(begin + 1, end - begin - 1);
    const bool is_value =
        std::ranges::any_of(kValues, [&](std::string_view value) { return quoted.starts_with(value); });
    if (!is_value && !is_digits(quoted) && !is_public_domain(quoted)) return false;
    text.remove_prefix(end + 1);
  }
}

bool is_public_class(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {kDeviceClass, kCoreClass, kEfaClass, kGroupClass};
  return std::ranges::find(kNames, name) != kNames.end();
}

std::string public_image(std::string_view image) {
  const std::string_view text = image.substr(0, image.find('@'));
  const std::size_t colon = text.rfind(':');
  std::string shown = "neuron-agent";
  if (colon == std::string_view::npos || text.find('/', colon) != std::string_view::npos) return shown;
  const std::string_view tag = text.substr(colon);
  return tag.find_first_not_of(":v0123456789.") == std::string_view::npos ? shown + std::string(tag) : shown;
}

}  // namespace neuron::fleet
