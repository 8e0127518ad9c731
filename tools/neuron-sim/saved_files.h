#pragma once

#include <string>
#include <vector>

#include "agent/base/result.h"

namespace neuron::sim {

// What a simulated host looked like before faults were put in, below DIR/.neuron-sim/saved, so that `heal` can undo
// them exactly: same bytes, mode, kind of file. Each saved thing belongs to a target ("neuron3", "neuron3/core1",
// "rdmap16s25", "host"). Paths are relative to DIR, with no link among their parents. One process at a time.
class SavedFiles {
 public:
  explicit SavedFiles(std::string directory) : directory_(std::move(directory)) {}

  // Remembers the file, or that there is none, and leaves it where it is; only the first time for each path.
  [[nodiscard]] Result<void> keep(const std::string& target, const std::string& path) const;

  // Takes the file, link, node or folder away. Errors: not_found when there is none.
  [[nodiscard]] Result<void> move_away(const std::string& target, const std::string& path) const;

  // Puts back all that belongs to `target` or a part of it ("neuron3" → also "neuron3/core1"; "host" → everything),
  // newest first. Returns how many things came back. Errors: failed_precondition when the folder to put something in is
  // itself away.
  [[nodiscard]] Result<int> restore(const std::string& target) const;

 private:
  enum class Kind { copy, moved, absent };
  struct Entry {
    int number = 0;
    Kind kind = Kind::copy;
    std::string target;
    std::string path;
  };
  [[nodiscard]] std::vector<Entry> entries() const;  // ascending number
  [[nodiscard]] std::string object_path(int number) const;
  [[nodiscard]] Result<Entry> record(const std::string& target, const std::string& path, Kind kind) const;
  [[nodiscard]] Result<void> put_back(const Entry& entry) const;

  std::string directory_;
};

}  // namespace neuron::sim
