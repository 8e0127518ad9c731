#pragma once

#include <optional>
#include <string_view>

#include "agent/base/clock.h"
#include "agent/base/result.h"
#include "agent/kube/answers.h"
#include "plugin/dra/slices/slice_layout.h"

// What servers and kubelets can do by their versions (docs/reference/dra.md#server-versions). Pure.
namespace neuron::plugin::dra {

// Whether a server's gates are open shows only in what it stores. Errors: failed_precondition before 1.34, in words.
[[nodiscard]] Result<SliceShape> shape_for(const kube::ServerVersion& server);

// What the agent would write for a server that nobody asks, as people write it: "1.36.3", "v1.34.2-eks-113cf36", and
// the gates that are not as that version has them, as in "1.34.2,DRAPartitionableDevices=true" or
// "1.36.3,DRADeviceTaints=false". Errors: invalid_argument for other text; those of shape_for().
[[nodiscard]] Result<LayoutOptions> layout_for(std::string_view server);

// A value by the answers of API servers that need not agree, as while a control plane is updated server by server. The
// first answer counts, and `lowest` counts at once, which is right for every server. Another one counts after kAnswers
// equal answers in a row, kApart apart at least and over kTime at least; until then it is `lowest`.
template <typename T>
class SteadyAnswer {
 public:
  static constexpr int kAnswers = 3;
  static constexpr std::chrono::minutes kApart{4}, kTime{10};

  explicit SteadyAnswer(T lowest) : lowest_(lowest) {}

  [[nodiscard]] const std::optional<T>& value() const { return value_; }  // nullopt: no answer yet
  [[nodiscard]] bool is_rising() const { return answers_ > 0; }
  void take(T answer, SteadyTime now) {
    if (!value_ || answer == *value_ || answer == lowest_) {
      value_ = answer;
      answers_ = 0;
      return;
    }
    value_ = lowest_;  // as the two exclude each other
    if (answers_ == 0 || answer != next_) {
      next_ = answer;
      answers_ = 0;
      first_ = now;
    } else if (now - newest_ < kApart) {
      return;
    }
    ++answers_;
    newest_ = now;
    if (answers_ < kAnswers || now - first_ < kTime) return;
    value_ = answer;
    answers_ = 0;
  }

 private:
  T lowest_;
  std::optional<T> value_;
  T next_{};             // with `answers_`, `first_` and `newest_`
  int answers_ = 0;      // equal ones in a row, other than the value
  SteadyTime first_{};   // of the first of them
  SteadyTime newest_{};  // of the newest that was counted
};

// Errors: failed_precondition for a kubelet that knows none of our protocols, or that loses every driver permanently
// after half an hour (1.34.0, 1.34.1); in words.
[[nodiscard]] Result<void> check_kubelet(const kube::ServerVersion& kubelet);

}  // namespace neuron::plugin::dra
