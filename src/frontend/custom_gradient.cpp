#include "frontend/custom_gradient.h"

#include <memory>
#include <string>
#include <utility>

#include "base/error.h"
#include "frontend/hooks.h"
#include "graph/scope.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/function_of.h"
#include "ops/identity.h"

namespace aloft::gradient_of_yours {
namespace {

// One call: what it was given, and gradients on their way from the result to that.
struct Call {
  Backward backward;
  std::vector<Tensor> x;
  std::vector<Tensor> found = {};

  void find(const Tensor& gradient) {
    found = backward(gradient, x);
    if (found.size() != x.size())
      throw UserError("E0334", "a backward function gives another number of gradients")
          .saw(std::to_string(found.size()) + " gradients")
          .need(std::to_string(x.size()) + ", one for each tensor that forward is given")
          .advice("an undefined Tensor() stands for none");
    for (std::size_t i = 0; i < x.size(); ++i) {
      Tensor& g = found[i];
      if (!g.is_defined() || !is_float(x[i].dtype())) continue;
      if (g.shape() != x[i].shape())
        throw UserError("E0334", "a backward function gives a gradient of another shape")
            .saw(g.type().str() + " for tensor " + std::to_string(i))
            .need(x[i].type().str() + ", as forward was given");
      g = cast(g, x[i].dtype());
    }
  }

  // The gradient of x[i]: what else has reached it, and what was found for it, once.
  Tensor take(std::size_t i, const Tensor& others) {
    if (found.empty() || !found[i].is_defined()) return {};
    return others + std::exchange(found[i], Tensor());
  }
};

HookEntry entry_of(std::function<Tensor(const Tensor&)> look) {
  HookEntry entry;
  entry.look = [look = std::move(look)](std::span<const Tensor> seen) { return look(seen.back()); };
  entry.on = "a gradient of custom_gradient()";
  return entry;
}

}  // namespace

Tensor apply(const Forward& forward, const Backward& backward, std::vector<Tensor> x) {
  // Tensors of this call's own, whose gradients are of this call alone.
  std::vector<Tensor> leads;
  if (grad_enabled())
    for (Tensor& t : x)
      if (is_float(t.dtype())) leads.push_back(t = identity(t));
  Tensor y;
  {
    const NoGrad none;
    y = forward(x);
  }
  if (leads.empty() || !is_float(y.dtype())) return y;
  y = function_of(y, leads);
  const auto call = std::make_shared<Call>(Call{backward, std::move(x)});
  hooks::add_to_gradient(y, entry_of([call](const Tensor& g) {
                           call->find(g);
                           return Tensor();
                         }));
  for (std::size_t i = 0; i < call->x.size(); ++i)
    if (is_float(call->x[i].dtype()))
      hooks::add_to_gradient(call->x[i],
                             // The call holds its tensors, whose hooks do not hold it.
                             entry_of([weak = std::weak_ptr(call), i](const Tensor& g) {
                               const auto its = weak.lock();
                               return its ? its->take(i, g) : Tensor();
                             }));
  return y;
}

}  // namespace aloft::gradient_of_yours
