#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/base/result.h"
#include "plugin/dra/claim/claim_grant.h"
#include "plugin/dra/claim/claim_port.h"

// A claim that is prepared, as it is kept on disk. Pure.
namespace neuron::plugin::dra {

struct PreparedRequest {
  RequestShare share;
  Environment environment;
};

struct PreparedClaim {
  // Not completed: its CDI file may or may not be there, and nobody was told that it is prepared. Only what a crash
  // left behind is ever seen so, as preparing is done under one lock; it holds nothing.
  bool is_completed = false;
  std::string claim_namespace;  // "" with `name`: not known, as it was rebuilt from its CDI file
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<PreparedRequest> requests;
  std::vector<PreparedDevice> devices;  // as the kubelet was told
  std::string cdi_text;                 // of its file, written again when that is gone; "" = it has none
  // The node's LNC by which cores were numbered then; nullopt: not known, as of claims of an older version.
  std::optional<int> node_lnc{};
  // The longest grace period of the pods that it was prepared for; nullopt: not known, as some could not be read.
  std::optional<std::chrono::seconds> grace{};
  // Of an entry that another version wrote and this one cannot read: what is here is what its CDI file tells. Not kept
  // on disk; the entry stays as it is until the claim is prepared anew or released.
  bool is_unread = false;

  // What nobody else may have: nothing of admin access, and nothing at all before it is completed.
  [[nodiscard]] Hardware held() const;
  // Whether the kubelet can be told all of it without asking anybody: not of what was rebuilt of a CDI file.
  [[nodiscard]] bool is_whole() const;
  // "default/name (uid …)", or "with uid …".
  [[nodiscard]] std::string shown() const;
};

// As one JSON object, and back. Fields that this version does not know are ignored. Errors: data_corrupt when it is no
// object with a uid, a field that is known has another type, or the state is another than completed or started.
[[nodiscard]] std::string to_text(const PreparedClaim& claim);
[[nodiscard]] Result<PreparedClaim> parse_prepared_claim(std::string_view text);

}  // namespace neuron::plugin::dra
