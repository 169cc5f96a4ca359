// The ops that apply an optimizer's formula: <kind>_update for each kind of optim/catalog.inc, and
// <kind>_sums where the formula needs sums over each tensor. Names, meaning and documentation are
// the record's (optim/kind.h).
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
  Tensor lr;          // f32[]
  Tensor multiplier;  // f32[]: what gradients are multiplied with (grad_stats)
  Tensor finite;      // i32[]: 0 leaves everything as it is
  Tensor applied;     // i64[]: updates applied before this one
  std::vector<Tensor> parameters, gradients, masters;
  std::vector<std::vector<Tensor>> states;
};

// How they are kept, and which of them decay.
struct UpdateForm {
  std::optional<StateFormat> master;  // nothing: there are none
  StateFormat states = StateFormat::F32;
  Ints decay;  // 1 for each parameter that decays, else 0
  double weight_decay = 0;
};

struct UpdateResults {
  std::vector<Tensor> parameters, masters;
  std::vector<std::vector<Tensor>> states;
};

std::string update_op_name(const optim::OptimizerKind& kind);  // "adamw_update"
std::string sums_op_name(const optim::OptimizerKind& kind);    // "lamb_sums"
// The kind whose update an op is; null where it is none.
const optim::OptimizerKind* kind_of_update(Name op);

// The sums where the rule needs them, and the update.
UpdateResults emit_update(const UpdateRule& rule, const UpdateOperands& operands,
                          const UpdateForm& form);
// The attributes of those two calls.
Attrs update_attrs_of(const UpdateRule& rule, const UpdateForm& form, std::int64_t count);

}  // namespace aloft
