// torch.autocast: ops inside the scope run in the types of a precision, wherever their inputs come
// from; scopes nest, and one that is not enabled takes the outer one back.
//
//   {
//     amp::autocast scope({.dtype = DType::BF16});
//     loss = cross_entropy(model(x), label);   // matrix products in bf16, the loss in f32
//   }
//   loss.backward();                           // in the types of the forward ops
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "frontend/cast_nested.h"
#include "graph/scope.h"
#include "types/dtype.h"

namespace aloft::amp {

// torch.autocast(dtype=..., enabled=...). cache_enabled needs no argument: a weight is cast once
// however often it is read.
struct AutocastOptions {
  DType dtype = DType::BF16;  // torch's on a CPU; F16 with a GradScaler
  bool enabled = true;        // false: what is written is computed in the types it has
};

// The ops of O1 in `dtype` until the end of the block, eagerly and in a traced function. A model
// that amp::initialize has prepared keeps its own precision there; of one that is called itself,
// and whose operator() is no nn::Module::call(), the layers keep it, unless the scope is not
// enabled. UserError E0833 for a type that is not bf16, f16 or f32.
class autocast {  // NOLINT(readability-identifier-naming): torch's name
 public:
  explicit autocast(const AutocastOptions& options = {});  // until the end of the block
  ~autocast();                                             // which is here
  autocast(const autocast&) = delete;
  autocast& operator=(const autocast&) = delete;

 private:
  // Before the block.
  bool were_off_;
  Policy was_around_;
  bool is_around_;  // it was opened by no prepared model's call
  Scope scope_;
};

// Whether a precision governs what is called now.
bool is_autocast_enabled();

// Inside: whether the innermost block has taken casts back, for modules too that have a precision
// by the model that they are a part of.
bool casts_are_off();

// Inside: whether what governs now is the innermost block, which was opened around calls of
// prepared models, not within one. Of a model that is called itself, and whose operator() is no
// nn::Module::call(), nothing says where its call begins: a block in it counts as around it.
bool a_block_around_governs();

// torch.amp.custom_fwd(cast_inputs=dtype): `f` with its floating tensors in that type, those within
// lists, tuples, optionals, maps and structs with parts() too, and what it calls in the types it is
// written in. Its gradient is computed as it was, which is what custom_bwd is for: there is nothing
// else to mark.
template <class F>
auto custom_fwd(F f, DType cast_inputs) {
  return [f = std::move(f), cast_inputs](const auto&... arguments) {
    const bool governs = is_autocast_enabled();
    const auto taken = [&](auto a) {
      if (governs) cast_nested(a, cast_inputs);
      return a;
    };
    // Cast outside of the scope.
    const std::tuple<std::decay_t<decltype(arguments)>...> in_order{taken(arguments)...};
    if (!governs) return std::apply(f, in_order);
    const autocast off({.enabled = false});
    return std::apply(f, in_order);
  };
}

}  // namespace aloft::amp
