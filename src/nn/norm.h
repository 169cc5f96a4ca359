// Normalisation layers without running state. Their parameters are a norm's: O1 and O2 keep them
// in fp32.
#pragma once

#include "nn/layer.h"

namespace aloft::nn {

// Defaults as torch.nn.LayerNorm's.
struct LayerNormOptions {
  double eps = 1e-5;  // added to the variance
  bool bias = true;   // false: nothing is added behind the scale
};

// (x - mean) / sqrt(variance + eps) * weight + bias over the last axis (ops/layer_norm.h).
// Parameters: weight [dim] (ones), bias [dim] (zeros).
class LayerNorm : public Layer {
 public:
  static constexpr std::string_view kKind = "LayerNorm";
  std::string_view kind() const override { return kKind; }

  // `dim`: extent of the last axis. UserError E0210 unless it is positive.
  LayerNorm(Module& parent, std::string_view name, std::int64_t dim,
            const LayerNormOptions& options = {});

  Tensor operator()(Operand x) const;  // [..., dim] -> the same

  VariablePtr weight, bias;  // bias is null where there is none

 private:
  double eps_;
};

// What an RMSNorm is, besides its extent.
struct RMSNormOptions {
  double eps = 1e-6;      // added to the mean square
  bool plus_one = false;  // the scale is 1 + weight, which begins as zeros: Gemma's
};

// x / sqrt(mean(x^2) + eps) * weight over the last axis (ops/rms_norm.h). Parameter: weight [dim]
// (ones).
class RMSNorm : public Layer {
 public:
  static constexpr std::string_view kKind = "RMSNorm";
  std::string_view kind() const override { return kKind; }

  // `dim`: extent of the last axis. UserError E0210 unless it is positive.
  RMSNorm(Module& parent, std::string_view name, std::int64_t dim,
          const RMSNormOptions& options = {});

  Tensor operator()(Operand x) const;  // [..., dim] -> the same

  VariablePtr weight;  // [dim]

 private:
  RMSNormOptions options_;
};

// Default as torch.nn.GroupNorm's.
struct GroupNormOptions {
  double eps = 1e-5;  // added to the variance
};

// Normalises each group of channels of each example (ops/group_norm.h). Parameters: weight
// [channels], bias [channels].
class GroupNorm : public Layer {
 public:
  static constexpr std::string_view kKind = "GroupNorm";
  std::string_view kind() const override { return kKind; }

  // UserError E0211 unless groups divides channels, E0210 unless both are positive.
  GroupNorm(Module& parent, std::string_view name, std::int64_t groups, std::int64_t channels,
            const GroupNormOptions& options = {});

  Tensor operator()(Operand x) const;  // [N, channels, ...] -> the same

  VariablePtr weight, bias;  // [channels]

 private:
  std::int64_t groups_;
  double eps_;
};

}  // namespace aloft::nn
