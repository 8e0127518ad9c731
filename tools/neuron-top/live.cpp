#include "tools/neuron-top/options.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "tools/screen/live.h"
#include "tools/screen/screen.h"

namespace neuron::top {
namespace {

using std::chrono::nanoseconds;
using std::chrono::steady_clock;

class MachineView : public screen::LiveView {
 public:
  MachineView(const LiveOptions& options, screen::Terminal& terminal, Sampler& sampler)
      : options_(options), terminal_(terminal), sampler_(sampler), last_sample_(steady_clock::now()) {
    model_.version = kNothingYet;
    sampler_.request(request_for(state_));
  }

  [[nodiscard]] bool done() const override { return state_.quit; }
  [[nodiscard]] int sample_fd() const override { return sampler_.ready_fd(); }

  void on_timer() override {
    if (!state_.paused) sampler_.request(request_for(state_));
    if (put_off_ || banner().message != shown_banner_) draw();
  }

  void on_sample() override {
    const auto moment = sampler_.take();
    if (!moment) return;
    last_sample_ = steady_clock::now();
    if (state_.paused) return;
    model_ = make_view_model(*moment);
    history_.add(model_);
    draw();
  }

  void on_keys(const std::vector<screen::Key>& keys) override {
    const model::UsageRequest before = request_for(state_);
    const bool was_paused = state_.paused;
    for (const screen::Key key : keys) state_ = press(std::move(state_), key, key_context(model_, state_));
    const model::UsageRequest after = request_for(state_);
    const bool wants_more =
        (after.efa && !before.efa) || (after.power && !before.power) || (after.flops && !before.flops);
    if (!state_.paused && (wants_more || was_paused)) sampler_.request(after);
    if (was_paused && !state_.paused) last_sample_ = steady_clock::now();
    draw();
  }

  // Draws nothing on a terminal that takes no output, so that keys and signals are still handled.
  void draw() override {
    put_off_ = !terminal_.can_show();
    if (put_off_) return;
    const screen::Banner now = banner();
    shown_banner_ = now.message;
    const screen::Scene scene{model_, history_, state_, options_.charset};
    terminal_.show(draw_screen(scene, now, terminal_.rows(), terminal_.columns()));
  }

 private:
  static constexpr const char* kNothingYet = "is reading the machine";

  [[nodiscard]] screen::Banner banner() const {
    if (state_.paused) return {"PAUSED", false};
    const auto age = steady_clock::now() - last_sample_;
    if (age < std::max<nanoseconds>(options_.stale_after, 3 * options_.interval)) return {};
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(age).count();
    return {"stale since " + screen::age_text(seconds), true};
  }

  const LiveOptions& options_;
  screen::Terminal& terminal_;
  Sampler& sampler_;
  screen::ViewState state_;
  screen::ViewModel model_;
  screen::History history_;
  steady_clock::time_point last_sample_;
  std::string shown_banner_;
  bool put_off_ = false;  // a picture waits for the terminal
};

}  // namespace

Result<void> run_live(const LiveOptions& options, screen::Terminal& terminal, Sampler& sampler, int signals) {
  MachineView view(options, terminal, sampler);
  return screen::run_live(view, terminal, options.interval, signals);
}

}  // namespace neuron::top
