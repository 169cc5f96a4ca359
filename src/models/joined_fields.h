// Lists of fields one behind the other: of the settings that several families have.
#pragma once

#include <utility>

#include "types/field_list.h"

namespace aloft::models {

// Inside: f of all fields of a list, behind those that were taken off it.
template <class F, class... Taken>
auto with_fields(const F& f, FieldList<>, Taken... taken) {
  return f(std::move(taken)...);
}
template <class F, class First, class... Rest, class... Taken>
auto with_fields(const F& f, FieldList<First, Rest...> fields, Taken... taken) {
  return with_fields(f, std::move(fields.rest), std::move(taken)..., std::move(fields.first));
}

// Both lists, one behind the other.
template <class... Fields, class... More>
auto joined(const FieldList<Fields...>& fields, const FieldList<More...>& more) {
  return with_fields(
      [&](const auto&... first) {
        return with_fields([&](const auto&... last) { return FieldList{first..., last...}; }, more);
      },
      fields);
}

}  // namespace aloft::models
