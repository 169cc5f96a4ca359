// Gradients that backward() left for parameters, as loops in torch's manner see them: read with
// grad_of() (frontend/eager.h), replaced, clipped, taken by a step. Eager mode alone; UserError
// E0305 in a function that is traced.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/optimizer.h"

namespace aloft {

// parameter.grad = gradient: what the next step takes. UserError E0325 for no parameter, E0808
// where backward() left it no gradient, E0807 where the shape is another or it is no float.
void set_grad(const VariablePtr& parameter, const Tensor& gradient);

// torch.nn.utils.clip_grad_norm_(parameters, max_norm): the gradients times max_norm over their
// global L2 norm where that is larger (+ 1e-6, as there), so that all keep their proportions.
// Returns the norm before, f32[]. Of a norm that is not finite the gradients become NaN, and the
// step is skipped. UserError E0814 unless max_norm is above 0, E0808 where a gradient is multiplied
// with a loss scale still.
Tensor clip_grad_norm_(const std::vector<VariablePtr>& parameters, double max_norm);
// The two halves of it, for the gradients of several models by the norm of all, or of some by a
// norm of one's own. torch.nn.utils.get_total_norm(tensors): the L2 norm of all elements of all
// floating tensors, f32[], 0 of none; what is undefined, as grad_of() of a parameter that no loss
// depends on, is left out. UserError E0203 for a tensor of integers.
Tensor get_total_norm(const std::vector<Tensor>& tensors);
// torch.nn.utils.clip_grads_with_norm_(parameters, max_norm, total_norm): the gradients times
// max_norm / (total_norm + 1e-6) where that is below 1, NaN where the norm is not finite.
// `total_norm`: a floating tensor of one number. UserErrors of clip_grad_norm_(), and E0203 for
// another tensor.
void clip_grads_with_norm_(const std::vector<VariablePtr>& parameters, double max_norm,
                           const Tensor& total_norm);
// torch.nn.utils.clip_grad_value_: each element cut at -most and most. UserError E0814 unless it is
// above 0, E0808 as above.
void clip_grad_value_(const std::vector<VariablePtr>& parameters, double most);

// Inside: those of the optimizer's parameters in its order, zeros for parameters that no loss
// depends on. `scale`: the loss scale that the losses were multiplied with; null: none was.
// UserError E0808 where there are none at all, or need_scaled() refuses them.
std::vector<Tensor> left_gradients(Optimizer& optimizer, const VariablePtr* scale,
                                   std::uint64_t since = 0);
// Inside: UserError E0808 where backward() left one of them a gradient of a loss that was not
// multiplied with this loss scale, or with it twice, or with another one too, or with an older
// value than that of version `since` on, or one that is divided by it already.
void need_scaled(const std::vector<VariablePtr>& parameters, const VariablePtr& scale,
                 std::uint64_t since = 0);
// Inside: UserError E0808 where one of their gradients is multiplied with a loss scale still.
void need_no_scale(const std::vector<VariablePtr>& parameters);
// Inside: UserError E0808 where one of their gradients is not divided by this loss scale.
void need_divided(const std::vector<VariablePtr>& parameters, const VariablePtr& scale);

}  // namespace aloft
