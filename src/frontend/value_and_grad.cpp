#include "frontend/value_and_grad.h"

#include "base/error.h"
#include "frontend/hooks.h"
#include "ops/constant.h"
#include "ops/identity.h"

namespace aloft {

void grads::Split::tensor(Tensor& t) {
  if (!first.is_defined()) {
    first = t;
    return;
  }
  has_more = true;
  if (is_float(t.dtype())) t = detach(t);
}

void grads::check(const Split& split, const ValueAndGradOptions& options) {
  const bool has_aux = options.has_aux;
  if (split.has_more == has_aux) return;
  throw UserError("E0803", "value_and_grad() is given another result than it is told of")
      .saw(has_aux ? "a loss alone, and has_aux" : "more than a loss, and not has_aux")
      .need(has_aux ? "the loss first, and something behind it" : "a loss, or {.has_aux = true}");
}

std::vector<Tensor> gradients_of(const Tensor& loss, const std::vector<VariablePtr>& parameters) {
  if (loss.rank() != 0)
    throw UserError("E0803", "gradients are taken of a scalar loss")
        .saw(loss.type().str())
        .advice("take the mean or the sum first");
  hooks::need_outside("gradients_of()");
  Emitter& e = emitter_of(loss);
  EmitterScope scope(e);
  Where where = current_where();
  where.pass = "gradients_of";
  where.phase = Phase::Backward;
  return e.variable_gradients(loss, full({}, 1.0, DType::F32), parameters, where);
}

}  // namespace aloft
