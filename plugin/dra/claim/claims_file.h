#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim/prepared_claim.h"

// The prepared claims of this node, in one file (docs/adr/0011-dra.md). The kubelet keeps them in its memory only, and
// prepares them again after a restart.
namespace neuron::plugin::dra {

// The file's content and its changes. Other versions of the agent write it too: fields and claims that this one does
// not understand stay as they are. Not synchronised: PreparedClaims lets one at a time have it.
class ClaimsFile {
 public:
  using Claims = std::map<std::string, std::shared_ptr<const PreparedClaim>>;  // by uid
  // Claims without the file, by the CDI files that are there.
  using Rebuild = std::function<std::vector<PreparedClaim>()>;

  // `boot_id`: of the running system; "" = not known. Claims prepared in another boot are no longer in use.
  ClaimsFile(std::string path, std::string boot_id, Rebuild rebuild);

  // Reads the content of the file. A damaged file is set aside as "<path>.damaged"; then, and when there is none, the
  // content is that of `rebuild`, and written. Errors: from errno, naming the path.
  [[nodiscard]] Result<void> read();
  // Problems of the file since the last call; "" = none.
  [[nodiscard]] std::string take_news() { return std::exchange(news_, {}); }

  // Entries of another version that this one cannot read are included, as far as their CDI files show them.
  [[nodiscard]] const Claims& claims() const { return content_.claims; }
  // True too for one that another version wrote, and this one cannot read.
  [[nodiscard]] bool knows(const std::string& uid) const { return content_.texts.contains(uid); }

  // Changes are in the file, whole or not at all, when the call returns; also in claims() unless it fails. Errors: from
  // errno, naming the path. While a claim can be put, room is kept on the disk in which it can be
  // completed, and any can be removed and released, when that is full.
  [[nodiscard]] Result<void> put(const PreparedClaim& claim);
  // Replaces a claim rebuilt from a CDI file: also where that cannot be written, and where the entry is of another
  // version, which stays.
  void learn(const PreparedClaim& claim);
  [[nodiscard]] Result<void> remove(const std::string& uid);  // no error when it is not there

  // Releases are counted. A Prepare that began before its claim was released must not bring it back: it notes
  // releases() when it begins, and asks before it writes.
  [[nodiscard]] std::uint64_t releases() const { return content_.releases; }
  // Removes the claim, known or not, and counts that. Of one that is not known it is no error that the disk is full.
  [[nodiscard]] Result<void> release(const std::string& uid);
  // True too when it is no longer known.
  [[nodiscard]] bool was_released_since(const std::string& uid, std::uint64_t releases) const;

 private:
  struct Content {
    Claims claims;
    std::map<std::string, std::string> texts;                     // of each claim by uid, as it stands in the file
    std::uint64_t releases = 0;                                   // so many, ever
    std::vector<std::pair<std::string, std::uint64_t>> released;  // the newest: uid, and the how-manieth release it was
    std::string boot_id;
    std::string rest = "{}";  // a JSON object: fields of the file that this version does not know
  };

  [[nodiscard]] static Result<Content> parse(std::string_view text);
  [[nodiscard]] static std::string text_of(const Content& content);
  void add_unread();
  [[nodiscard]] Result<void> begin_anew(const std::string& why);
  [[nodiscard]] Result<void> change(const std::string& uid, const PreparedClaim* claim);
  [[nodiscard]] Result<void> write();
  [[nodiscard]] Result<void> write_what_is_left();

  const std::string path_;
  const std::string boot_id_;
  const Rebuild rebuild_;
  std::string text_;  // the file as last read or written
  Content content_;   // what it says, and releases of unknown claims that found no room
  std::string news_;
};

}  // namespace neuron::plugin::dra
