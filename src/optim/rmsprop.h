// RMSprop (Tieleman and Hinton 2012; centred as Graves 2013): each element's gradient over the root
// of the fading mean of its squares; as torch.optim.RMSprop, with its defaults, and as TensorFlow
// has it.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include "optim/formula.h"
#include "optim/spec.h"

namespace aloft::optim {

// Inside: the options of O, `more` of its own behind them.
template <class O, class... More>
auto rmsprop_options(const More&... more) {
  return FieldList{
      option("alpha", &O::alpha, {0, 1, true}, "weight of the old mean of squares",
             "the mean goes on, and forgets faster or slower"),
      option("eps", &O::eps, {0, 1}, "added to the root of the mean of squares",
             "the means go on; small gradients move weights more or less"),
      option("momentum", &O::momentum, {0, 1}, "share of the last direction that is kept",
             "the sum of past steps goes on, and fades faster or slower"),
      option("tensorflow", &O::tensorflow, {},
             "eps below the root, means of squares from 1 on, a momentum of steps",
             "the means go on, and are applied another way"),
      more...};
}

// Inside: the formulas (optim/formula.h), by the states that they keep.
template <bool kCentered, bool kMomentum>
struct RmsPropFormula {
  double alpha = 0.99, eps = 1e-8, momentum = 0;
  bool tensorflow = false;
  static constexpr std::string_view kName =
      kCentered ? (kMomentum ? "rmsprop_centered_momentum" : "rmsprop_centered")
                : (kMomentum ? "rmsprop_momentum" : "rmsprop");
  static auto fields() { return rmsprop_options<RmsPropFormula>(); }
  static constexpr auto kStates = [] {
    std::array<std::string_view, 1 + kCentered + kMomentum> names = {"square_avg"};
    if (kCentered) names[1] = "grad_avg";
    if (kMomentum) names.back() = "momentum_buffer";
    return names;
  }();
  static constexpr std::array<std::string_view, 1> kNotNegative = {"square_avg"};
  static constexpr bool kNeedsWholeStates = kCentered;
  static constexpr std::array<std::string_view, 8> kNumbers = {
      "alpha",
      "(1 - alpha)",
      "(tensorflow ? eps : 0)",
      "(tensorflow ? 0 : eps)",
      "momentum",
      "(tensorflow ? lr : 1)",
      kMomentum ? "(tensorflow ? 1 : lr)" : "lr",
      "weight_decay"};
  static constexpr std::array<std::string_view, 1> kFlags = {"tensorflow and first step"};
  std::array<double, 8> numbers(const UpdateStep& s) const {
    const bool tf = tensorflow;
    return {alpha,
            1 - alpha,
            tf ? eps : 0,
            tf ? 0 : eps,
            momentum,
            tf ? s.lr : 1.0,
            tf && kMomentum ? 1.0 : s.lr,
            s.weight_decay};
  }
  std::array<bool, 1> flags(const UpdateStep& s) const { return {tensorflow && s.applied == 0}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& keep = std::get<0>(e.numbers);
    const auto& fresh = std::get<1>(e.numbers);
    const auto& decay = std::get<7>(e.numbers);
    const auto& [decays, begins_at_one] = e.flags;
    const auto g = where(decays, e.g + decay * e.p, e.g);
    const auto v = keep * where(begins_at_one, 1.0, std::get<0>(e.states)) + fresh * (g * g);
    if constexpr (kCentered) {
      const auto& mean = std::get<1>(e.states);
      const auto m = mean + fresh * (g - mean);
      const auto spread = v - m * m;  // which rounding may take below 0
      return moved(e, g, where(spread > 0.0, spread, 0.0), v, m);
    } else {
      return moved(e, g, v, v);
    }
  }

 private:
  // By g over the root of the spread; the new states, but for the momentum.
  template <class E, class G, class Spread, class... Means>
  static constexpr auto moved(const E& e, G g, Spread spread, Means... means) {
    const auto& [keep, fresh, within, beside, momentum, rate_within, rate, decay] = e.numbers;
    const auto direction = g / (sqrt(spread + within) + beside);
    if constexpr (kMomentum) {
      const auto b = momentum * std::get<kStates.size() - 1>(e.states) + rate_within * direction;
      return updated(e.p - rate * b, means..., b);
    } else {
      return updated(e.p - rate * direction, means...);
    }
  }
};

// RMSprop.
struct RmsProp {
  double lr = 1e-2;       // base rate, times the schedule's factor
  double alpha = 0.99;    // weight of the old mean of squares, in [0, 1)
  double eps = 1e-8;      // added to the root, or below it
  double momentum = 0;    // share of the last direction that is kept
  bool centered = false;  // by the spread of gradients, not by their size
  // TensorFlow's form: the mean of squares begins at 1, eps is added below the root, and the
  // momentum is one of steps: a rate that changes holds for new gradients alone.
  bool tensorflow = false;
  double weight_decay = 0;  // L2, added to the gradient
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: its options, and the formulas of which they choose one.
  using Formulas = std::tuple<RmsPropFormula<false, false>, RmsPropFormula<false, true>,
                              RmsPropFormula<true, false>, RmsPropFormula<true, true>>;
  static auto fields() {
    return rmsprop_options<RmsProp>(
        option("centered", &RmsProp::centered, {}, "by the spread of gradients, not their size",
               "the checkpoint has no means of gradients, or others are left over"));
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
