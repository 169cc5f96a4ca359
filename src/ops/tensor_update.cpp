#include "ops/tensor_update.h"

#include "base/error.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/clamp.h"
#include "ops/compare.h"
#include "ops/op.h"
#include "ops/reshape.h"
#include "ops/slice.h"
#include "ops/stochastic_round.h"
#include "ops/where.h"
#include "scalar/stochastic_rounding.h"

namespace aloft {
namespace {

const TensorFormula& formula_of(const UpdateRule& rule) {
  for (const TensorFormula& f : tensor_formulas())
    if (f.name == rule.name()) return f;
  throw InternalError("a formula of tensors: " + std::string(rule.name()));
}

}  // namespace

UpdateResults emit_tensor_update(const UpdateRule& rule, const UpdateOperands& o,
                                 const UpdateForm& form) {
  ensure(form.master != StateFormat::Split && form.states != StateFormat::Block8,
         "an op reads masters and states");
  const TensorFormula& formula = formula_of(rule);
  const std::vector<Operand> in = {o.lr, o.applied};
  const Tensor all = emit_op(numbers_op_name(*rule.formula),
                             update_attrs_of(rule, {.weight_decay = form.weight_decay}, 0), in)[0];
  std::vector<Tensor> numbers;
  for (std::int64_t i = 0; i < all.dim(0).max(); ++i)
    numbers.push_back(reshape(slice(all, 0, i, i + 1), Shape{}));
  const Tensor applies = not_equal(o.finite, 0);
  const bool rounds_parameters = !form.master && form.rounding == Rounding::Stochastic;
  const auto stored = [&](const Tensor& x, DType type, std::size_t tensor, int slot) {
    const bool is_at_random =
        type == DType::BF16 && (slot != scalar::kParameterSlot || rounds_parameters);
    return is_at_random ? stochastic_round(x, o.random, form.keys[tensor], slot) : cast(x, type);
  };

  UpdateResults out;
  out.states.resize(o.states.size());
  for (std::size_t i = 0; i < o.parameters.size(); ++i) {
    const Tensor& parameter = o.parameters[i];
    const Tensor before = form.master ? o.masters[i] : cast(parameter, DType::F32);
    Tensor gradient = cast(o.gradients[i], DType::F32) * o.multiplier;
    if (form.clip_value > 0) gradient = clamp(gradient, -form.clip_value, form.clip_value);
    TensorStep v{before, gradient, {}, numbers};
    v.decays = form.decay[i] != 0 && form.weight_decay != 0;
    v.is_rest = !form.rest.empty() && form.rest[i] != 0;
    for (const auto& list : o.states) v.states.push_back(cast(list[i], DType::F32));
    const std::vector<Tensor> kept = v.states;
    formula.step(rule.options, v);
    const Tensor p = where(applies, v.p, before);
    out.parameters.push_back(stored(p, parameter.dtype(), i, scalar::kParameterSlot));
    if (form.master) out.masters.push_back(p);
    for (std::size_t k = 0; k < o.states.size(); ++k) {
      out.states[k].push_back(v.states[k].id() == kept[k].id()
                                  ? o.states[k][i]
                                  : stored(where(applies, v.states[k], kept[k]),
                                           o.states[k][i].dtype(), i, static_cast<int>(k)));
    }
  }
  return out;
}

}  // namespace aloft
