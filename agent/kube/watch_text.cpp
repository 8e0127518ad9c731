#include "agent/kube/watch_text.h"

#include <utility>

#include "agent/base/parse.h"
#include "agent/kube/json_text.h"

namespace neuron::kube {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxContinue = std::size_t{8} << 10U;  // it goes into an URL
constexpr std::size_t kMaxVersion = 128;

Result<ApiObject> object_of(json value) {
  ApiObject object;
  object.object_namespace = text_of(value, {"metadata", "namespace"});
  object.name = text_of(value, {"metadata", "name"});
  object.uid = text_of(value, {"metadata", "uid"});
  object.resource_version = text_of(value, {"metadata", "resourceVersion"});
  if (object.name.empty() || object.resource_version.empty() || object.resource_version.size() > kMaxVersion) {
    return fail(ErrorCode::data_corrupt, "an object has no name or no resourceVersion");
  }
  object.json = std::move(value);
  return object;
}

// As client-go takes them (apimachinery: IsResourceExpired, IsGone).
WatchLine error_line(const json& status) {
  WatchLine line;
  const json* code = member_of(status, {"code"});
  const std::string reason = text_of(status, {"reason"});
  const bool is_gone = code != nullptr && code->is_number_integer() && *code == 410;
  line.kind = is_gone || reason == "Expired" || reason == "Gone" ? WatchLine::Kind::expired : WatchLine::Kind::error;
  line.words = printable(text_of(status, {"message"}), 300);
  return line;
}

}  // namespace

Result<ListPage> parse_list_page(std::string_view text) {
  TRY_ASSIGN(json list, parse_object(text, "the list"));
  ListPage page;
  page.resource_version = text_of(list, {"metadata", "resourceVersion"});
  page.next = text_of(list, {"metadata", "continue"});
  if (page.resource_version.empty() || page.resource_version.size() > kMaxVersion || page.next.size() > kMaxContinue) {
    return fail(ErrorCode::data_corrupt, "the list has no resourceVersion, or an unusable continue token");
  }
  const auto items = list.find("items");
  if (items == list.end() || items->is_null()) return page;  // Go's nil
  if (!items->is_array()) return fail(ErrorCode::data_corrupt, "the list has no valid items");
  page.objects.reserve(items->size());
  for (json& item : *items) {
    TRY_ASSIGN(ApiObject object, object_of(std::move(item)));
    page.objects.push_back(std::move(object));
  }
  return page;
}

Result<WatchLine> parse_watch_line(std::string_view text) {
  TRY_ASSIGN(json event, parse_object(text, "a line of the watch"));
  const std::string type = text_of(event, {"type"});
  const auto object = event.find("object");
  if (object == event.end() || !object->is_object()) {
    return fail(ErrorCode::data_corrupt, "a line of the watch has no object");
  }
  if (type == "ERROR") return error_line(*object);
  WatchLine line;
  if (type == "BOOKMARK") {
    line.kind = WatchLine::Kind::bookmark;
    line.resource_version = text_of(*object, {"metadata", "resourceVersion"});
    if (!line.resource_version.empty() && line.resource_version.size() <= kMaxVersion) return line;
    return fail(ErrorCode::data_corrupt, "a bookmark of the watch has no resourceVersion");
  }
  if (type != "ADDED" && type != "MODIFIED" && type != "DELETED") {
    return fail(ErrorCode::data_corrupt, "a line of the watch is of the unknown type " + printable(type, 60));
  }
  line.kind = type == "DELETED" ? WatchLine::Kind::remove : WatchLine::Kind::upsert;
  TRY_ASSIGN(line.object, object_of(std::move(*object)));
  line.resource_version = line.object.resource_version;
  return line;
}

}  // namespace neuron::kube
