// What an optimizer is made from: the formula of its update, and what holds beside it.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "optim/options.h"
#include "scalar/schedule.h"
#include "types/attrs.h"

namespace aloft {

namespace optim {
struct FormulaRecord;  // optim/kind.h
}

// Inside: one formula with its numbers.
struct UpdateRule {
  const optim::FormulaRecord* formula = nullptr;  // of a kind of optim/catalog.inc; null: none
  Attrs options;                                  // its own, as its op takes them

  explicit operator bool() const { return formula != nullptr; }
  std::string_view name() const;  // "adamw"; "" where there is none
  // Names of the states kept of each parameter, such as {"exp_avg", "exp_avg_sq"}.
  std::vector<std::string_view> states() const;
};

// What an optimizer is made from. The structs of optim/catalog.inc (optim::AdamW, ...) turn into
// one; a program seldom writes it out.
struct OptimizerSpec {
  UpdateRule rule;          // the formula; UserError E0819 where there is none
  double lr = 1e-3;         // base rate, times the schedule's factor
  double weight_decay = 0;  // what it does is the rule's: L2, or decoupled
#include "optim/shared_options.inc"
  // Name patterns of matrices that a rule for matrices (optim/muon.h) takes for none: tables,
  // heads.
  std::vector<std::string> rest = {};
};

}  // namespace aloft
