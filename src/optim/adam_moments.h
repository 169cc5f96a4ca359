// What Adam and its relatives share: options, moments and their corrections (Kingma and Ba 2014,
// algorithm 1).
#pragma once

#include <array>
#include <cmath>
#include <string_view>
#include <tuple>

#include "optim/formula.h"

namespace aloft::optim {

// The options of O, `more` of its own behind them; what eps is added to is O's own to say.
template <class O, class... More>
auto adam_options_with(std::string_view eps, const More&... more) {
  constexpr std::string_view kForget = "the moments go on, and forget faster or slower";
  return FieldList{
      option("beta1", &O::beta1, {0, 1, true}, "decays of the moments", kForget, "betas"),
      option("beta2", &O::beta2, {0, 1, true}, "decay of the second moment", kForget, "betas"),
      option("eps", &O::eps, {0, 1}, eps,
             "the moments go on; small gradients move weights more or less"),
      more...};
}
template <class O, class... More>
auto adam_options(const More&... more) {
  return adam_options_with<O>("added to the root of the second moment", more...);
}
// The same of Adam and AdamW.
template <class O>
auto amsgrad_options() {
  return adam_options<O>(option("amsgrad", &O::amsgrad, {},
                                "by the largest mean of squares so far, not the newest",
                                "the checkpoint has no largest means, or others are left over"));
}
// The same of those whose weight decay may be either kind.
template <class O, class... More>
auto decoupled_adam_options(const More&... more) {
  return adam_options<O>(more...,
                         option("decoupled_decay", &O::decoupled_decay, {},
                                "the weight decay shrinks weights, and is not added to gradients",
                                "weights decay otherwise"));
}

inline constexpr std::array<std::string_view, 2> kAdamStates = {"exp_avg", "exp_avg_sq"};
inline constexpr std::array<std::string_view, 1> kAdamSquares = {"exp_avg_sq"};
// With the largest mean of squares so far, which AMSGrad goes by (Reddi et al. 2018).
inline constexpr std::array<std::string_view, 3> kAmsGradStates = {"exp_avg", "exp_avg_sq",
                                                                   "max_exp_avg_sq"};
inline constexpr std::array<std::string_view, 2> kAmsGradSquares = {"exp_avg_sq", "max_exp_avg_sq"};

// A weight decay of either kind: what is added to the gradient, by which the weight shrinks.
inline constexpr std::string_view kDecayAdded = "(decoupled_decay ? 0 : weight_decay)";
inline constexpr std::string_view kDecayShrinks = "(decoupled_decay ? 1 - lr * weight_decay : 1)";
struct DecayOf {
  double added, shrink;
  template <class O>
  DecayOf(const O& o, const UpdateStep& s)
      : added(o.decoupled_decay ? 0 : s.weight_decay),
        shrink(o.decoupled_decay ? 1 - s.lr * s.weight_decay : 1) {}
};

// What the moments' start at 0 takes off them: of the mean, and of the root of the mean square.
struct AdamCorrections {
  double mean, root;
  template <class O>
  AdamCorrections(const O& o, std::int64_t applied)
      : mean(1 - std::pow(o.beta1, static_cast<double>(applied + 1))),
        root(std::sqrt(1 - std::pow(o.beta2, static_cast<double>(applied + 1)))) {}
};

// The means of gradients and of their squares with one more gradient, in torch.optim's order of
// operations.
template <class G, class States, class Fresh1, class Keep2, class Fresh2>
constexpr auto adam_moments(G g, const States& states, Fresh1 fresh1, Keep2 keep2, Fresh2 fresh2) {
  const auto& m = std::get<0>(states);
  const auto& v = std::get<1>(states);
  return std::tuple(m + fresh1 * (g - m), keep2 * v + fresh2 * (g * g));
}

// What updated() takes: p stepped by Adam's direction of the gradient g, and the new states; by the
// largest mean of squares so far where kLargest.
template <bool kLargest, class E, class P, class G>
constexpr auto adam_step(const E& e, P p, G g) {
  const auto& [fresh1, keep2, fresh2, root, eps, rate, decay] = e.numbers;
  const auto [m, v] = adam_moments(g, e.states, fresh1, keep2, fresh2);
  if constexpr (kLargest) {
    const auto& before = std::get<2>(e.states);
    const auto most = where(before > v, before, v);
    return updated(p - rate * m / (sqrt(most) / root + eps), m, v, most);
  } else {
    return updated(p - rate * m / (sqrt(v) / root + eps), m, v);
  }
}

}  // namespace aloft::optim
