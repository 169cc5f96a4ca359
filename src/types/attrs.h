// Attributes of an op. Each op has a plain struct that lists its fields once (`fields()`); graphs,
// plans and files carry the erased form `Attrs`, which prints, parses, compares and serialises
// without knowing the op.
//
//   struct SoftmaxAttrs {
//     std::int64_t axis = -1;
//     static constexpr auto fields() {
//       return FieldList{field("axis", &SoftmaxAttrs::axis, "...")};
//     }
//   };
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/name.h"
#include "types/dtype.h"
#include "types/field_list.h"
#include "types/shape.h"

namespace aloft {

using Ints = std::vector<std::int64_t>;
using AttrValue = std::variant<bool, std::int64_t, double, std::string, Ints, DType, Shape>;

class Attrs {
 public:
  Attrs() = default;

  const AttrValue* find(Name name) const;
  void set(Name name, AttrValue value);
  void erase(Name name);
  const std::vector<std::pair<Name, AttrValue>>& all() const { return all_; }
  bool empty() const { return all_.empty(); }

  // {axis=-1, name="fc.w", perm=(0,2,1), type=bf16, shape=[B<=8,4]}; "" when empty.
  std::string str() const;
  friend bool operator==(const Attrs&, const Attrs&) = default;

 private:
  std::vector<std::pair<Name, AttrValue>> all_;  // in the order of the struct's fields
};

// Parses what str() prints, braces included. UserError E0104.
Attrs parse_attrs(std::string_view text);
std::string print_attr(const AttrValue&);
AttrValue parse_attr(std::string_view text);

template <class A, class T>
struct Field {
  std::string_view name;
  T A::*member;
  std::string_view doc;
};

template <class A, class T>
constexpr Field<A, T> field(std::string_view name, T A::*member, std::string_view doc) {
  return {name, member, doc};
}

// An op without attributes.
struct NoAttrs {
  static constexpr auto fields() { return FieldList<>{}; }
};

template <class A>
Attrs to_attrs(const A& a) {
  Attrs out;
  A::fields().each([&](const auto& f) { out.set(f.name, AttrValue(a.*(f.member))); });
  return out;
}

[[noreturn]] void throw_unknown_attr(std::string_view name, std::string_view kind);

// Fields that `attrs` does not name keep their defaults; a name or a kind that the struct does not
// have is UserError E0105.
template <class A>
A from_attrs(const Attrs& attrs) {
  A a;
  for (const auto& entry : attrs.all()) {  // no structured binding: clang 14 captures none
    const Name name = entry.first;
    const AttrValue& value = entry.second;
    bool known = false;
    auto take = [&](const auto& f) {
      using T = std::remove_cvref_t<decltype(a.*(f.member))>;
      if (f.name != name.str()) return;
      known = true;
      if (const T* v = std::get_if<T>(&value)) {
        a.*(f.member) = *v;
      } else if constexpr (std::is_same_v<T, double>) {
        if (const auto* i = std::get_if<std::int64_t>(&value))
          a.*(f.member) = static_cast<double>(*i);
        else
          throw_unknown_attr(name.str(), "number");
      } else {
        throw_unknown_attr(name.str(), print_attr(AttrValue(T{})));
      }
    };
    A::fields().each(take);
    if (!known) throw_unknown_attr(name.str(), "");
  }
  return a;
}

}  // namespace aloft
