#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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

// A file that exists but could not be captured. Passive data.
struct Unreadable {
  std::string path;
  std::string reason;  // text, without the path
  friend auto operator<=>(const Unreadable&, const Unreadable&) = default;
};

// The captured files of a machine: a tree in memory, with the folders above each entry. Bounded, so that no host can
// fill the memory: entries beyond the bounds are dropped, and full() is true. Not synchronised.
class Capture {
 public:
  static constexpr std::size_t kMaxEntries = 150'000;  // within what ArchiveBounds accepts
  static constexpr std::uint64_t kMaxBytes = std::uint64_t{200} << 20U;
  static constexpr std::size_t kMaxUnreadable = 1000;

  // Paths are relative to the root, resolved: none of their folders is a link. An entry replaces one at the same path,
  // but a folder leaves what is there.
  void add_folder(std::string_view path);
  void add_file(std::string_view path, std::string text);
  // A link to `target_path`, relative to the root. `text`, the content of the link, is kept when it is a relative path
  // to that target without other links, else replaced by relative_link().
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

// Replaces the identifiers of a machine: serial numbers of devices, instance id, ids of UltraServers and reservations,
// GUIDs and GIDs of EFA interfaces (they hold the MAC address). Consistently: equal ones stay equal, different ones
// different, each in its own format, everywhere in the capture. The new ones count up in the order of paths and reveal
// nothing of the old ones; a second run changes nothing. Zeros and texts in no known format stay. Pure.
void anonymise(Capture& capture);

inline constexpr std::string_view kManifestPath = "MANIFEST.json";

enum class Origin { live, directory };  // a machine, or a directory that was not captured by this program

// The members of MANIFEST.json. Passive data.
struct Manifest {
  std::string tool_version;
  std::string captured_at;    // UTC, "2026-11-21T06:40:00Z"
  std::string instance_type;  // sys/devices/virtual/dmi/id/product_name; "" unknown
  std::string kernel;         // proc/sys/kernel/osrelease; "" unknown
  Origin origin = Origin::live;
  bool with_commands = false;
  bool anonymised = false;
  bool complete = true;  // false: the bounds of a capture were reached
};

// The file MANIFEST.json: the members above and the unreadable files of `capture`, sorted. `previous` is the manifest
// of the captured root, if it has one: its time, version and origin stay and its unreadable files are joined, so that
// capturing a capture changes nothing. A text that is no manifest counts as none. Pure.
[[nodiscard]] std::string manifest_text(Manifest manifest, const Capture& capture,
                                        const std::optional<std::string>& previous);

}  // namespace neuron::gather
