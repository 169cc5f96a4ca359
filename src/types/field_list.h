// The fields of a struct, as its fields() gives them: the attributes of an op, the options of an
// optimizer, the settings of a model. A std::tuple would hold them too; a program that includes all
// ops would compile a second longer for it.
#pragma once

#include <utility>

namespace aloft {

template <class... Fields>
struct FieldList;

template <>
struct FieldList<> {
  template <class Look>
  constexpr void each(Look&&) const {}
};

template <class First, class... Rest>
struct FieldList<First, Rest...> {
  constexpr explicit FieldList(First f, Rest... r) : first(std::move(f)), rest(std::move(r)...) {}
  // Calls look(field) for each field, in their order.
  template <class Look>
  constexpr void each(Look&& look) const {
    look(first);
    rest.each(look);
  }

  First first;
  [[no_unique_address]] FieldList<Rest...> rest;
};

template <class... Fields>
FieldList(Fields...) -> FieldList<Fields...>;

}  // namespace aloft
