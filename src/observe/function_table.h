// How functions are called elsewhere that compute what an op does: what lists of the probe may say
// for it, and by what two dumps of different frameworks are paired.
#pragma once

#include <span>
#include <string_view>

namespace aloft {

struct NamedFunction {
  std::string_view op;
  std::string_view name;  // of PyTorch, as msprobe has it, of MindSpore, or of another op here
  bool is_listed = true;  // a list of the probe that says the name means the op
};

// Where a function is called as the op is, it has no row.
std::span<const NamedFunction> named_functions();

}  // namespace aloft
