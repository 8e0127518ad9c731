#include "agent/core/claim_cdi.h"

namespace neuron::core {
namespace {

constexpr std::string_view kAdmin = "-admin", kRequest = "-request";

// Takes `end` from the end of `text`; false when it ends otherwise, or nothing would be left.
bool take_suffix(std::string_view& text, std::string_view end) {
  if (text.size() <= end.size() || !text.ends_with(end)) return false;
  text.remove_suffix(end.size());
  return true;
}

}  // namespace

std::string claim_cdi_kind(std::string_view driver) {
  return "k8s." + std::string(driver) + "/claim";
}

std::string claim_cdi_name(std::string_view uid, std::string_view device, ClaimAccess access) {
  std::string name(uid);
  if (access == ClaimAccess::admin) name += kAdmin;
  return name.append("-").append(device);
}

std::optional<ClaimAccess> claim_access(std::string_view cdi_id, std::string_view driver, std::string_view device) {
  const std::string prefix = claim_cdi_kind(driver) + "=";
  if (device.empty() || !cdi_id.starts_with(prefix)) return std::nullopt;
  std::string_view uid = cdi_id.substr(prefix.size());
  if (!take_suffix(uid, device) || !take_suffix(uid, "-")) return std::nullopt;
  const bool is_admin = take_suffix(uid, kAdmin);
  if (take_suffix(uid, kRequest)) return std::nullopt;
  return is_admin ? ClaimAccess::admin : ClaimAccess::use;
}

}  // namespace neuron::core
