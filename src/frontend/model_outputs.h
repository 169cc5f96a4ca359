// Inside: what a model gives, in another type.
#pragma once

#include "frontend/nested.h"
#include "ops/cast.h"

namespace aloft::amp {

// Casts every floating tensor in a result to `type`: in lists, tuples, optionals, maps and structs
// with parts() (frontend/nested.h); what is nothing of these stays as it is.
template <class T>
void cast_outputs(T& value, DType type) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (value.is_defined() && is_float(value.dtype())) value = cast(value, type);
  } else if constexpr (nested::is_a<T, std::vector> || nested::is_array<T>) {
    if constexpr (!std::is_same_v<T, std::vector<bool>>)
      for (auto& each : value) cast_outputs(each, type);
  } else if constexpr (nested::is_a<T, std::optional>) {
    if (value) cast_outputs(*value, type);
  } else if constexpr (nested::is_a<T, std::tuple> || nested::is_a<T, std::pair>) {
    std::apply([&](auto&... each) { (cast_outputs(each, type), ...); }, value);
  } else if constexpr (nested::is_a<T, std::map>) {
    for (auto& [key, each] : value) cast_outputs(each, type);
  } else if constexpr (nested::Structure<T>) {
    std::apply([&](const auto&... p) { (cast_outputs(value.*(p.member), type), ...); },
               PartsOf<T>::parts());
  }
}

}  // namespace aloft::amp
