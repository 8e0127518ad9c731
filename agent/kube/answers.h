#pragma once

#include <compare>
#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "agent/kube/api.h"

// Foreign JSON, and the API server's answers: lists and watches (docs: Kubernetes API Concepts, "Efficient detection of
// changes"), and its version, which decides the shape of slices.
namespace neuron::kube {

inline constexpr std::size_t kMaxObjectBytes = std::size_t{2} << 20U;  // above what etcd keeps of one object

inline constexpr std::size_t kMaxDepth = 64;  // copying, comparing or printing deeper JSON would exhaust the stack

// Brackets outside strings are nested at most kMaxDepth deep. Pure.
[[nodiscard]] bool is_shallow(std::string_view text);

// An object, nested at most kMaxDepth deep. Errors:
// data_corrupt; `what` begins the message. Pure.
[[nodiscard]] Result<nlohmann::json> parse_object(std::string_view text, std::string_view what);

// Objects of a user's file: YAML as kubectl reads it, or JSON, in documents between lines of --- or one JSON object
// after another; empty ones are left out. Unlike kubectl it refuses tags and a key that is there twice. Errors:
// invalid_argument, with the document's number and the line: no YAML or JSON, no object, nested more than kMaxDepth
// deep, more than 2 million values or 64 MiB once anchors are expanded. Pure; a few seconds per 10 MB of YAML.
[[nodiscard]] Result<std::vector<nlohmann::json>> read_documents(std::string_view text);

// The member of `value` along `names`: member_of(pod, {"metadata", "name"}); nullptr where there is none. Unlike
// nlohmann's accessors it does not throw where a value has another type. Pure.
[[nodiscard]] const nlohmann::json* member_of(const nlohmann::json& value, std::initializer_list<const char*> names);

// That member as a string; "" where it is absent or no string. Pure.
[[nodiscard]] std::string text_of(const nlohmann::json& value, std::initializer_list<const char*> names);

// Fields of foreign JSON that may be missing or of another type. member: a null where `object` is no object or lacks
// it; lives as long as `object`, as list_of does, which is empty where the member is no list. text_of: "" also for a
// text of more than `max_bytes`, which no name in the API has. Pure.
[[nodiscard]] const nlohmann::json& member(const nlohmann::json& object, std::string_view key);
[[nodiscard]] const nlohmann::json& list_of(const nlohmann::json& object, std::string_view key);
[[nodiscard]] std::string text_of(const nlohmann::json& object, std::string_view key, std::size_t max_bytes = 253);
[[nodiscard]] bool is_true(const nlohmann::json& object, std::string_view key);

// A label of an object; nullopt where it has none. `answer` is foreign and of any size, `where` begins the messages.
// Errors: data_corrupt. Pure.
[[nodiscard]] Result<std::optional<std::string>> label_in(std::string_view answer, const std::string& label,
                                                          const std::string& where);

// An API object. In lists servers leave out its kind and apiVersion.
struct ApiObject {
  std::string object_namespace;  // "" of a cluster-scoped object
  std::string name;              // never empty
  std::string uid;
  std::string resource_version;
  nlohmann::json json;  // an object, nested at most 64 deep; foreign
};

struct ListPage {
  std::vector<ApiObject> objects;
  std::string resource_version;  // never empty
  std::string next;              // for the query's `continue`; "" on the last page
};

struct WatchLine {
  enum class Kind { upsert, remove, bookmark, expired, error };  // expired: of a 410, list again
  Kind kind = Kind::error;
  ApiObject object{};              // of upsert and remove
  std::string resource_version{};  // of upsert, remove and bookmark; never empty
  std::string words{};             // of expired and error: the server's message
};

// Errors of both: data_corrupt. Pure.
[[nodiscard]] Result<ListPage> parse_list_page(std::string_view text);
[[nodiscard]] Result<WatchLine> parse_watch_line(std::string_view line);

// Kubernetes' quantities, in every form that it reads: a sign, decimals, all suffixes. parse_quantity: those that a
// 64-bit integer can hold: "8", "96Gi", "2k", "1e3", "4000m", "1.5k"; else nullopt.
[[nodiscard]] std::optional<std::int64_t> parse_quantity(std::string_view text);
// In thousandths, rounded up, also of fractions: "1.5", "500m", "10n", "-0.5"; of what is more than fits the largest
// number, or its negative. nullopt: no quantity.
[[nodiscard]] std::optional<std::int64_t> parse_thousandths(std::string_view text);
// "96Gi" where it is a multiple of a binary unit, in the greatest such unit; else decimal digits. Pure.
[[nodiscard]] std::string quantity_text(std::int64_t value);

struct ServerVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;  // 0 where unknown
  friend auto operator<=>(const ServerVersion&, const ServerVersion&) = default;

  [[nodiscard]] std::string text() const;  // "1.36.3"
};

// A gitVersion or kubeletVersion: "v1.36.3", "v1.34.2-eks-113cf36", "v1.33.1+k3s1"; nullopt for other text. Pure.
[[nodiscard]] std::optional<ServerVersion> parse_git_version(std::string_view text);

// The answer to /version: by gitVersion, else by major and minor ("36+"). Errors: data_corrupt. Pure.
[[nodiscard]] Result<ServerVersion> parse_server_version(std::string_view answer);

// Asks the server for its version, which every service account may do (system:discovery, system:public-info-viewer).
// Errors: also those of Api::call and body_of(). Blocks as calls do; any thread.
[[nodiscard]] Result<ServerVersion> server_version(Api& api);

}  // namespace neuron::kube
