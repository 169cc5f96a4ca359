// An affine layer: x weight^T + bias.
#pragma once

#include <optional>

#include "nn/layer.h"

namespace aloft::nn {

// What a Linear is, besides its extents.
struct LinearOptions {
  bool bias = true;                      // false: none is added
  std::optional<Init> weight_init = {};  // unset: kaiming_uniform(in)
  std::optional<Init> bias_init = {};    // unset: kaiming_uniform(in)
};

// y = x weight^T + bias, over the last axis. Parameters: weight [out, in], bias [out].
class Linear : public Layer {
 public:
  static constexpr std::string_view kKind = "Linear";
  std::string_view kind() const override { return kKind; }

  // `in`, `out`: features. UserError E0210 unless both are positive.
  Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
         const LinearOptions& options = {});

  Tensor operator()(Operand x) const;  // [..., in] -> [..., out]

  VariablePtr weight, bias;  // bias is null where there is none
};

}  // namespace aloft::nn
