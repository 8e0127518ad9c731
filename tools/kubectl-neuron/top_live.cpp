#include "tools/kubectl-neuron/top_screen.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "agent/base/parse.h"
#include "agent/base/workers.h"
#include "tools/kubectl-neuron/documents.h"
#include "tools/kubectl-neuron/dump.h"
#include "tools/screen/live.h"
#include "tools/screen/screen.h"

namespace neuron::fleet {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr Wanted kWanted{.reports = true, .metrics = true, .context = false};

struct Reading {
  Fleet fleet;
  Usages usages;
};
using Answer = Result<Reading>;
using Sampler = BackgroundReader<Answer>;

double seconds_now() {
  return std::chrono::duration<double>(steady_clock::now().time_since_epoch()).count();
}

// Keeps one kubectl for all readings.
class Reader {
 public:
  static Result<std::shared_ptr<Reader>> open(const Options& options) {
    auto reader = std::make_shared<Reader>();
    reader->options_ = options;
    if (options.from.empty()) {
      reader->waits_ = said_waits();
      TRY_ASSIGN(reader->cluster_, open_kubectl(options.cluster, reader->waits_));
    }
    return reader;
  }

  Answer read() {
    TRY_ASSIGN(Documents documents, read_anew());
    Reading reading{{}, usages_of(documents, seconds_now())};
    reading.fleet = make_fleet(std::move(documents));
    add_rates(before_, reading.usages);
    before_ = reading.usages;
    return reading;
  }

  // The screen begins, and nothing may be written beside it.
  void be_silent() {
    if (waits_ != nullptr) waits_->end();
  }

 private:
  Result<Documents> read_anew() {
    if (cluster_ == nullptr) return read_dump(options_.from);
    return read_documents(*cluster_, options_.cluster.kube_namespace, kWanted, {});
  }

  Options options_;
  std::shared_ptr<Waits> waits_;
  std::unique_ptr<ClusterReader> cluster_;
  Usages before_;
};

class FleetView : public screen::LiveView {
 public:
  FleetView(screen::Terminal& terminal, Sampler& sampler, render::Charset charset, milliseconds interval,
            TopState state, Reading first)
      : terminal_(terminal),
        sampler_(sampler),
        charset_(charset),
        interval_(interval),
        state_(std::move(state)),
        reading_(std::move(first)),
        last_sample_(steady_clock::now()) {
    take_in();
  }

  [[nodiscard]] bool done() const override { return state_.quit; }
  [[nodiscard]] int sample_fd() const override { return sampler_.ready_fd(); }

  void on_timer() override {
    if (!state_.paused) sampler_.request();
    if (put_off_ || message() != shown_message_) draw();
  }

  void on_sample() override {
    auto answer = sampler_.take();
    if (!answer) return;
    if (!*answer) {
      problem_ = printable(answer->error().message, 200);
    } else if (!state_.paused) {
      problem_.clear();
      reading_ = *std::move(*answer);
      last_sample_ = steady_clock::now();
      take_in();
    }
    draw();
  }

  void on_keys(const std::vector<screen::Key>& keys) override {
    const bool was_paused = state_.paused;
    for (const screen::Key key : keys) {
      const std::string before = state_.opened;
      state_ = press(std::move(state_), key, top_, node_ ? &*node_ : nullptr);
      if (state_.opened != before) {
        history_ = {};
        open_node();
      }
    }
    if (was_paused && !state_.paused) sampler_.request();
    draw();
  }

  void draw() override {
    put_off_ = !terminal_.can_show();
    if (put_off_) return;
    shown_message_ = message();
    const int rows = terminal_.rows();
    const int columns = terminal_.columns();
    if (!node_) {
      terminal_.show(draw_top(top_, state_, shown_message_, charset_, rows, columns));
      return;
    }
    const screen::Scene scene{*node_, history_, state_.inner, charset_};
    const bool alarming = !shown_message_.empty() && !state_.paused;
    terminal_.show(screen::draw_screen(scene, {shown_message_, alarming}, rows, columns));
  }

 private:
  void take_in() {
    top_ = make_top(reading_.fleet, reading_.usages);
    open_node();
  }

  void open_node() {
    node_.reset();
    if (state_.opened.empty()) return;
    const Node* node = find_node(reading_.fleet, state_.opened);
    if (node == nullptr) {
      state_.opened.clear();
      return;
    }
    const auto usage = reading_.usages.find(node->name);
    const NodeUsage none;
    node_ = node_view(*node, usage == reading_.usages.end() ? none : usage->second);
    history_.add(*node_);
  }

  [[nodiscard]] std::string message() const {
    if (state_.paused) return "PAUSED";
    if (!problem_.empty()) return problem_;
    const auto age = steady_clock::now() - last_sample_;
    if (age < 3 * interval_) return state_.opened.empty() ? "" : "escape: back to the fleet";
    return "stale since " + screen::age_text(std::chrono::duration_cast<std::chrono::seconds>(age).count());
  }

  screen::Terminal& terminal_;
  Sampler& sampler_;
  render::Charset charset_;
  milliseconds interval_;
  TopState state_;
  Reading reading_;
  Top top_;
  std::optional<screen::ViewModel> node_;
  screen::History history_;
  steady_clock::time_point last_sample_;
  std::string problem_;
  std::string shown_message_;
  bool put_off_ = false;  // a picture waits for the terminal
};

}  // namespace

Result<void> show_top(const Options& options, milliseconds interval, TopState state) {
  TRY_ASSIGN(const auto reader, Reader::open(options));
  TRY_ASSIGN(Reading first, reader->read());
  reader->be_silent();
  TRY_ASSIGN(const Fd signals, screen::catch_signals());
  TRY_ASSIGN(const auto sampler, Sampler::open([reader] { return reader->read(); }));
  render::Style style = screen::style_of_stdout();
  if (options.no_color) style.colour = render::ColourDepth::none;
  TRY_ASSIGN(auto terminal, screen::LiveTerminal::open(style.colour));
  FleetView view(terminal.get(), *sampler, style.charset, interval, std::move(state), std::move(first));
  return screen::run_live(view, terminal.get(), interval, signals.get());
}

}  // namespace neuron::fleet
