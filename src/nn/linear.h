// An affine layer: x weight^T + bias.
#pragma once

#include <optional>

#include "nn/layer.h"

namespace aloft::nn {

struct LinearOptions {
  bool bias = true;
  std::optional<Init> weight_init = {};  // unset: kaiming_uniform(in)
  std::optional<Init> bias_init = {};    // unset: kaiming_uniform(in)
};

// Parameters: weight [out, in], bias [out].
class Linear : public Layer {
 public:
  Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         const LinearOptions& options = {});

  Tensor operator()(Operand x) const;  // [..., in] -> [..., out]

  VariablePtr weight, bias;  // bias is null where there is none
};

}  // namespace aloft::nn
