#include "tools/kubectl-neuron/replacements.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <functional>
#include <set>
#include <vector>

#include "agent/base/parse.h"
#include "agent/core/catalogue.h"
#include "agent/model/device.h"
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
    "dma hbm nc sram "
    "affinity affinity/selector anti-affinity bind blocked bound conflict controller count disrupted eligible "
    "ephemeral exclusive existing gate gates immediate many max never non-empty out-of-service persistent "
    "persistentvolumeclaims ports preemptionpolicy required rules satisfied unbound uninitialized unregistered volumes "
    "wrong yet new deallocate still schedulable found victims helpful satisfy sufficient pressure evicted evicting";

// Enumerations, types and reasons of the API, of the kubelet and of the scheduler.
constexpr std::string_view kOfApi =
    "All Always BackOff Completed ContainerCreating ContainersNotReady ContainersReady CrashLoopBackOff "
    "CreateContainerConfigError CreateContainerError Created CronJob DaemonSet Deployment DiskPressure "
    "DisruptionTarget "
    "DoesNotExist Equal ErrImageNeverPull ErrImagePull Evicted ExactCount Exists Failed FailedAttachVolume "
    "FailedCreatePodSandBox FailedMapVolume FailedMount FailedPrepareDynamicResources FailedScheduling False Gt "
    "ImagePullBackOff In Initialized InvalidImageName Job Killing KubeletHasDiskPressure KubeletHasInsufficientMemory "
    "KubeletHasNoDiskPressure KubeletHasSufficientMemory KubeletHasSufficientPID KubeletNotReady KubeletReady Lt "
    "MemoryPressure NetworkUnavailable Never NoExecute NoSchedule Node NodeAffinity NodeLost NodeNotReady "
    "NodeStatusUnknown NodeStatusNeverUpdated Normal NotIn NotTriggerScaleUp OnFailure PIDPressure Pending Pod "
    "PodCompleted PodFailed PodInitializing PodReadyToStartContainers PodScheduled PreferNoSchedule Preempted "
    "PreemptionByScheduler Pulled Pulling Ready ReplicaSet ResourceClaim RunContainerError Running Scheduled "
    "SchedulerError SchedulingGated Shutdown Started StatefulSet Succeeded SuccessfulAttachVolume TCP "
    "TaintManagerEviction Terminated TopologyAffinityError TriggeredScaleUp True UDP UnexpectedAdmissionError "
    "Unhealthy "
    "Unknown Unschedulable WaitForFirstConsumer Warning metrics pods resource.k8s.io";

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

constexpr std::size_t kShortestInSentence = 3;

// Of taints that a sentence may name though no listed node has them. Registries have others of the public domains.
bool is_sentence_domain(std::string_view domain) {
  constexpr std::array<std::string_view, 4> kDomains = {"karpenter.sh", "kubernetes.io", "node.kubernetes.io",
                                                        "node.cloudprovider.kubernetes.io"};
  return std::ranges::find(kDomains, domain) != kDomains.end();
}

bool is_kept(const std::string& text) {
  constexpr std::array<std::string_view, 9> kKept = {"default",          "kube-system",       "kube-public",
                                                     "kube-node-lease",  "default-scheduler", "neuron-agent",
                                                     "neuron-agent-dra", "neuron-agent-efa",  "neuron-node"};
  return std::ranges::find(kKept, text) != kKept.end();
}

// Whether the text is the head, and after it characters of the set alone.
bool has_form(std::string_view text, std::string_view head, std::string_view rest) {
  constexpr std::size_t kLongest = 24;
  if (!text.starts_with(head) || text.size() == head.size() || text.size() > kLongest) return false;
  return text.find_first_not_of(rest, head.size()) == std::string_view::npos;
}

constexpr std::string_view kDigits = "0123456789";
constexpr const char* kOtherDomain = "example.com/";

// "trn2", "trn2eu": also of a generation that is not known yet.
bool is_family(std::string_view text) {
  constexpr std::size_t kHead = 3, kMostLetters = 2;
  if (!text.starts_with("trn") && !text.starts_with("inf")) return false;
  const std::string_view rest = text.substr(kHead);
  const std::size_t end = std::min(rest.find_first_not_of(kDigits), rest.size());
  const std::string_view letters = rest.substr(end);
  return end > 0 && end <= kMostLetters && letters.size() <= kMostLetters &&
         letters.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == std::string_view::npos;
}

