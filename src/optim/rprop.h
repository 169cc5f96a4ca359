// Rprop (Riedmiller and Braun 1993): each element steps by the sign of its gradient, by a size that
// grows while the sign stays and shrinks when it turns, for whole batches; as torch.optim.Rprop,
// with its defaults.
#pragma once

#include <array>
#include <string_view>

#include "optim/formula.h"
#include "optim/spec.h"

namespace aloft::optim {

// Rprop.
struct Rprop {
  double lr = 1e-2;  // size of the first step; later ones follow from the signs
  double eta_minus = 0.5, eta_plus = 1.2;    // by which a size shrinks, and grows
  double least_size = 1e-6, most_size = 50;  // of a step
  double weight_decay = 0;                   // L2, added to the gradient
#include "optim/shared_options.inc"
  // What amp::initialize and Optimizer take.
  operator OptimizerSpec() const;

  // Inside: the formula (optim/formula.h).
  static auto fields() {
    constexpr std::string_view kOtherSizes = "the sizes go on from where they are";
    return FieldList{option("eta_minus", &Rprop::eta_minus, {0, 1, true},
                            "by which a step shrinks when the sign turns", kOtherSizes),
                     option("eta_plus", &Rprop::eta_plus, {1, 100},
                            "by which a step grows while the sign stays", kOtherSizes),
                     option("least_size", &Rprop::least_size, {0, 1e6}, "of a step", kOtherSizes),
                     option("most_size", &Rprop::most_size, {0, 1e6}, "of a step", kOtherSizes)};
  }
  static constexpr std::array<std::string_view, 2> kStates = {"prev", "step_size"};
  static constexpr std::array<std::string_view, 1> kNotNegative = {"step_size"};
  static constexpr bool kNeedsWholeStates = true;
  static constexpr std::array<std::string_view, 6> kNumbers = {
      "lr", "eta_minus", "eta_plus", "least_size", "most_size", "weight_decay"};
  static constexpr std::array<std::string_view, 1> kFlags = {"first step"};
  std::array<double, 6> numbers(const UpdateStep& s) const {
    return {s.lr, eta_minus, eta_plus, least_size, most_size, s.weight_decay};
  }
  std::array<bool, 1> flags(const UpdateStep& s) const { return {s.applied == 0}; }
  template <class E>
  static constexpr auto step(const E& e) {
    const auto& [lr, minus, plus, least, most, decay] = e.numbers;
    const auto& [decays, first] = e.flags;
    const auto& [before, old] = e.states;
    const auto g = where(decays, e.g + decay * e.p, e.g);
    const auto turn = g * before;
    const auto size = where(first, lr, old);
    const auto changed = where(turn > 0.0, size * plus, where(turn < 0.0, size * minus, size));
    const auto next = where(changed > most, most, where(changed < least, least, changed));
    const auto kept = where(turn < 0.0, 0.0, g);
    return updated(e.p - sign(kept) * next, kept, next);
  }
  UpdateRule rule() const;
};

}  // namespace aloft::optim
