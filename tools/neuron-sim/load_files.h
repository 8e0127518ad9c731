#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/base/fd.h"
#include "agent/base/result.h"

namespace neuron::sim {

// Changes files of a simulated host while others read them: a new text appears atomically (rename), with the
// mode of the old one. Anything but a plain file, or text in place of a number, comes from `neuron-sim set` and stays
// as it is; absent files stay absent. Paths are relative to the host's directory.
//
// After the first failure (no space, no rights) every further call does nothing; state() holds that failure.
// Not thread-safe.
class LoadFiles {
 public:
  // Errors: failed_precondition (`dir` is no simulated host), not_found, permission_denied.
  [[nodiscard]] static Result<LoadFiles> open(const std::string& dir);

  // The text of a plain file of at most 64 KiB; nullopt for anything else.
  [[nodiscard]] std::optional<std::string> read(const std::string& path) const;

  // Puts `text` in the place of a plain file.
  void replace(const std::string& path, std::string_view text);
  // The same where there is nothing yet; its folder must be there.
  void create(const std::string& path, std::string_view text, mode_t mode = 0444);
  // Adds to a counter; the text must be one decimal number. Nothing happens for growth 0.
  void add(const std::string& path, std::uint64_t growth);
  // Replaces one decimal number by another.
  void set(const std::string& path, std::uint64_t value);

  void make_folder(const std::string& path);  // fine if it is there
  void make_link(const std::string& path, const std::string& target);
  void move(const std::string& from, const std::string& to);  // fine if `from` is gone
  void remove_folder(const std::string& path);                // recursively; fine if it is gone

  [[nodiscard]] const Result<void>& state() const { return state_; }

 private:
  LoadFiles(std::string dir, Fd handle) : dir_(std::move(dir)), handle_(std::move(handle)) {}
  struct Plain {
    std::string text;
    mode_t mode = 0;
  };
  [[nodiscard]] std::optional<Plain> read_plain(const std::string& path) const;
  void write(const std::string& path, std::string_view text, mode_t mode);
  void note(int os_errno, const std::string& path);

  std::string dir_;
  Fd handle_;
  Result<void> state_;
};

}  // namespace neuron::sim
