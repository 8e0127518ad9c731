#include "tools/neuron-gather/capture.h"

#include <algorithm>
#include <filesystem>

namespace neuron::gather {
namespace {

std::string_view folder_of(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view{} : path.substr(0, slash);
}

// Whether the relative `text` of a link at `path` is a way to `target` that uses no other link.
bool leads_to(std::string_view path, std::string_view text, std::string_view target) {
  if (text.empty() || text.starts_with('/')) return false;
  const auto end = (std::filesystem::path(folder_of(path)) / text).lexically_normal();
  return end == std::filesystem::path(target);
}

}  // namespace

bool Capture::reserve(std::string_view path, std::size_t bytes) {
  const std::uint64_t needed = bytes_ + path.size() + bytes;
  if (entries_.size() >= kMaxEntries || needed > kMaxBytes) {
    full_ = true;
    return false;
  }
  bytes_ = needed;
  return true;
}

void Capture::add_folder(std::string_view path) {
  // From the folder upward until one is known.
  for (; !path.empty() && !entries_.contains(std::string(path)); path = folder_of(path)) {
    if (!reserve(path, 0)) return;
    entries_.emplace(path, Entry{});
  }
}

void Capture::add_file(std::string_view path, std::string text) {
  if (!reserve(path, text.size())) return;
  add_folder(folder_of(path));
  text.shrink_to_fit();  // a reader's buffer is a thousand times larger than most texts
  entries_.insert_or_assign(std::string(path), Entry{EntryKind::file, std::move(text)});
}

void Capture::add_link(std::string_view path, std::string_view target_path, std::string_view text) {
  std::string kept = leads_to(path, text, target_path) ? std::string(text) : relative_link(path, target_path);
  if (!reserve(path, kept.size())) return;
  add_folder(folder_of(path));
  entries_.insert_or_assign(std::string(path), Entry{EntryKind::link, std::move(kept)});
}

void Capture::add_unreadable(std::string_view path, std::string_view reason) {
  Unreadable one{std::string(path), std::string(reason)};
  const bool known = std::find(unreadable_.begin(), unreadable_.end(), one) != unreadable_.end();
  if (!known && unreadable_.size() < kMaxUnreadable) unreadable_.push_back(std::move(one));
}

const Entry* Capture::find(const std::string& path) const {
  const auto at = entries_.find(path);
  return at == entries_.end() ? nullptr : &at->second;
}

std::size_t Capture::file_count() const {
  return static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const auto& entry) { return entry.second.kind == EntryKind::file; }));
}

std::string relative_link(std::string_view from, std::string_view to) {
  std::string_view folder = folder_of(from);
  // Strip what both have in common, whole components only.
  for (;;) {
    const std::string_view left = folder.substr(0, folder.find('/'));
    if (left.empty() || left != to.substr(0, to.find('/'))) break;
    folder.remove_prefix(std::min(left.size() + 1, folder.size()));
    to.remove_prefix(std::min(left.size() + 1, to.size()));
  }
  std::string text;
  if (!folder.empty()) text = "../";
  for (const char c : folder) {
    if (c == '/') text += "../";
  }
  text += to;
  while (text.ends_with('/')) text.pop_back();
  return text.empty() ? "." : text;
}

}  // namespace neuron::gather
