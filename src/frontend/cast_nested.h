// Inside: floating tensors within a value of any form, and what casts them: arguments of functions
// that run in a type, results of a model.
#pragma once

#include <optional>

#include "frontend/nested.h"
#include "ops/cast.h"

namespace aloft::amp {

// body(tensor) for every floating tensor that there is: in lists, tuples, pairs, optionals, maps
// and structs with parts() (frontend/nested.h). What is nothing of these, and a tensor that is
// undefined, is passed by.
template <class T, class Body>
void for_each_float(T& value, const Body& body) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, Tensor>) {
    if (value.is_defined() && is_float(value.dtype())) body(value);
  } else if constexpr (nested::is_a<U, std::vector> || nested::is_array<U>) {
    if constexpr (!std::is_same_v<U, std::vector<bool>>)
      for (auto& each : value) for_each_float(each, body);
  } else if constexpr (nested::is_a<U, std::optional>) {
    if (value) for_each_float(*value, body);
  } else if constexpr (nested::is_a<U, std::tuple> || nested::is_a<U, std::pair>) {
    std::apply([&](auto&... each) { (for_each_float(each, body), ...); }, value);
  } else if constexpr (nested::is_a<U, std::map>) {
    for (auto& [key, each] : value) for_each_float(each, body);
  } else if constexpr (nested::Structure<U>) {
    std::apply([&](const auto&... p) { (for_each_float(value.*(p.member), body), ...); },
               PartsOf<U>::parts());
  }
}

template <class T>
void cast_nested(T& value, DType type) {
  for_each_float(value, [&](Tensor& t) { t = cast(t, type); });
}

// Inside: wider() of precision/rules.h; `b` where there is no `a`.
DType wider_of(std::optional<DType> a, DType b);

// The widest type of the floating tensors within the values; nothing where there are none.
template <class... T>
std::optional<DType> widest_within(const T&... values) {
  std::optional<DType> widest;
  const auto meet = [&](const Tensor& t) { widest = wider_of(widest, t.dtype()); };
  (for_each_float(values, meet), ...);
  return widest;
}

}  // namespace aloft::amp
