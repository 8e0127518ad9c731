#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/fd.h"
#include "agent/base/result.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/prepared_claim.h"

namespace neuron::plugin::dra {

// Whether a uid may be part of a file's name: letters, digits and '-' only, at most 64. Kubernetes' own are UUIDs.
[[nodiscard]] bool is_plain_uid(std::string_view uid);

// The CDI files of claims: k8s.<driver>-claim_<uid>.json in the runtime's directory, one for each claim. Runtimes read
// a file again only when they miss a name, so names hold the uid and are never used again. Not synchronised:
// callers hold the lock of PreparedClaims. Every method blocks on files; errors are from errno, naming the path.
class ClaimCdiFiles {
 public:
  ClaimCdiFiles(std::string directory, const std::string& driver);

  // The file says `text` afterwards; with an empty one it is removed. Makes the directory if it is missing.
  [[nodiscard]] Result<void> write(const std::string& uid, const std::string& text);
  [[nodiscard]] Result<void> remove(const std::string& uid);  // no error when it is not there

  // The directory was removed on the host, and the mount here keeps the old one, in which no file can be created.
  [[nodiscard]] bool is_dead() const;

  // Uids of the files that are there, ascending, and removes those that a crash left half-written.
  [[nodiscard]] std::vector<std::string> uids();

  // Whether its file is there and whole.
  [[nodiscard]] bool has(const std::string& uid) const;

  // The claims as far as their files show them: everything but names and requests. Without `node`, a core counts as its
  // whole device.
  [[nodiscard]] std::vector<PreparedClaim> rebuild(const grant::NodeUnits* node);

 private:
  [[nodiscard]] std::string path_of(const std::string& uid) const;

  const std::string directory_;
  const std::string prefix_;  // "k8s.<driver>-claim_"
};

// The text of a claim's CDI file as it should be now, from the text as it was when the claim was prepared: the numbers
// of verbs nodes are those of `facts`, since they change when a driver is bound anew, and permissions those of today.
// An interface that is away keeps its node, unless that is another one's by now: then it is left out, so that a
// container that is started again fails instead of getting the other interface. Any other text stays as it is. "":
// nothing is left of it. Pure.
[[nodiscard]] std::string newest_cdi_text(const std::string& prepared, const std::string& uid, const GrantFacts& facts);

// Reports files of claims that have gone from the directory, as when another program empties it. One thread at a time.
class CdiWatch {
 public:
  // Makes the directory if it is missing. Blocks on files. nullopt: it cannot be watched.
  [[nodiscard]] static std::optional<CdiWatch> open(const std::string& directory);

  enum class News {
    nothing,
    files_gone,  // some of them
    ended,       // the directory has gone, or news were lost: open another watch
  };
  [[nodiscard]] News take();                               // since it was last called; never blocks
  [[nodiscard]] int fd() const { return inotify_.get(); }  // readable when take() has something

 private:
  explicit CdiWatch(Fd inotify) : inotify_(std::move(inotify)) {}

  Fd inotify_;
};

}  // namespace neuron::plugin::dra
