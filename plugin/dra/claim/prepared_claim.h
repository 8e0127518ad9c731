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
  // Not completed: its CDI file may or may not be there, and the kubelet did not get an answer. Only after a crash is a
  // claim seen so, as preparing is done under one lock; it holds nothing.
  bool is_completed = false;
  std::string claim_namespace;  // "" with `name`: not known, as it was rebuilt from its CDI file
  std::string name;
  std::string uid;
  std::string resource_version;
  std::vector<PreparedRequest> requests;
  std::vector<PreparedDevice> devices;  // as in the answer to the kubelet
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
// object with a uid, a field that is known has another type, or the state is another than completed or started.
[[nodiscard]] std::string to_text(const PreparedClaim& claim);
[[nodiscard]] Result<PreparedClaim> parse_prepared_claim(std::string_view text);

}  // namespace neuron::plugin::dra
