#include "plugin/dra/slices/slice_calls.h"

#include <nlohmann/json.hpp>

#include "agent/kube/answers.h"
#include "plugin/dra/slices/slice_text.h"

namespace neuron::plugin::dra {
namespace {

using kube::ApiCall;
using kube::Method;

std::string path_of(const std::string& name) {
  return std::string(kSlicesPath) + "/" + kube::percent_encoded(name);
}

}  // namespace

std::string slice_selector(const std::string& driver, const std::string& node) {
  return "spec.driver=" + driver + ",spec.nodeName=" + node;
}

Result<std::string> SliceCalls::body(const ApiCall& call) {
  constexpr int kInvalid = 422;
  TRY_ASSIGN(kube::ApiReply reply, api_.call(call));
  const int status = reply.status;
  auto body = kube::body_of(std::move(reply), call);
  if (!body && body.error().code == ErrorCode::invalid_argument && status != kInvalid) {
    body.error().code = ErrorCode::internal;  // of the request, which says nothing about the data
  }
  return body;
}

Result<Slice> SliceCalls::written(const ApiCall& call) {
  TRY_ASSIGN(const std::string text, body(call));
  return parse_slice(text);
}

Result<std::vector<Slice>> SliceCalls::list(const std::string& driver, const std::string& node) {
  constexpr int kMaxPages = 16;
  const std::string selector = "fieldSelector=" + kube::percent_encoded(slice_selector(driver, node)) + "&limit=100";
  std::vector<Slice> all;
  std::string next;
  for (int page = 0; page < kMaxPages; ++page) {
    const std::string behind = next.empty() ? "" : "&continue=" + kube::percent_encoded(next);
    TRY_ASSIGN(const std::string text, body({.path = kSlicesPath, .query = selector + behind}));
    TRY_ASSIGN(SliceList list, parse_slice_list(text));
    for (Slice& slice : list.slices) {
      // A server that does not know the selector shows everybody's.
      if (slice.driver == driver && slice.node == node) all.push_back(std::move(slice));
    }
    next = std::move(list.continue_token);
    if (next.empty()) return all;
  }
  return fail(ErrorCode::data_corrupt, "the API server's list of ResourceSlices does not end");
}

Result<Slice> SliceCalls::get(const std::string& name) {
  return written({.path = path_of(name)});
}

Result<Slice> SliceCalls::create(const Slice& slice) {
  return written({.method = Method::create, .path = kSlicesPath, .body = slice_json(slice)});
}

Result<Slice> SliceCalls::try_create(const Slice& slice) {
  return written({.method = Method::create, .path = kSlicesPath, .query = "dryRun=All", .body = slice_json(slice)});
}

Result<Slice> SliceCalls::replace(const Slice& slice) {
  return written({.method = Method::replace, .path = path_of(slice.name), .body = slice_json(slice)});
}

Result<void> SliceCalls::remove(const Slice& slice) {
  const std::string options =
      nlohmann::json{{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"preconditions", {{"uid", slice.uid}}}}.dump();
  const auto done = body({.method = Method::remove, .path = path_of(slice.name), .body = options});
  if (!done && done.error().code != ErrorCode::not_found) return fail(done.error());
  return {};
}

Result<NodeFacts> SliceCalls::node(const std::string& name) {
  TRY_ASSIGN(const std::string text, body({.path = "/api/v1/nodes/" + kube::percent_encoded(name)}));
  TRY_ASSIGN(const nlohmann::json object, kube::parse_object(text, "the answer for node " + name));
  NodeFacts facts{kube::text_of(object, {"metadata", "uid"}),
                  kube::parse_git_version(kube::text_of(object, {"status", "nodeInfo", "kubeletVersion"}))};
  if (facts.uid.empty())
    return fail(ErrorCode::data_corrupt, "the API server returned node " + name + " without a uid");
  return facts;
}

}  // namespace neuron::plugin::dra
