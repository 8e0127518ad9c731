#include "agent/host/host_texts.h"

#include "agent/base/parse.h"
#include "agent/host/attributes.h"
#include "agent/host/problems.h"

namespace neuron::host {
namespace {

using model::HostScan;
using model::ScanPart;

constexpr std::string_view kProductName = "sys/devices/virtual/dmi/id/product_name";
constexpr std::size_t kMaxText = 64;

}  // namespace

std::string read_instance_type(const FsRoot& root) {
  const auto text = root.read_attribute(kProductName);
  return text ? printable(*text, kMaxText) : "";
}

// A text for display and comparison.
void HostTexts::refresh(const FsRoot& root, std::string_view path, std::string& text, HostScan& scan,
                        std::vector<ScanPart>& unread) {
  const auto read = root.read_attribute(path);
  if (read || is_absent(read.error())) {
    text = read ? printable(*read, kMaxText) : "";
    return;
  }
  unread.push_back({ScanPart::Kind::host});
  note_problem(scan.problems, kMaxHostProblems, problem_with(std::string(path), read.error()));
}

void HostTexts::read(const FsRoot& root, HostScan& scan, std::vector<ScanPart>& unread) {
  refresh(root, kProductName, instance_type_, scan, unread);
  refresh(root, "sys/devices/virtual/dmi/id/board_asset_tag", asset_tag_, scan, unread);
  refresh(root, "sys/module/neuron/version", driver_version_, scan, unread);
  refresh(root, "sys/module/efa/version", efa_driver_version_, scan, unread);
  scan.instance_type = instance_type_;
  scan.instance_id = instance_id_of(asset_tag_);
  scan.driver_version = driver_version_;
  scan.efa_driver_version = efa_driver_version_;
}

void HostTexts::read_lnc(const FsRoot& root, HostScan& scan, std::vector<ScanPart>& unread) {
  static constexpr std::string_view kPath = "opt/aws/neuron/logical_nc_config";
  const auto complain = [&scan](const Error& error) {
    note_problem(scan.problems, kMaxHostProblems,
                 problem_with(std::string(kPath), error, model::ProblemKind::lnc_file));
  };
  const auto text = root.read_file(kPath, kMaxAttributeBytes);
  if (!text && !is_absent(text.error())) {
    complain(text.error());
    unread.push_back({ScanPart::Kind::host});
    scan.lnc = lnc_;
    return;
  }
  lnc_.reset();
  if (!text) return;
  const auto lnc = parse_lnc_config(*text);
  if (lnc) {
    scan.lnc = lnc_ = {*lnc, model::Origin::live};
  } else {
    complain(lnc.error());
  }
}

}  // namespace neuron::host
