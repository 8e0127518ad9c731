#include "agent/kube/object_watch.h"

#include <algorithm>
#include <utility>

namespace neuron::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr int kPage = 500;                                     // objects
constexpr std::size_t kMaxObjects = 20'000;                    // of one list
constexpr std::size_t kMaxListBytes = std::size_t{32} << 20U;  // of all its pages
constexpr seconds kSound{5};                                   // a watch of this length was a success
constexpr seconds kGrace{30};                                  // for a server to end a watch after its timeoutSeconds

}  // namespace

ObjectWatch::ObjectWatch(Api& api, WatchPlace place, WatchSink& sink, const Clock& clock, const WatchTimes& times,
                         Wait wait)
    : api_(api),
      place_(std::move(place)),
      sink_(sink),
      clock_(clock),
      times_(times),
      wait_(std::move(wait)),
      backoff_(times.first_retry, times.longest_retry) {}

void ObjectWatch::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    if (list(stop)) {
      follow(stop);
    } else if (!stop.stop_requested()) {
      wait_(backoff_.next(), stop);
    }
  }
}

void ObjectWatch::trouble(Error error) const {
  sink_.on_trouble(std::move(error).with_context("watching " + place_.path));
}

std::string ObjectWatch::list_query(const std::string& next) const {
  std::string query =
      place_.field_selector.empty() ? "" : "fieldSelector=" + percent_encoded(place_.field_selector) + "&";
  // Without a limit, which servers before 1.34 answer from their database: the answer is bounded anyway.
  if (age_ == Age::known)
    return query + "resourceVersionMatch=NotOlderThan&resourceVersion=" + percent_encoded(version_);
  query += "limit=" + std::to_string(kPage);
  if (!next.empty()) return query + "&continue=" + percent_encoded(next);
  return age_ == Age::any ? query + "&resourceVersion=0" : query;
}

// The objects of all pages; sets version_ to the list's.
Result<std::vector<ApiObject>> ObjectWatch::read_list(const std::stop_token& stop) {
  std::vector<ApiObject> objects;
  std::string next;
  std::size_t bytes = 0;
  do {
    if (stop.stop_requested()) return fail(ErrorCode::unavailable, "stopped");
    const ApiCall call{.path = place_.path, .query = list_query(next)};
    TRY_ASSIGN(ApiReply reply, api_.call(call));
    TRY_ASSIGN(const std::string body, body_of(std::move(reply), call));
    bytes += body.size();
    TRY_ASSIGN(ListPage page, parse_list_page(body));
    if (bytes > kMaxListBytes || objects.size() + page.objects.size() > kMaxObjects) {
      return fail(ErrorCode::data_corrupt, "the list is too long");
    }
    std::move(page.objects.begin(), page.objects.end(), std::back_inserter(objects));
    if (page.next == next && !next.empty()) return fail(ErrorCode::data_corrupt, "a page of the list repeats");
    next = std::move(page.next);
    if (next.empty()) version_ = std::move(page.resource_version);
  } while (!next.empty());
  return objects;
}

bool ObjectWatch::list(const std::stop_token& stop) {
  auto objects = read_list(stop);
  if (stop.stop_requested()) return false;
  age_ = objects ? Age::known : Age::newest;
  if (!objects) {
    trouble(std::move(objects).error());
    return false;
  }
  const auto fifth = times_.relist.count() / 5;
  listed_ = clock_.now();
  list_again_ =
      listed_ + times_.relist + milliseconds(std::uniform_int_distribution<milliseconds::rep>(-fifth, fifth)(chance_));
  sink_.on_reset();
  for (const ApiObject& object : *objects) sink_.on_upsert(object);
  sink_.on_synced();
  return true;
}

void ObjectWatch::follow(const std::stop_token& stop) {
  Next next = Next::watch;
  while (next == Next::watch && !stop.stop_requested() && clock_.now() < list_again_) {
    const SteadyTime begin = clock_.now();
    next = watch_once(stop);
    if (stop.stop_requested()) return;
    const bool is_forgotten = next == Next::list_at_once && clock_.now() - listed_ >= kSound;
    if (is_forgotten || clock_.now() - begin >= kSound) {
      backoff_.reset();
    } else {
      wait_(backoff_.next(), stop);
    }
  }
}

ObjectWatch::Next ObjectWatch::list_anew(Error why, Next how) {
  age_ = Age::newest;
  trouble(std::move(why));
  return how;
}

ObjectWatch::Next ObjectWatch::watch_once(const std::stop_token& stop) {
  const auto left = std::max(std::chrono::ceil<seconds>(list_again_ - clock_.now()), seconds(1));
  const ApiCall call{
      .path = place_.path,
      .query = (place_.field_selector.empty() ? "" : "fieldSelector=" + percent_encoded(place_.field_selector) + "&") +
               "watch=true&allowWatchBookmarks=true&timeoutSeconds=" + std::to_string(left.count()) +
               "&resourceVersion=" + percent_encoded(version_)};
  Next next = Next::watch;
  auto reply = api_.stream(
      call, [&](std::string_view line) { return take(line, next); }, stop);
  if (next != Next::watch || stop.stop_requested()) return next;
  if (!reply) {
    trouble(std::move(reply).error());
    return Next::watch;
  }
  const int status = reply->status;
  auto body = body_of(*std::move(reply), call);
  if (body) return Next::watch;
  if (status == 410) return list_anew(std::move(body).error(), Next::list_at_once);
  if (status != 429 && status < 500) return list_anew(std::move(body).error());
  trouble(std::move(body).error());
  return Next::watch;
}

// False: the watch ends, and `next` is the next step.
bool ObjectWatch::take(std::string_view text, Next& next) {
  auto line = parse_watch_line(text);
  if (!line) {
    next = list_anew(std::move(line).error());
    return false;
  }
  switch (line->kind) {
    case WatchLine::Kind::expired:  // after some minutes without events, or with a new server
      next = list_anew(make_error(ErrorCode::not_found, "the server ended it: " + line->words), Next::list_at_once);
      return false;
    case WatchLine::Kind::error:
      next = list_anew(make_error(ErrorCode::unavailable, "the server ended it: " + line->words));
      return false;
    case WatchLine::Kind::upsert:
      sink_.on_upsert(line->object);
      break;
    case WatchLine::Kind::remove:
      sink_.on_remove(line->object);
      break;
    case WatchLine::Kind::bookmark:
      break;
  }
  version_ = std::move(line->resource_version);
  return clock_.now() < list_again_ + kGrace;
}

}  // namespace neuron::kube
