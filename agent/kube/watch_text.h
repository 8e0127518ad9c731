#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"

// What the API server answers to lists and watches (docs: Kubernetes API Concepts, "Efficient detection of changes").
namespace neuron::kube {

// One object of the API. In lists its kind and apiVersion are absent, as servers leave them out there.
struct ApiObject {
  std::string object_namespace;  // "" of what has none
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
  enum class Kind { upsert, remove, bookmark, expired, error };  // expired: of a 410, list anew
  Kind kind = Kind::error;
  ApiObject object{};              // of upsert and remove
  std::string resource_version{};  // of upsert, remove and bookmark; never empty
  std::string words{};             // of expired and error: what the server says
};

// Errors of both: data_corrupt. Pure.
[[nodiscard]] Result<ListPage> parse_list_page(std::string_view text);
[[nodiscard]] Result<WatchLine> parse_watch_line(std::string_view line);

}  // namespace neuron::kube