// Words of CEL, attributes and capacities that the project's driver publishes.
const std::vector<std::string_view>& words_of_code() {
  constexpr std::string_view kCode =
      "device driver attributes capacity allowMultipleAllocations in true false has exists all size orValue hasValue "
      "startsWith endsWith contains isGreaterThan isLessThan compareTo quantity resourceType whole deviceId family lnc "
      "instanceType health cores memory serial arch numaNode pciAddress rdmaDevice neuronDriverVersion capacityBlockId "
      "networkNodeLayer1 networkNodeLayer2 networkNodeLayer3 topology_x topology_y ultraserverId ultraserverMode "
      "ultraserverNodeId ultraserverServerId workloadId first core efa pciBusID pcieRoot devicegroup1_id "
      "devicegroup4_id devicegroup8_id devicegroup16_id topology4_id topology8_id draDriverVersion";
  static const std::vector<std::string_view> kWords = split(kCode, ' ');
  return kWords;
}

// Of an expression what is not quoted.
bool is_public_code(std::string_view code) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  if (code.find("//") != std::string_view::npos || code.find('\\') != std::string_view::npos) return false;
  while (!code.empty()) {
    const std::size_t end = std::min(code.find_first_not_of(kLetters), code.size());
    const std::string_view word = code.substr(0, end);
    const bool is_known = is_digits(word) ? word.size() <= kMostDigits
                                          : std::ranges::find(words_of_code(), word) != words_of_code().end();
    if (end > 0 && !is_known) return false;
    code.remove_prefix(std::min(end + 1, code.size()));
  }
  return true;
}

}  // namespace

bool is_public_word(std::string_view word) {
  if (is_digits(word)) return word.size() <= kMostDigits;
  constexpr std::string_view kDevice = "neuron";
  const std::string_view rest = word.starts_with(kDevice) ? word.substr(kDevice.size()) : "";
  if (is_digits(rest)) return rest.size() <= kMostDeviceDigits;
  return known_words().contains(lower(word));
}

bool is_public_name(std::string_view name) {
  if (is_public_key(name)) return true;
  const std::vector<std::string_view>& known = words_of_code();
  return std::ranges::all_of(split(name, '-'), [&](std::string_view part) {
    return part == "neuron" || std::ranges::find(known, part) != known.end() ||
           (is_digits(part) && part.size() <= kMostDigits);
  });
}

bool is_public_domain(std::string_view domain) {
  constexpr std::array<std::string_view, 7> kEnds = {"aws.amazon.com", "kubernetes.io", "k8s.io",      "amazonaws.com",
                                                     "aws.com",        "k8s.aws",       "karpenter.sh"};
  const bool ends = std::ranges::any_of(kEnds, [&](std::string_view end) { return domain.ends_with(end); });
  return ends || domain == "neuron-agent";
}

bool is_public_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (key == "ToBeDeletedByClusterAutoscaler" || key == "DeletionCandidateOfClusterAutoscaler") return true;
  return slash != std::string_view::npos && is_public_domain(key.substr(0, slash));
}

bool is_public_value(std::string_view key, std::string_view value) {
  constexpr std::array<std::string_view, 13> kValues = {"true",          "false",   "amd64",     "arm64", "linux",
                                                        "ON_DEMAND",     "SPOT",    "on-demand", "spot",  "dra",
                                                        "device-plugin", "healthy", "degraded"};
  if (std::ranges::find(kValues, value) != kValues.end()) return true;
  if (is_digits(value)) return value.size() <= kMostDigits;
  const std::string_view name = key.substr(key.find('/') + 1);
  if (!is_public_key(key)) return false;
  if (name == "instance-type") return is_instance_type(value);
  return key.starts_with("neuron-agent/") &&
         (is_family(value) || is_public_word(value) || public_version(value) == value);
}

