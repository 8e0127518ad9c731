#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/kube/answers.h"
#include "agent/kube/api.h"
#include "plugin/dra/slices/slice.h"

namespace neuron::plugin::dra {

inline constexpr const char* kSlicesPath = "/apis/resource.k8s.io/v1/resourceslices";

// The field selector of a node's slices of one driver, not encoded.
[[nodiscard]] std::string slice_selector(const std::string& driver, const std::string& node);

// What the Node object tells.
struct NodeFacts {
  std::string uid;
  std::optional<kube::ServerVersion> kubelet;  // status.nodeInfo.kubeletVersion; nullopt where it is no version
};

// The calls to the API server that publishing takes. Errors: as Api::call and body_of(), but invalid_argument only
// where the server names a field of the object (422), and internal for other refusals of the request (400, 415);
// data_corrupt for an answer that is not what was asked for. Any thread; each blocks as a call does.
class SliceCalls {
 public:
  explicit SliceCalls(kube::Api& api) : api_(api) {}

  // All of them, as new as the server has them.
  [[nodiscard]] Result<std::vector<Slice>> list(const std::string& driver, const std::string& node);
  // Each returns what is stored then. `try_create` stores nothing (docs/reference/dra.md#resource-slices).
  [[nodiscard]] Result<Slice> get(const std::string& name);  // of any driver and node
  [[nodiscard]] Result<Slice> create(const Slice& slice);    // failed_precondition: an object has that name
  [[nodiscard]] Result<Slice> try_create(const Slice& slice);
  [[nodiscard]] Result<Slice> replace(const Slice& slice);  // failed_precondition: somebody else has changed it
  [[nodiscard]] Result<void> remove(const Slice& slice);    // of that uid; one that is gone is no error
  [[nodiscard]] Result<NodeFacts> node(const std::string& name);

 private:
  [[nodiscard]] Result<std::string> body(const kube::ApiCall& call);
  [[nodiscard]] Result<Slice> written(const kube::ApiCall& call);
  kube::Api& api_;
};

}  // namespace neuron::plugin::dra
