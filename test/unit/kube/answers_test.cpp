#include <gmock/gmock.h>

#include "agent/kube/answers.h"
#include "test/fakes/fake_api.h"

namespace neuron::kube {
namespace {

TEST(JsonText, MembersOfAnyType) {
  const auto pod = parse_object(R"({"metadata":{"name":"p","labels":[1]},"n":7})", "it");
  ASSERT_TRUE(pod);
  EXPECT_EQ(text_of(*pod, {"metadata", "name"}), "p");
  EXPECT_EQ(text_of(*pod, {"metadata", "labels", "a"}), "");
  EXPECT_EQ(text_of(*pod, {"n"}), "");
  EXPECT_EQ(text_of(*pod, {"none", "x"}), "");
  EXPECT_NE(member_of(*pod, {"metadata", "labels"}), nullptr);
}

TEST(JsonText, DepthIsBounded) {
  const auto nested = [](std::size_t depth) {
    std::string text = R"({"a[[[":)";
    return text.append(depth - 1, '[').append(depth - 1, ']') + "}";
  };
  EXPECT_TRUE(parse_object(nested(64), "it"));
  EXPECT_EQ(parse_object(nested(65), "the answer").error().message, "the answer is not a JSON object");
  EXPECT_FALSE(parse_object(std::string(1'000'000, '['), "it"));
  for (const char* text : {"", "[]", "7", "{", "{}x", "\"{}\"", "{\"a\":\"\xff\"}"})
    EXPECT_FALSE(parse_object(text, "it")) << text;
}

std::string version_of(const std::string& text) {
  const auto version = parse_server_version(text);
  return version ? version->text() : version.error().message;
}

TEST(ServerVersionTest, OfEverybodysServers) {
  EXPECT_EQ(version_of(R"({"major":"1","minor":"36","gitVersion":"v1.36.3"})"), "1.36.3");
  EXPECT_EQ(version_of(R"({"gitVersion":"v1.34.2-eks-113cf36"})"), "1.34.2");
  EXPECT_EQ(version_of(R"({"gitVersion":"1.33.10+k3s1"})"), "1.33.10");
  EXPECT_EQ(version_of(R"({"major":"1","minor":"35+","gitVersion":"unknown"})"), "1.35.0");
  for (const char* text :
       {R"({"gitVersion":"v1.36"})", R"({"gitVersion":"v99999.1.2"})", R"({"major":1,"minor":36})", "{}"}) {
    EXPECT_EQ(version_of(text), "the answer to /version has no version") << text;
  }
  EXPECT_LT((ServerVersion{1, 9, 9}), (ServerVersion{1, 36, 0}));
}

TEST(ServerVersionTest, Asked) {
  fakes::FakeApi api;
  EXPECT_EQ(server_version(api)->text(), "1.36.3");
  api.fail_next(1, 503);
  EXPECT_EQ(server_version(api).error().code, ErrorCode::unavailable);
}

TEST(WatchText, Lists) {
  const auto page = parse_list_page(R"({"metadata":{"resourceVersion":"7","continue":"x"},"items":[
      {"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"5"},"spec":1}]})");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->resource_version, "7");
  EXPECT_EQ(page->next, "x");
  ASSERT_EQ(page->objects.size(), 1U);
  EXPECT_EQ(page->objects[0].object_namespace + page->objects[0].name + page->objects[0].uid, "nau");
  EXPECT_EQ(page->objects[0].json["spec"], 1);
  EXPECT_TRUE(parse_list_page(R"({"metadata":{"resourceVersion":"7"},"items":null})"));
  for (const char* text :
       {R"({"items":[]})", R"({"metadata":{"resourceVersion":""},"items":[]})",
        R"({"metadata":{"resourceVersion":"7"},"items":{}})", R"({"metadata":{"resourceVersion":"7"},"items":[1]})",
        R"({"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]})"}) {
    EXPECT_EQ(parse_list_page(text).error().code, ErrorCode::data_corrupt) << text;
  }
}

TEST(WatchText, Lines) {
  using Kind = WatchLine::Kind;
  const std::string object = R"({"metadata":{"name":"a","resourceVersion":"5"}})";
  const auto kind = [](const std::string& type, const std::string& of) {
    const auto line = parse_watch_line(R"({"type":")" + type + R"(","object":)" + of + "}");
    return line ? std::optional(line->kind) : std::nullopt;
  };
  EXPECT_EQ(kind("ADDED", object), Kind::upsert);
  EXPECT_EQ(kind("MODIFIED", object), Kind::upsert);
  EXPECT_EQ(kind("DELETED", object), Kind::remove);
  EXPECT_EQ(kind("BOOKMARK", R"({"metadata":{"resourceVersion":"5"}})"), Kind::bookmark);
  EXPECT_EQ(kind("ERROR", R"({"code":410})"), Kind::expired);
  EXPECT_EQ(kind("ERROR", R"({"reason":"Expired"})"), Kind::expired);
  EXPECT_EQ(kind("ERROR", R"({"code":500})"), Kind::error);
  EXPECT_EQ(kind("OTHER", object), std::nullopt);
  EXPECT_EQ(kind("ADDED", "{}"), std::nullopt);
  EXPECT_EQ(kind("BOOKMARK", "{}"), std::nullopt);
  EXPECT_EQ(kind("ADDED", "7"), std::nullopt);
}

// A policy, a webhook and a validation all answer with 4xx; only the validation of a field is about the data.
TEST(StatusError, OnlyAFieldMakesDataInvalid) {
  const auto error = [](int status, const std::string& message, const std::string& details) {
    return status_error({status, R"({"kind":"Status","message":")" + message + R"(","details":)" + details + "}"},
                        "POST /x");
  };
  const Error field = error(422, "x is invalid: spec.devices: too many",
                            R"({"causes":[{"reason":"FieldValueTooMany","message":"m","field":"spec.devices"}]})");
  EXPECT_EQ(field.code, ErrorCode::invalid_argument);
  EXPECT_EQ(field.message, "POST /x answers 422: x is invalid: spec.devices: too many");
  for (const char* details :
       {R"({"causes":[{"message":"ValidatingAdmissionPolicy 'p' denied request: m"}]})", "{}", "null", "7",
        R"({"causes":[{"message":"m","field":""}]})", R"({"causes":[{"message":"m","field":7}]})",
        R"({"causes":{"field":"a"}})", R"({"causes":["field"]})"}) {
    const Error denied = error(422, "no", details);
    EXPECT_EQ(denied.code, ErrorCode::permission_denied) << details;
    EXPECT_EQ(denied.message, "POST /x answers 422: no (denied by an admission policy or webhook)") << details;
  }
  const Error by_policy = error(403, "ValidatingAdmissionPolicy denied", R"({"causes":[{"message":"m"}]})");
  EXPECT_EQ(by_policy.message,
            "POST /x answers 403: ValidatingAdmissionPolicy denied (denied by an admission policy or webhook)");
  for (const int status : {400, 403, 409, 422, 500}) {
    const Error by_webhook = error(status, R"(admission webhook \"w\" denied the request: m)", "{}");
    EXPECT_EQ(by_webhook.code, ErrorCode::permission_denied) << status;
    EXPECT_TRUE(by_webhook.message.ends_with("(denied by an admission policy or webhook)")) << by_webhook.message;
  }
  const Error by_role = error(403, "User cannot list nodes", "{}");
  EXPECT_EQ(by_role.code, ErrorCode::permission_denied);
  EXPECT_TRUE(by_role.message.ends_with("(the service account needs a role that allows it)")) << by_role.message;
  EXPECT_EQ(status_error({422, "no JSON"}, "POST /x").code, ErrorCode::permission_denied);
  EXPECT_EQ(error(400, "the object is unrecognized", "{}").code, ErrorCode::invalid_argument);
}

TEST(PercentEncoded, AllButPlainLetters) {
  EXPECT_EQ(percent_encoded("spec.nodeName=a/b c"), "spec.nodeName%3Da%2Fb%20c");
  EXPECT_EQ(percent_encoded("\xc3\xa4~_-"), "%C3%A4~_-");
}

}  // namespace
}  // namespace neuron::kube
