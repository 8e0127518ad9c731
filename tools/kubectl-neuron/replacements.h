#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "tools/kubectl-neuron/documents.h"

// Replaces names in the foreign texts of an anonymised dump; public words stay. Pure.
namespace neuron::fleet {

inline constexpr std::string_view kWordCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";

// Words of the messages that `why` knows and of the sentences of this program, and short numbers.
[[nodiscard]] bool is_public_word(std::string_view word);
// "kubernetes.io/arch": a key or resource whose domain is of Kubernetes, AWS or this project.
[[nodiscard]] bool is_public_key(std::string_view key);
// Whether a capacity, counter or attribute is named as by the project's driver, or with a public domain.
[[nodiscard]] bool is_public_name(std::string_view name);
[[nodiscard]] bool is_public_domain(std::string_view domain);
// Words that Kubernetes writes where it has a choice of some, "NoSchedule"; times; quantities that are short or have a
// unit.
[[nodiscard]] bool is_plain(std::string_view text);
[[nodiscard]] bool is_quantity(std::string_view text);
// "cpu", "hugepages-2Mi": resources without a domain.
[[nodiscard]] bool is_core_resource(std::string_view name);
// Whether the key is a label of Kubernetes or AWS whose values reveal nothing about the owner.
[[nodiscard]] bool is_public_value(std::string_view key, std::string_view value);
// Whether the project's driver publishes this attribute value for every such device.
[[nodiscard]] bool is_public_attribute(std::string_view text);
// The device classes of the chart.
[[nodiscard]] bool is_public_class(std::string_view name);
// "rdmap16s27", "uverbs3", "0000:10", "NDv3": as kernel and driver name them.
[[nodiscard]] bool is_interface_name(std::string_view name);
[[nodiscard]] bool is_verbs_name(std::string_view name);
[[nodiscard]] bool is_pci_place(std::string_view text);
[[nodiscard]] bool is_architecture(std::string_view text);
// "trn2.48xlarge": of the catalogue, or of a size that AWS has.
[[nodiscard]] bool is_instance_type(std::string_view name);
// The numbers that a version begins with: "2.30.2-acme" -> "2.30.2".
[[nodiscard]] std::string public_version(std::string_view version);
// "localhost/neuron-agent:1.2.0" -> "neuron-agent:1.2.0"; a tag that is no version goes too.
[[nodiscard]] std::string public_image(std::string_view image);

// Names of an anonymised dump, the same for the same text everywhere: "ip-10-0-1-7.ec2.internal" -> "node-3".
class Replacements {
 public:
  // `kind`: "node", "namespace", "pod". Names of Kubernetes and of this project stay.
  std::string of(const std::string& kind, const std::string& text);
  // Replaces keys and resources; public ones stay, in sentences too, and others keep a domain where they have one:
  // "acme.example/card" -> "example.com/resource-1".
  std::string of_key(const std::string& kind, const std::string& text);
  // Names that sort as the texts do: programs try nodes and pods in the order of their names.
  void number(const std::string& kind, const std::set<std::string>& texts);
  std::string of_pod(const std::string& text);        // "namespace/name"
  std::string of_serial(const std::string& text);     // in the format of serial numbers, which readers check
  std::string of_interface(const std::string& text);  // an RDMA name as the kernel gives it stays

  // In CEL: quoted texts replaced, but domains as above, `drivers` by their replacements, and public attributes.
  // "removed": it has other words than the language and the project's driver, or attributes of another driver.
  std::string in_expression(std::string_view text, const std::set<std::string>& drivers);

  // Names replaced; other words that are not known to be harmless removed, and all that a colon joins: addresses,
  // users.
  [[nodiscard]] std::string in_sentence(std::string_view text) const;

 private:
  std::optional<std::string> in_quotes(const std::string& text, bool is_domain, const std::set<std::string>& drivers);
  // The replacement and the length of the name with a domain that begins `text`, whose slash is there; length 0: none.
  [[nodiscard]] std::pair<std::string, std::size_t> with_domain(std::string_view text, std::size_t slash) const;
  [[nodiscard]] std::string replaced(std::string_view word, bool is_joined) const;

  std::map<std::string, std::map<std::string, std::string>> kinds_;
  std::map<std::string, std::string, std::less<>> all_;
};

// The agent's document and metrics: read as every command reads them, and written again, so that nothing is left but
// what they read. Names in the first call, sentences in the second (`is_last`), when all names are known. What cannot
// be read is emptied. Pure.
void anonymise_report(AgentAnswer& answer, bool is_last, Replacements& names);

}  // namespace neuron::fleet
