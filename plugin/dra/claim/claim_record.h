#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim/claim_plan.h"
#include "plugin/dra/claim/claim_request.h"

// The record of a claim that is prepared, and the file of all records (docs/adr/0011-dra.md). The kubelet keeps the
// answers in its memory only, and asks again when they are gone.
namespace neuron::plugin::dra {

using Environment = std::map<std::string, std::string>;

struct RecordedRequest {
  RequestShare share;
  Environment environment;
};

struct ClaimRecord {
  // Not completed: its CDI file may or may not be there, and the kubelet has no answer. Only a crash leaves that
  // behind, as a claim is recorded under one lock; it holds nothing.
  bool is_completed = false;
  std::string claim_namespace;  // "" with `name`: not known, as it was rebuilt from its CDI file
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<RecordedRequest> requests;
  std::vector<PreparedDevice> devices;  // as answered to the kubelet
  std::string cdi_text;                 // of its file, written again when that is gone; "" = it has none
  // The node's LNC by which cores were numbered then; nullopt: not known, as of claims of an older version.
  std::optional<int> node_lnc{};
  // The longest grace period of the pods that it was prepared for; nullopt: not known, as some could not be read.
  std::optional<std::chrono::seconds> grace{};
  // Of an entry of another version that this one cannot read: the content is that of its CDI file. Not kept on disk;
  // the entry stays as it is until the claim is prepared anew or released.
  bool is_unread = false;

  // Hardware held exclusively: none by admin access, and none before the claim is completed.
  [[nodiscard]] Hardware held() const;
  // Whether the kubelet can be answered without the API server: not when rebuilt from a CDI file.
  [[nodiscard]] bool is_whole() const;
  // "default/name (uid …)", or "with uid …".
  [[nodiscard]] std::string shown() const;
};

// As one JSON object, and back. Fields that this version does not know are ignored. Errors: data_corrupt when it is no
// object with a uid, a field that is known has another type, or the state is another than completed or started. Pure.
[[nodiscard]] std::string to_text(const ClaimRecord& record);
[[nodiscard]] Result<ClaimRecord> parse_record(std::string_view text);

// The file of all records and its changes. Other versions of the agent write it too: fields and entries that this one
// does not understand stay as they are. Not synchronised: only LockedRecordFile gives access. Blocks on files.
class RecordFile {
 public:
  // The records that the CDI files allow to rebuild.
  using Rebuild = std::function<std::vector<ClaimRecord>()>;

  // `boot_id`: of the running system; "" = not known. Claims prepared in another boot are no longer in use.
  RecordFile(std::string path, std::string boot_id, Rebuild rebuild);

  // Reads the content of the file. A damaged file is set aside as "<path>.damaged"; then, and when there is none, the
  // content is that of `rebuild`, and written. Errors: from errno, naming the path.
  [[nodiscard]] Result<void> read();
  // Problems of the file since the last call; "" = none.
  [[nodiscard]] std::string take_news() { return std::exchange(news_, {}); }

  // Also entries of another version that this one cannot read, as far as their CDI files show them.
  [[nodiscard]] const ClaimRecords& records() const { return content_.records; }
  // True too for one that another version wrote, and this one cannot read.
  [[nodiscard]] bool knows(const std::string& uid) const { return content_.texts.contains(uid); }

  // Changes are in the file, whole or not at all, when the call returns; also in records() unless it fails. Errors:
  // from errno, naming the path. While a record can be put, room is kept on the disk in which it can be completed, and
  // any can be removed and released, when that is full.
  [[nodiscard]] Result<void> put(const ClaimRecord& record);
  // Replaces a record rebuilt from a CDI file: in records() also where that cannot be written, and where the entry is
  // of another version, which stays.
  void learn(const ClaimRecord& record);
  [[nodiscard]] Result<void> remove(const std::string& uid);  // no error when it is not there

  // Releases are counted. A Prepare that began before its claim was released must not bring it back: it keeps
  // releases() of its begin, and asks before it writes.
  [[nodiscard]] std::uint64_t releases() const { return content_.releases; }
  // Removes the record, known or not, and counts that. Of one that is not known it is no error that the disk is full.
  [[nodiscard]] Result<void> release(const std::string& uid);
  // True too when it is not known any more.
  [[nodiscard]] bool was_released_since(const std::string& uid, std::uint64_t releases) const;

 private:
  struct Content {
    ClaimRecords records;
    std::map<std::string, std::string> texts;                     // of each entry by uid, as it is in the file
    std::uint64_t releases = 0;                                   // so many, ever
    std::vector<std::pair<std::string, std::uint64_t>> released;  // the newest: uid, and the number of its release
    std::string boot_id;
    std::string rest = "{}";  // a JSON object: fields of the file that this version does not know
  };

  [[nodiscard]] static Result<Content> parse(std::string_view text);
  [[nodiscard]] static std::string text_of(const Content& content);
  void add_unread();
  [[nodiscard]] Result<void> begin_anew(const std::string& why);
  [[nodiscard]] Result<void> change(const std::string& uid, const ClaimRecord* record);
  [[nodiscard]] Result<void> write();
  [[nodiscard]] Result<void> write_with_reserve();

  const std::string path_;
  const std::string boot_id_;
  const Rebuild rebuild_;
  std::string text_;  // the file as last read or written
  Content content_;   // what it says, and releases of unknown claims that found no room
  std::string news_;
};

}  // namespace neuron::plugin::dra
