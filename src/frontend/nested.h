// Tensors within arguments and results of compile(), at any depth: in vectors, arrays, tuples,
// pairs, maps, optionals, and in structs that say what they hold:
//
//   struct Batch {
//     Tensor image;
//     std::optional<Tensor> mask;
//     std::vector<Tensor> targets;
//     static constexpr auto parts() {
//       return std::tuple{part("image", &Batch::image), part("mask", &Batch::mask),
//                         part("targets", &Batch::targets)};
//     }
//   };
//
// Beside tensors there may be numbers, flags, enumerators and strings in arguments: they, and how
// long containers are, which keys a map has and which optionals a value, are part of the program
// that is compiled; a call with others is compiled for anew. Pass what changes from call to call as
// a tensor. A result has tensors alone. What parts() leaves out is, in an argument, what it was in
// the call that was traced, in a result what it was when the function was.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "graph/tensor.h"

namespace aloft {

// A member of a struct that holds tensors, and its name in messages.
template <class S, class T>
struct Part {
  // As part() is given them:
  std::string_view name;
  T S::*member;
};

// What parts() lists, as in the example above.
template <class S, class T>
constexpr Part<S, T> part(std::string_view name, T S::*member) {
  return {name, member};
}

// The parts of a struct that is not yours: specialise it, with a static constexpr parts().
template <class S>
struct PartsOf {};
template <class S>
requires requires { S::parts(); }
struct PartsOf<S> {
  // What the struct itself says.
  static constexpr auto parts() { return S::parts(); }
};

// Inside: how compile() takes such values apart and puts them together again.
namespace nested {

template <class T, template <class...> class Of>
inline constexpr bool is_a = false;
template <class... T, template <class...> class Of>
inline constexpr bool is_a<Of<T...>, Of> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T, std::size_t N>
inline constexpr bool is_array<std::array<T, N>> = true;
template <class T>
inline constexpr bool is_never = false;

template <class T>
concept Number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
concept Text = std::is_convertible_v<const T&, std::string_view>;
template <class T>
concept Structure = requires {
  PartsOf<T>::parts();
};
template <class T>
concept AsTensor = std::is_convertible_v<const T&, Tensor>;

// Whether every value of the type is without tensors.
template <class T>
constexpr bool has_no_tensor() {
  if constexpr (Number<T> || Text<T>)
    return true;
  else if constexpr (is_a<T, std::vector> || is_a<T, std::optional> || is_array<T>)
    return has_no_tensor<typename T::value_type>();
  else
    return false;
}

template <class T, class V>
void visit(T& value, V& v);

template <class T, class V>
void visit_each(T& list, V& v) {
  std::size_t i = 0;
  for (auto& element : list) {
    v.enter(i++);
    visit(element, v);
    v.leave();
  }
}

template <class T, class V>
void visit_structure(T& value, V& v) {
  std::apply(
      [&](const auto&... p) { ((v.enter(p.name), visit(value.*(p.member), v), v.leave()), ...); },
      PartsOf<std::remove_const_t<T>>::parts());
}

// Shows a visitor what there is, in order. It has tensor(), and, where it sees what is none,
// number(), text() and length(); enter() and leave() say where it is.
template <class T, class V>
void visit(T& value, V& v) {
  using U = std::remove_const_t<T>;
  if constexpr (std::is_same_v<U, Tensor>) {
    v.tensor(value);
  } else if constexpr (AsTensor<U>) {
    const Tensor t = value;
    v.tensor(t);
  } else if constexpr (has_no_tensor<U>() && !V::kSeesNumbers) {
    static_assert(V::kPassesNumbers,
                  "a result of compile() is made of tensors: a number or a string would be that of "
                  "the trace. Return a tensor, such as full({}, x), or leave it out of parts()");
  } else if constexpr (Number<U>) {
    v.number(value);
  } else if constexpr (Text<U>) {
    v.text(value);
  } else if constexpr (std::is_same_v<U, std::vector<bool>>) {
    v.length(value.size());
    for (const bool each : value) v.number(each);
  } else if constexpr (is_a<U, std::vector>) {
    v.length(value.size());
    visit_each(value, v);
  } else if constexpr (is_array<U>) {
    visit_each(value, v);
  } else if constexpr (is_a<U, std::optional>) {
    v.length(value ? 1 : 0);
    if (value) visit(*value, v);
  } else if constexpr (is_a<U, std::tuple> || is_a<U, std::pair>) {
    std::size_t i = 0;
    std::apply([&](auto&... each) { ((v.enter(i++), visit(each, v), v.leave()), ...); }, value);
  } else if constexpr (is_a<U, std::map>) {
    v.length(value.size());
    for (auto& [key, each] : value) {
      v.key(key);
      visit(each, v);
      v.leave();
    }
  } else if constexpr (Structure<U>) {
    visit_structure(value, v);
  } else {
    static_assert(is_never<U>,
                  "compile() takes and gives tensors, numbers and strings, and lists of any kind, "
                  "tuples, pairs, maps, optionals and structs of them. A struct says what it holds "
                  "by parts() or PartsOf (frontend/nested.h); models are captured, not passed");
  }
}

// What a visitor says where it does not care.
struct Quiet {
  static constexpr bool kSeesNumbers = false, kPassesNumbers = true;
  void enter(std::size_t) {}
  void enter(std::string_view) {}
  void leave() {}
  void length(std::size_t) {}
  template <class K>
  void key(const K&) {}
};

// The tensors of a value; and, in bytes, everything that is none.
struct TakenApart : Quiet {
  static constexpr bool kSeesNumbers = true;
  std::vector<Tensor> tensors;
  std::string fixed;

