#include "observe/compare/function_names.h"

#include <string_view>
#include <utility>

#include "base/text.h"

namespace aloft::compare {

std::string plain_function(const Entry& call) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"attention_probabilities", "softmax"},
      {"gelu_tanh", "gelu"},
      {"addmm", "linear"},
      {"dense", "linear"},
      {"bmm", "matmul"},
      {"batchmatmul", "matmul"},
      {"layernorm", "layer_norm"},
      {"radd", "add"},
      {"iadd", "add"},
      {"rmul", "mul"},
      {"imul", "mul"},
      {"multiply", "mul"},
      {"rsub", "sub"},
      {"truediv", "div"},
      {"gather", "embedding"}};
  std::string name = lower(call.kind);
  if (name.starts_with("__") && name.ends_with("__") && name.size() > 4)
    name = name.substr(2, name.size() - 4);
  while (name.ends_with('_') && name.size() > 1) name.pop_back();
  for (const auto& [theirs, plain] : kNames)
    if (name == theirs) return std::string(plain);
  return name;
}

bool commutes(const Entry& call) {
  if (call.is_module) return false;
  const std::string name = plain_function(call);
  return name == "add" || name == "mul" || name == "maximum" || name == "minimum";
}

}  // namespace aloft::compare
