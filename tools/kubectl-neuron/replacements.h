#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tools/kubectl-neuron/documents.h"

namespace neuron::fleet {

// Names of an anonymised dump, the same for the same text everywhere: "ip-10-0-1-7.ec2.internal" -> "node-3".
class Replacements {
 public:
  // `kind`: "node", "namespace", "pod". Names of Kubernetes and of this project stay.
  std::string of(const std::string& kind, const std::string& text);
  std::string of_pod(const std::string& text);        // "namespace/name"
  std::string of_serial(const std::string& text);     // in the format of serial numbers, which readers check
  std::string of_interface(const std::string& text);  // an RDMA name as the kernel gives it stays

  // Names replaced; other words that are not known to be harmless removed, and all that a colon joins: addresses,
  // users.
  [[nodiscard]] std::string in_sentence(std::string_view text) const;

 private:
  [[nodiscard]] std::string replaced(std::string_view word, bool is_joined) const;

  std::map<std::string, std::map<std::string, std::string>> kinds_;
  std::map<std::string, std::string, std::less<>> all_;
};

// The agent's document and metrics: read as every command reads them, and written again, so that nothing is left but
// what they read. Names in the first call, sentences in the second (`is_last`), when all names are known. What cannot
// be read is emptied. Pure.
void anonymise_report(AgentAnswer& answer, bool is_last, Replacements& names);

}  // namespace neuron::fleet
