// apex's words for functions that are to run in a type: decorators of a function, and ops by name;
// and a block in which nothing is cast.
#pragma once

#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "frontend/amp_options.h"
#include "frontend/autocast.h"
#include "frontend/cast_nested.h"

namespace aloft::amp {

// amp.register_half_function and its like, by the name of an op (`*` for any letters) instead of a
// module and a name, before amp::initialize is given the options. UserError E0809 where there is no
// such op.
void register_half_function(Options& options, const std::string& op);
// The op's operands are f32, and it is computed in f32; where both name an op, this one holds.
void register_float_function(Options& options, const std::string& op);
// Nothing for ops of the class Follow (docs/precision.md) and for comparisons, whose operands meet
// in the widest of their types at O1. The others are computed in a type of their own: in apex, too,
// where the cast of its lists goes before a promotion by name, which so does nothing. Here that is
// UserError E0711; promote_function(f) is what there is.
void register_promote_function(Options& options, const std::string& op);

// amp.disable_casts: what is written until the end of the block is computed in the types that it
// has, as in autocast({.enabled = false}).
class disable_casts {  // NOLINT(readability-identifier-naming): apex's name
 public:
  disable_casts() : off_({.enabled = false}) {}  // until the end of the block

 private:
  autocast off_;
};

// Inside: the low type of the O1 that governs; nothing where none does.
std::optional<DType> low_type_of_o1();

// Inside: f of the arguments with floating tensors in that type.
template <class F, class... A>
auto with_cast(const F& f, DType type, const A&... arguments) {
  const auto taken = [&](auto a) {
    cast_nested(a, type);
    return a;
  };
  const std::tuple<decltype(taken(arguments))...> in_order{taken(arguments)...};
  return std::apply(f, in_order);
}

// amp.half_function: `f` with its floating tensors in the low type of the level O1 that governs the
// call: in a model that amp::initialize has prepared, or an autocast block. Elsewhere `f` as it is.
// Here and below, tensors within lists, pairs, tuples, optionals, maps and structs with parts()
// too; a tensor that is undefined, and what is none, is passed on as it is.
template <class F>
auto half_function(F f) {
  return [f = std::move(f)](const auto&... arguments) {
    const std::optional<DType> low = low_type_of_o1();
    return low ? with_cast(f, *low, arguments...) : f(arguments...);
  };
}

// amp.float_function: `f` with its floating tensors in f32, and what it calls in the types it is
// written in.
template <class F>
auto float_function(F f) {
  return [f = std::move(f)](const auto&... arguments) {
    return low_type_of_o1() ? custom_fwd(f, DType::F32)(arguments...) : f(arguments...);
  };
}

// amp.promote_function: `f` with its floating tensors in the widest type that one of them has; f32
// for bf16 with f16.
template <class F>
auto promote_function(F f) {
  return [f = std::move(f)](const auto&... arguments) {
    const std::optional<DType> widest = widest_within(arguments...);
    return widest && low_type_of_o1() ? with_cast(f, *widest, arguments...) : f(arguments...);
  };
}

}  // namespace aloft::amp