bool is_public_attribute(std::string_view text) {
  constexpr std::array<std::string_view, 10> kValues = {"neuron_device", "neuron_core", "neuron_group", "neuron_node",
                                                        "neuron_",       "efa",         "healthy",      "degraded",
                                                        "unhealthy",     "unknown"};
  return is_plain(text) || std::ranges::find(kValues, text) != kValues.end() || is_instance_type(text) ||
         is_pci_place(text) || is_interface_name(text) || model::parse_family(text) || public_version(text) == text;
}

bool is_public_class(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {kDeviceClass, kCoreClass, kEfaClass, kGroupClass};
  return std::ranges::find(kNames, name) != kNames.end();
}

bool is_interface_name(std::string_view name) {
  return has_form(name, "rdmap", "0123456789abcdefsn") || has_form(name, "efa_", kDigits);
}

bool is_verbs_name(std::string_view name) {
  return has_form(name, "uverbs", kDigits);
}

bool is_pci_place(std::string_view text) {
  return has_form(text, "", "0123456789abcdef:.") && text.find(':') != std::string_view::npos;
}

bool is_architecture(std::string_view text) {
  return text.empty() || has_form(text, "NDv", kDigits) || has_form(text, "NCv", kDigits);
}

bool is_instance_type(std::string_view name) {
  if (name.empty() || core::find_instance_type(name) != nullptr) return true;
  constexpr std::size_t kLongestFamily = 8;
  const std::size_t point = name.find('.');
  if (point > kLongestFamily) return false;  // or there is none
  const std::string_view size = name.substr(point + 1);
  return size == "large" || (size.ends_with("xlarge") && is_digits(size.substr(0, size.size() - 6)));
}

bool is_core_resource(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames = {"cpu", "memory", "pods", "ephemeral-storage"};
  if (std::ranges::find(kNames, name) != kNames.end()) return true;
  return has_form(name, "hugepages-", "0123456789KMGi") ||
         has_form(name, "attachable-volumes-", "abcdefghijklmnopqrstuvwxyz-");
}

bool is_quantity(std::string_view text) {
  constexpr std::size_t kLongest = 20;
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::string_view unit = text.substr(end);
  return end > 0 && text.size() <= kLongest && unit.size() <= 2 &&
         (unit.find_first_not_of("numkKMGTPEi") == std::string_view::npos || has_form(unit, "e", kDigits));
}

bool is_plain(std::string_view text) {
  constexpr std::string_view kOut = "OutOf";
  static const std::set<std::string_view> kWords = [] {
    std::set<std::string_view> words;
    for (const std::string_view word : split(kOfApi, ' ')) words.insert(word);
    return words;
  }();
  if (text.empty() || kWords.contains(text)) return true;
  if (text.starts_with(kOut)) text.remove_prefix(kOut.size());
  if (is_core_resource(text) || is_public_key(text)) return true;
  const bool is_time = has_form(text, "20", "0123456789TZ:.+-") && text.find('T') != std::string_view::npos;
  return is_time || (is_quantity(text) && (text.size() <= kMostDigits || !is_digits(text)));
}

std::string Replacements::of(const std::string& kind, const std::string& text) {
  if (text.empty() || is_kept(text)) return text;
  auto& names = kinds_[kind];
  const auto [found, is_new] = names.try_emplace(text, kind + "-" + std::to_string(names.size() + 1));
  if (is_new && text.size() >= kShortestInSentence) all_.emplace(text, found->second);
  return found->second;
}

std::string Replacements::of_key(const std::string& kind, const std::string& text) {
  if (is_public_key(text)) return all_[text] = text;
  if (text.find('/') == std::string::npos) return of(kind, text);
  const std::string name = of(kind, text);
  return all_[text] = kOtherDomain + name;
}

void Replacements::number(const std::string& kind, const std::set<std::string>& texts) {
  const std::size_t width = std::to_string(texts.size()).size();
  auto& names = kinds_[kind];
  for (const std::string& text : texts) {
    if (text.empty() || is_kept(text)) continue;
    std::string digits = std::to_string(names.size() + 1);
    digits.insert(0, width - std::min(width, digits.size()), '0');
    const auto [found, is_new] = names.try_emplace(text, kind + "-" + digits);
    if (is_new && text.size() >= kShortestInSentence) all_.emplace(text, found->second);
  }
}

