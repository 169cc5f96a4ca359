#include "frontend/loops.h"

#include "base/error.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "frontend/give_up.h"
#include "frontend/premises.h"
#include "ops/binary.h"
#include "ops/constant.h"

namespace aloft::amp {
namespace {

// A step divides by the loss scale.
void check_scaled(const std::vector<Tensor>& gradients, const Optimizer& optimizer) {
  if (optimizer.scaler().kind == scalar::ScalerKind::None) return;
  for (std::size_t i = 0; i < gradients.size(); ++i)
    if (const VariablePtr& p = optimizer.parameters()[i];
        gradients[i].is_defined() && !eager().gradient_comes_by(p, optimizer.scale))
      throw UserError("E0808", "the gradients are not those of a scaled loss")
          .saw("a gradient of '" + p->name.str() + "' by a backward() without the loss scale")
          .need("amp::scale_loss(loss, optimizer).backward(), as a step divides by the scale");
}

// The sums that backward() left, zeros for parameters that the loss does not depend on.
std::vector<Tensor> summed_gradients(Optimizer& whole) {
  if (premises_of_trace())
    throw UserError("E0305", "a step with the gradients of backward() in a function that is traced")
        .saw("amp::step() or GradScaler::step() in a compiled function")
        .need("gradients of the function's own, which backward() cannot leave there")
        .advice("return minimize(loss, optimizer) from the function, or run eagerly");
  const Optimizer& optimizer = whole.trained();
  std::vector<Tensor> all;
  bool any = false;
  for (const VariablePtr& p : optimizer.parameters()) {
    all.push_back(grad_of(p));
    any = any || all.back().is_defined();
  }
  if (!any)
    throw UserError("E0808", "there are no gradients to step with")
        .need("a backward() before every step")
        .advice("call amp::scale_loss(loss, optimizer).backward() first");
  check_scaled(all, optimizer);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].is_defined()) {
      const TensorType& type = optimizer.parameters()[i]->type;
      all[i] = full(type.shape, 0.0, type.dtype);
    }
  return all;
}

}  // namespace

Tensor scale_loss(const Tensor& loss, const Optimizer& optimizer) {
  EmitterScope scope(emitter_of(loss));
  return loss * current_emitter().state(optimizer.scale);
}

StepResult step(const Tensor& loss, Optimizer& optimizer) {
  return apply_gradients(loss, summed_gradients(optimizer), optimizer);
}

StepResult GradScaler::step(const Tensor& loss) {
  return last_ = update_parameters(loss, summed_gradients(optimizer_), optimizer_);
}

void GradScaler::update() {
  if (!last_.finite.is_defined())
    throw UserError("E0808", "update() follows step()").need("a step before every update");
  update_scaler(last_, optimizer_);
  give_up_if_hopeless(std::exchange(last_, {}), optimizer_);
}

}  // namespace aloft::amp
