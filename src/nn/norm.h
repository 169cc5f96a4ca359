// Normalisation layers without running state. Their parameters are a norm's: O1 and O2 keep them
// in fp32.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

struct LayerNormOptions {
  double eps = 1e-5;
  bool bias = true;
};

// Over the last axis. Parameters: weight [dim] (ones), bias [dim] (zeros).
class LayerNorm : public Layer {
 public:
  LayerNorm(Module& parent, std::string_view name, std::int64_t dim,
            const LayerNormOptions& options = {});

  Tensor operator()(Operand x) const;  // [..., dim]

  VariablePtr weight, bias;

 private:
  double eps_;
};

struct RMSNormOptions {
  double eps = 1e-6;
};

// Over the last axis. Parameter: weight [dim] (ones).
class RMSNorm : public Layer {
 public:
  RMSNorm(Module& parent, std::string_view name, std::int64_t dim,
          const RMSNormOptions& options = {});

  Tensor operator()(Operand x) const;  // [..., dim]

  VariablePtr weight;

 private:
  double eps_;
};

struct GroupNormOptions {
  double eps = 1e-5;
};

// Over groups of channels of one example. Parameters: weight [channels], bias [channels].
class GroupNorm : public Layer {
 public:
  // UserError E0211 unless groups divides channels.
  GroupNorm(Module& parent, std::string_view name, std::int64_t groups, std::int64_t channels,
            const GroupNormOptions& options = {});

  Tensor operator()(Operand x) const;  // [N, channels, ...]

  VariablePtr weight, bias;

 private:
  std::int64_t groups_;
  double eps_;
};

}  // namespace aloft::nn
