#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"

// The simulator's own files of a host, below DIR/.neuron-sim. A directory is a simulated host when it has the marker
// file; no other directory is ever changed.
namespace neuron::sim {

// Relative to the host's directory.
inline constexpr const char* kOwnFolder = ".neuron-sim";
inline constexpr const char* kMarkerFile = ".neuron-sim/host";
// The plan that the host was written from, so that the same host is not written again. The file exists exactly while
// the host is complete: it is removed before the first change and written after the last.
inline constexpr const char* kPlanFile = ".neuron-sim/plan";
inline constexpr const char* kClaimFile = ".neuron-sim/claim";
inline constexpr const char* kSavedFolder = ".neuron-sim/saved";

// Checks that `dir` may become a simulated host, and creates it (parents too) if absent; its content stays.
// Errors: failed_precondition (not empty and no marker, or no directory at all); permission_denied, internal.
[[nodiscard]] Result<void> prepare_directory(const std::string& dir);

// Errors: failed_precondition when `dir` is no simulated host.
[[nodiscard]] Result<void> require_simulated(const std::string& dir);

// Whether `dir` is a simulated host that was written to the end, whatever its type.
[[nodiscard]] bool is_whole_host(const std::string& dir);

// Makes the caller the only process that plays a load on `dir` or rewrites it, until the handle is closed. `neuron-sim
// set` still works. Errors: failed_precondition (no simulated host, or another process has it; the message names it);
// permission_denied, internal.
[[nodiscard]] Result<Fd> claim_host(const std::string& dir);

// Held while `neuron-sim set` or a step of a load changes files; waits for another holder. Errors: failed_precondition
// (no simulated host); permission_denied, internal.
[[nodiscard]] Result<Fd> lock_host(const std::string& dir);

// Whether a path stays below the directory it is relative to, as text: not empty, not absolute, no "..".
[[nodiscard]] bool stays_below(std::string_view path);

// Queries of the file system that do not follow a link at the end of the path. names_in: ascending; empty when
// unreadable.
[[nodiscard]] std::vector<std::string> names_in(const std::string& folder);
[[nodiscard]] std::filesystem::file_type type_of(const std::string& path);
[[nodiscard]] bool is_there(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path);

// The original files of a simulated host, in DIR/.neuron-sim/saved, so that `heal` can undo faults exactly: same bytes,
// mode, kind of file. Each saved file belongs to a target ("neuron3", "neuron3/core1", "rdmap16s25", "host"). Paths are
// relative to DIR, with no link among their parents. One process at a time.
class SavedFiles {
 public:
  explicit SavedFiles(std::string directory) : directory_(std::move(directory)) {}

  // Saves the file, or its absence, and leaves it in place; only the first time for each path.
  [[nodiscard]] Result<void> keep(const std::string& target, const std::string& path) const;

  // Moves the file, link, node or folder away. Errors: not_found when there is none.
  [[nodiscard]] Result<void> move_away(const std::string& target, const std::string& path) const;

  // Restores everything of `target` and its parts ("neuron3" → also "neuron3/core1"; "host" → everything), newest
  // first. Returns the number of restored files. Errors: failed_precondition when the folder of a file is itself away.
  [[nodiscard]] Result<int> restore(const std::string& target) const;

 private:
  struct Entry {
    int number = 0;
    std::string kind, target, path;  // kind: "copy", "moved" or "absent"
  };
  [[nodiscard]] std::vector<Entry> entries() const;  // ascending number
  [[nodiscard]] std::string object_path(int number) const;
  [[nodiscard]] Result<Entry> record(const std::string& target, const std::string& path, const std::string& kind) const;
  [[nodiscard]] Result<void> put_back(const Entry& entry) const;

  std::string directory_;
};

}  // namespace neuron::sim
