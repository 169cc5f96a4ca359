// Functions that a caller gives, and never assigned: refused where they are given, not where they
// are called first.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace aloft {

// Inside: whether f is an empty std::function, a null pointer, or a reference to one of these. What
// a functor of another type means by its operator bool is its own affair.
template <class F>
bool is_unassigned(const F&) {
  return false;
}
template <class F>
bool is_unassigned(F* const& f) {
  return f == nullptr;
}
template <class Signature>
bool is_unassigned(const std::function<Signature>& f) {
  return !f;
}
template <class F>
bool is_unassigned(const std::reference_wrapper<F>& f) {
  return is_unassigned(f.get());
}

// Inside: UserError E0302 where f was never assigned; `taker` is who is given it.
template <class F>
void need_assigned(const F& f, std::string_view taker) {
  if (is_unassigned(f))
    throw UserError("E0302", std::string(taker) + " is given a function that was never assigned")
        .saw("an empty std::function or a null pointer")
        .need("a function of tensors");
}

}  // namespace aloft
