#include "tools/neuron-agent/metrics_page.h"

#include <cstddef>

#include "agent/metrics/exposition.h"

namespace neuron::agent {

metrics::HttpAnswer MetricsPage::answer(std::string_view accept) {
  const metrics::TextFormat format = metrics::format_for(accept);
  const SteadyTime now = clock_.now();
  const std::uint64_t scan = ports_.scan();
  metrics::HttpAnswer answer;
  answer.content_type = metrics::content_type(format);
  const MutexLock lock(mutex_);
  Text& kept = texts_[static_cast<std::size_t>(format)];
  if (!kept.text || kept.scan != scan || now - kept.made_at >= kGoodFor) {
    kept = {std::make_shared<const std::string>(metrics::render_metrics(ports_.gather(), format)), now, scan};
    const MutexLock quiet_lock(quiet_mutex_);
    made_at_ = clock_.now();
  }
  answer.shared = kept.text;
  return answer;
}

bool MetricsPage::take_quiet() {
  const SteadyTime now = clock_.now();
  const MutexLock lock(quiet_mutex_);
  if (!made_at_ || now - *made_at_ < kGoodFor) return false;
  made_at_.reset();
  return true;
}

}  // namespace neuron::agent
