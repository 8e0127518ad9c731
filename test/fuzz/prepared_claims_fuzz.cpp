// The file of prepared claims and the CDI files beside it, which other versions write, and crashes damage: reading them
// never fails for what they say, and what is written can be read.

#include <stdlib.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claim_record.h"
#include "test/unit/grant/nodes.h"

namespace {

namespace dra = neuron::plugin::dra;

void require(bool holds) {
  if (!holds) std::abort();
}

// A directory of this process, in memory.
class Directory {
 public:
  Directory() { require(::mkdtemp(path.data()) != nullptr); }
  ~Directory() { std::filesystem::remove_all(path); }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;
  std::string path = "/dev/shm/prepared-claims-fuzz-XXXXXX";
};

const std::string& directory() {
  static const Directory only;
  return only.path;
}

void write(const std::string& name, const std::string& text) {
  std::ofstream(directory() + "/" + name, std::ios::trunc) << text;
}

// The text with a checksum that is right, behind which a fuzzer would not come.
std::string with_checksum(const std::string& body) {
  std::uint64_t sum = 14695981039346656037ULL;
  for (const char byte : body) sum = (sum ^ static_cast<unsigned char>(byte)) * 1099511628211ULL;
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(sum));
  return "{\"checksum\":\"" + std::string(digits) + "\"," + body;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size);
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  static const auto node = neuron::node_of("trn2.48xlarge");
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto claim = dra::parse_record(text)) {
    const auto again = dra::parse_record(dra::to_text(*claim));
    require(again && dra::to_text(*again) == dra::to_text(*claim) && again->held() == claim->held());
  }
  write("k8s.d-claim_uid-1.json", text);
  dra::ClaimCdiFiles cdi(directory(), "d");
  const auto rebuilt = [&] { return cdi.rebuild(node.get()); };
  for (const bool is_whole : {true, false}) {
    write("claims.json", is_whole ? with_checksum(text) : text);
    dra::RecordFile file(directory() + "/claims.json", "boot", rebuilt);
    require(file.read().has_value());
    dra::ClaimRecord claim;
    claim.uid = "uid-new";
    require(file.put(claim).has_value());
    dra::RecordFile other(directory() + "/claims.json", "boot", [] { return std::vector<dra::ClaimRecord>(); });
    require(other.read().has_value() && other.take_news().empty());
    require(other.records().size() == file.records().size() && other.records().contains("uid-new"));
    require(other.release("uid-new").has_value() && !other.knows("uid-new"));
  }
  return 0;
}
