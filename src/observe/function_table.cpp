#include "observe/function_table.h"

namespace aloft {

std::span<const NamedFunction> named_functions() {
  // Not listed: what is an op here by that name, or a word that says less in a list than it would
  // choose, such as "batch".
  static constexpr NamedFunction kAll[] = {
      {"add", "__add__"},
      {"add", "__iadd__"},
      {"add", "__radd__"},
      {"attention", "scaled_dot_product_attention"},
      {"attention", "attention_qkv", false},
      {"attention_probabilities", "softmax", false},
      {"attention_qkv", "scaled_dot_product_attention"},
      {"cast", "to"},
      {"concat", "cat"},
      {"div", "__truediv__"},
      {"embedding", "gather", false},
      {"gelu_tanh", "gelu"},
      {"layer_norm", "layernorm", false},
      {"linear", "addmm"},
      {"linear", "dense", false},
      {"matmul", "__matmul__"},
      {"matmul", "batchmatmul", false},
      {"matmul", "bmm"},
      {"matmul", "mm"},
      {"mul", "__imul__"},
      {"mul", "__mul__"},
      {"mul", "__rmul__"},
      {"mul", "multiply"},
      {"neg", "__neg__"},
      {"reshape", "view"},
      {"sub", "__rsub__"},
      {"sub", "__sub__"},
      {"transpose", "permute"},
  };
  return kAll;
}

}  // namespace aloft
