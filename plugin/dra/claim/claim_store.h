#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "agent/base/mutex.h"
#include "agent/grant/node_units.h"
#include "plugin/dra/claim/claim_cdi_files.h"
#include "plugin/dra/claim/prepared_claims.h"

namespace neuron::plugin::dra {

// Claims as files: what is prepared, and the CDI files of that, which other instances of the driver change too. A crash
// at any point leaves what the next call, or repair(), puts right (docs/adr/0011-dra.md). Thread-safe; blocks on files.
class ClaimStore {
 public:
  struct Options {
    std::string driver;
    std::string directory;      // plugins/<driver>; made if missing
    std::string cdi_directory;  // made if missing
    std::string boot_id;        // "" = not known
    // The CDI directory is a mount whose directory was removed on the host: only a new container gets the new one. Any
    // thread; must not block. Empty: not reported.
    std::function<void()> cdi_is_dead{};
    grant::GrantOptions grant{};
  };
  // `node`: the newest scan's, nullptr before the first; asked when the file has to be made anew of CDI files, and for
  // claims that were made so before.
  ClaimStore(Options options, std::function<grant::NodeUnitsPtr()> node);

  struct View {
    std::uint64_t releases = 0;  // for commit()
    ClaimsFile::Claims claims;   // completed ones
  };
  [[nodiscard]] Result<View> view() EXCLUDES(held_mutex_);

  // The claim is prepared as `claim` says, in place of what it was before. `releases`: of a view from before anything
  // was found out about it.
  // Errors: failed_precondition when some of its hardware is held by another claim, which is named, or used by one with
  // another LNC, when others hold devices by the numbers of another LNC of the node, or when it was released since that
  // view; those of PreparedClaims; from errno.
  [[nodiscard]] Result<void> commit(PreparedClaim claim, std::uint64_t releases) EXCLUDES(held_mutex_);

  // The CDI file of a claim that is prepared is there again. Errors: not_found when it is not prepared; from errno.
  [[nodiscard]] Result<void> write_again(const std::string& uid) EXCLUDES(held_mutex_);

  // Nothing of the claim is left, known or not, and a commit() that began earlier does not bring it back.
  [[nodiscard]] Result<void> release(const std::string& uid) EXCLUDES(held_mutex_);

  // The same of a claim that still is as it was in a view; false: it is not, and stays.
  [[nodiscard]] Result<bool> release_if(const std::shared_ptr<const PreparedClaim>& claim) EXCLUDES(held_mutex_);

  // The claim has that name: of one that was rebuilt without.
  [[nodiscard]] Result<void> set_name(const std::string& uid, const std::string& claim_namespace,
                                      const std::string& name) EXCLUDES(held_mutex_);

  // Writes CDI files of prepared claims that are missing or differ from newest_cdi_text() by the newest scan, removes
  // those of no claim, and drops claims that a crash left half-prepared. Errors: the first one; the rest is still done.
  [[nodiscard]] Result<void> repair() EXCLUDES(held_mutex_);

  // A repair has not come back from its files: all other calls are refused at once (unavailable), instead of hanging as
  // well.
  void set_hanging(bool hangs) { hangs_ = hangs; }

  // As this instance has last seen the file. Names of pool devices that claims hold (admin access does not), ascending.
  [[nodiscard]] std::vector<std::string> held_devices() const EXCLUDES(held_mutex_);
  [[nodiscard]] HeldNumbering held_numbering() const EXCLUDES(held_mutex_);
  [[nodiscard]] bool is_held(const Hardware& hardware) const EXCLUDES(held_mutex_);
  [[nodiscard]] ClaimsFile::Claims held_claims() const EXCLUDES(held_mutex_);  // the same, whole

 private:
  using Work = PreparedClaims::Work;
  [[nodiscard]] Result<void> edit(const Work& work) EXCLUDES(held_mutex_);
  [[nodiscard]] Result<void> edit_now(const Work& work) EXCLUDES(held_mutex_);  // whatever hangs
  void note_held(const ClaimsFile& file) EXCLUDES(held_mutex_);
  void refine(ClaimsFile& file) const;
  // Of the newest scan. Before the first one, a file that is there stays: it may be newer than the record. Reports
  // a directory that is dead.
  [[nodiscard]] Result<void> write_cdi(const PreparedClaim& claim);
  [[nodiscard]] Result<void> repair_one(ClaimsFile& file, const PreparedClaim& claim);

  const std::string files_;  // their place, for messages
  std::atomic<bool> hangs_{false};
  const std::function<void()> cdi_is_dead_;
  const std::function<grant::NodeUnitsPtr()> node_;
  const grant::GrantOptions grant_;
  ClaimCdiFiles cdi_;        // under the lock of prepared_
  PreparedClaims prepared_;  // its Rebuild uses cdi_

  mutable Mutex held_mutex_;
  ClaimsFile::Claims claims_ GUARDED_BY(held_mutex_);
};

// Why the hardware cannot be had: another claim than `uid` holds some of it. nullopt: no claim does. Pure.
[[nodiscard]] std::optional<Error> conflict(const ClaimsFile::Claims& claims, const std::string& uid,
                                            const Hardware& hardware);

}  // namespace neuron::plugin::dra
