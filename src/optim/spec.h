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
  bool maximize = false;    // uphill: by the gradients' negatives
  // What becomes of gradients first, in this order; 0: nothing. Their largest norm, of all of them
  // together (a group with a limit of its own has its own norm); the largest norm of a row's, as a
  // share of the row of weights (Brock et al. 2021, AGC); the largest size of an element.
  double clip_norm = 0, clip_adaptive = 0, clip_value = 0;
  scalar::ScheduleRule schedule;  // of the rate, over the updates applied; constant
  Decay decay = {};               // which parameters weight_decay holds for; all
  // The first group with a pattern that matches takes a parameter.
  std::vector<ParameterGroup> groups = {};
  // How the fp32 master of a low weight is kept: F32, a tensor of its own, or Split, beside a bf16
  // weight under O2. Training has the same bits either way.
  StateFormat master = StateFormat::F32;
  // How the rule's states are kept: F32; BF16, half the memory; Block8, a quarter. The low ones are
  // rounded at random, once a step.
  StateFormat states = StateFormat::F32;
  // How bf16 parameters without masters (O3:bf16) are rounded.
  Rounding rounding = Rounding::Nearest;
  UpdateTime update = UpdateTime::Late;  // Early: no clipping and no loss scale
  // Name patterns of matrices that a rule for matrices (optim/muon.h) takes for none: tables,
  // heads.
  std::vector<std::string> rest = {};
  Averaging average = {};  // of the weights, kept beside them; none
};

}  // namespace aloft
