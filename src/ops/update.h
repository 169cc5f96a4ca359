// The ops that apply an optimizer's formula: <name>_update for each formula of optim/catalog.inc,
// and <name>_sums where it needs sums over each tensor. Names, meaning and documentation are the
// record's (optim/kind.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "graph/tensor.h"
#include "ops/update_layout.h"
#include "optim/kind.h"

namespace aloft {

// The tensors that one update op works on, in one order. `masters` is empty or as long as
// `parameters`; each list of states is as long as `parameters`.
struct UpdateOperands {
  Tensor lr;           // f32[]
  Tensor multiplier;   // f32[]: what gradients are multiplied with (grad_stats)
  Tensor finite;       // i32[]: 0 leaves everything as it is
  Tensor applied;      // i64[]: updates applied before this one
  Tensor random = {};  // i64[3]: the random state, where something is rounded at random
  std::vector<Tensor> parameters, gradients, masters;
  std::vector<std::vector<Tensor>> states;
};

// How they are kept, and which of them decay.
struct UpdateForm {
  std::optional<StateFormat> master;  // nothing: there are none
  StateFormat states = StateFormat::F32;
  Rounding rounding = Rounding::Nearest;  // of parameters without masters
  Ints keys = {};   // identities of the parameters, for what is rounded at random
  Ints decay = {};  // 1 for each parameter that decays, else 0
  double weight_decay = 0;
  double clip_value = 0;  // largest size of a gradient's element, unscaled; 0: none
  Ints rest = {};  // 1 for each parameter that OptimizerSpec::rest names, else 0; empty: none
};

struct UpdateResults {
  std::vector<Tensor> parameters, masters;
  std::vector<std::vector<Tensor>> states;
};

std::string update_op_name(const optim::FormulaRecord& formula);  // "adamw_update"
std::string sums_op_name(const optim::FormulaRecord& formula);    // "lamb_sums"
// Of a formula of tensors: "muon_numbers", which gives its numbers of a step.
std::string numbers_op_name(const optim::FormulaRecord& formula);
// The formula whose update an op is; null where it is none.
const optim::FormulaRecord* formula_of_update(Name op);

// The sums where the rule needs them, and the update; the ops of a formula of tensors.
UpdateResults emit_update(const UpdateRule& rule, const UpdateOperands& operands,
                          const UpdateForm& form);
// The attributes of those two calls.
Attrs update_attrs_of(const UpdateRule& rule, const UpdateForm& form, std::int64_t count);

}  // namespace aloft