std::optional<std::string> Replacements::in_quotes(const std::string& text, bool is_domain,
                                                   const std::set<std::string>& drivers) {
  if (is_domain) {
    if (is_public_domain(text)) return text;
    return drivers.contains(text) ? std::optional(of("driver", text)) : std::nullopt;
  }
  if (is_public_domain(text) || is_public_attribute(text)) return text;
  if (kinds_["serial"].contains(text)) return of_serial(text);
  const auto known = all_.find(text);
  return known == all_.end() ? of("value", text) : known->second;
}

std::string Replacements::in_expression(std::string_view text, const std::set<std::string>& drivers) {
  constexpr const char* kRemoved = "removed";
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find_first_of("'\"", at), text.size());
    const std::string_view code = text.substr(at, begin - at);
    if (!is_public_code(code)) return kRemoved;
    out += code;
    if (begin == text.size()) break;
    const std::size_t end = text.find(text[begin], begin + 1);
    if (end == std::string_view::npos) return kRemoved;
    const std::string quoted(text.substr(begin + 1, end - begin - 1));
    const bool is_domain = code.ends_with("attributes[") || code.ends_with("capacity[");
    const auto own = in_quotes(quoted, is_domain, drivers);
    if (!own || quoted.find('\\') != std::string::npos) return kRemoved;
    out += text[begin] + *own + text[begin];
    at = end + 1;
  }
  return out;
}

std::string Replacements::of_pod(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return of("pod", text);
  return of("namespace", text.substr(0, slash)) + "/" + of("pod", text.substr(slash + 1));
}

std::string Replacements::of_serial(const std::string& text) {
  if (text.empty()) return text;
  const std::string name = of("serial", text);
  const std::string number = name.substr(name.rfind('-') + 1);
  return std::string(16 - std::min<std::size_t>(number.size(), 15), '0') + number;
}

std::string Replacements::of_interface(const std::string& text) {
  return is_interface_name(text) ? text : of("interface", text);
}

std::string Replacements::in_sentence(std::string_view text) const {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find_first_not_of(kWordCharacters, at), text.size());
    if (const auto [name, size] = with_domain(text.substr(at), end - at); size > 0) {
      out += name;
      at += size;
      continue;
    }
    if (end > at) {
      const bool joined =
          (at > 0 && text[at - 1] == ':') || (end + 1 < text.size() && text[end] == ':' && text[end + 1] != ' ');
      out += replaced(text.substr(at, end - at), joined);
    }
    at = std::min(text.find_first_of(kWordCharacters, end), text.size());
    out += text.substr(end, at - end);
  }
  return out;
}

std::pair<std::string, std::size_t> Replacements::with_domain(std::string_view text, std::size_t slash) const {
  if (slash == 0 || slash + 1 >= text.size() || text[slash] != '/') return {"", 0};
  std::size_t end = std::min(text.find_first_not_of(kWordCharacters, slash + 1), text.size());
  end = text.substr(0, end).find_last_not_of('.') + 1;  // the end of a sentence
  const auto found = all_.find(text.substr(0, end));
  if (found != all_.end()) return {found->second, end};
  const bool is_known =
      is_sentence_domain(text.substr(0, slash)) && is_public_word(text.substr(slash + 1, end - slash - 1));
  const bool goes_on = end < text.size() && text[end] == '/';
  return is_known && !goes_on ? std::pair(std::string(text.substr(0, end)), end)
                              : std::pair(std::string(), std::size_t{0});
}

std::string Replacements::replaced(std::string_view word, bool is_joined) const {
  const std::size_t length = word.find_last_not_of('.') + 1;  // the end of a sentence; 0: dots alone
  if (length == 0) return std::string(word);
  const std::string_view own = word.substr(0, length);
  const auto found = all_.find(own);
  const std::string tail(word.substr(length));
  if (found != all_.end()) return found->second + tail;
  return !is_joined && is_public_word(own) ? std::string(word) : "removed" + tail;
}

}  // namespace neuron::fleet