  void tensor(const Tensor& t) { tensors.push_back(t); }
  template <class N>
  void number(const N& n) {
    if constexpr (std::is_same_v<N, long double>)  // it has bytes that mean nothing
      number(static_cast<double>(n));
    else
      fixed.append(reinterpret_cast<const char*>(&n), sizeof n);
  }
  void text(std::string_view t) {
    length(t.size());
    fixed.append(t);
  }
  void length(std::size_t n) { number(n); }
  template <class K>
  void key(const K& k) {
    visit(k, *this);
  }
};

// Gives tensors of a copy other values, in order.
struct PutTogether : Quiet {
  explicit PutTogether(const std::vector<Tensor>& all) : from(all) {}
  const std::vector<Tensor>& from;
  std::size_t next = 0;
  void tensor(Tensor& t) { t = from[next++]; }
};

// Leaves a value without its tensors.
struct Emptied : Quiet {
  void tensor(Tensor& t) { t = Tensor(); }
};

// "[0].mask", for messages.
class Path {
 public:
  void enter(std::size_t i) { push("[" + std::to_string(i) + "]"); }
  void enter(std::string_view name) { push("." + std::string(name)); }
  template <class K>
  void key(const K& k) {
    if constexpr (Text<K>)
      push("[\"" + std::string(std::string_view(k)) + "\"]");
    else
      push("[" + std::to_string(k) + "]");
  }
  void leave() {
    text_.resize(ends_.back());
    ends_.pop_back();
  }
  const std::string& str() const { return text_; }

 private:
  void push(const std::string& step) {
    ends_.push_back(text_.size());
    text_ += step;
  }
  std::string text_;
  std::vector<std::size_t> ends_;
};

// Something in an argument: a tensor, or what is part of the program.
struct Place {
  std::string path;
  bool is_tensor = false;
  std::string text = {};  // of what is no tensor
};

struct Places : Path {
  static constexpr bool kSeesNumbers = true, kPassesNumbers = true;
  std::vector<Place> all;

  void tensor(const Tensor&) { all.push_back({str(), true}); }
  template <class N>
  void number(const N& n) {
    if constexpr (std::is_enum_v<N>)
      number(static_cast<std::underlying_type_t<N>>(n));
    else if constexpr (std::is_same_v<N, bool>)
      all.push_back({str(), false, n ? "true" : "false"});
    else
      all.push_back({str(), false, std::to_string(n)});
  }
  void text(std::string_view t) { all.push_back({str(), false, "\"" + std::string(t) + "\""}); }
  void length(std::size_t n) { all.push_back({str(), false, std::to_string(n) + " values"}); }
};

// The tensors of a result, with the names that they have as outputs of a program.
struct Outputs : Path {
  static constexpr bool kSeesNumbers = false, kPassesNumbers = false;
  std::vector<std::pair<std::string, Tensor>> all;

  void tensor(const Tensor& t) { all.emplace_back(name_of(str()), t); }
  void length(std::size_t) {}

 private:
  // "result", "result0", "loss", "result0.loss".
  std::string name_of(const std::string& path);
  std::set<std::string> names_;
};

}  // namespace nested
}  // namespace aloft
