#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace neuron::gather {

enum class EntryKind { folder, file, link };

// Passive data.
struct Entry {
  EntryKind kind = EntryKind::folder;
  std::string text;  // a file's content, a link's (relative) target
  friend bool operator==(const Entry&, const Entry&) = default;
};

// Something that is there but could not be captured. Passive data.
struct Unreadable {
  std::string path;
  std::string reason;  // for people, without the path
  friend auto operator<=>(const Unreadable&, const Unreadable&) = default;
};

// What was captured of a machine: a file tree in memory. Folders above an entry are there too. Bounded, so that no host
// can fill the memory: what does not fit is dropped, which full() tells. Not synchronised.
class Capture {
 public:
  static constexpr std::size_t kMaxEntries = 150'000;  // within what ArchiveBounds accepts
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{200} << 20U;
  static constexpr std::size_t kMaxUnreadable = 1000;

  // Paths are relative to the root, resolved: none of their folders is a link. An entry replaces one at the same path,
  // but a folder leaves what is there.
  void add_folder(std::string_view path);
  void add_file(std::string_view path, std::string text);
  // A link to `target_path`, relative to the root. `text` is what the link said; it is kept when it is a relative path
  // that leads there by itself, else replaced by one that does.
  void add_link(std::string_view path, std::string_view target_path, std::string_view text);
  void add_unreadable(std::string_view path, std::string_view reason);

  [[nodiscard]] bool contains(const std::string& path) const { return entries_.contains(path); }
  [[nodiscard]] const Entry* find(const std::string& path) const;
  [[nodiscard]] const std::map<std::string, Entry>& entries() const { return entries_; }  // a folder before its content
  [[nodiscard]] std::map<std::string, Entry>& entries() { return entries_; }
  [[nodiscard]] const std::vector<Unreadable>& unreadable() const { return unreadable_; }  // in the order met
  [[nodiscard]] std::size_t file_count() const;
  [[nodiscard]] bool full() const { return full_; }

 private:
  [[nodiscard]] bool reserve(std::string_view path, std::size_t bytes);

  std::map<std::string, Entry> entries_;
  std::vector<Unreadable> unreadable_;
  std::uint64_t bytes_ = 0;
  bool full_ = false;
};

// The text of a link at `from` that leads to `to`, both relative to the same root: ("a/b/link", "a/c/d") -> "../c/d".
[[nodiscard]] std::string relative_link(std::string_view from, std::string_view to);

}  // namespace neuron::gather
