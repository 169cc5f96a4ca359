// How a parameter starts. A parameter's numbers depend on the seed and its own full name alone, not
// on what else the model has or on the order of construction.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "frontend/module.h"

namespace aloft::nn {

// What the numbers of a new parameter are drawn from; made by the functions below.
struct Init {
  enum class Kind { Constant, Normal, Uniform };
  Kind kind = Kind::Constant;  // how scale is meant
  double scale = 0;            // the constant; the standard deviation; the bound: [-scale, scale)

  static Init zeros() { return {Kind::Constant, 0}; }  // all 0
  static Init ones() { return {Kind::Constant, 1}; }   // all 1
  // Normal around 0, of this standard deviation.
  static Init normal(double deviation) { return {Kind::Normal, deviation}; }
  // Uniform in [-bound, bound).
  static Init uniform(double bound) { return {Kind::Uniform, bound}; }
  // Uniform with bound 1 / sqrt(fan_in): what PyTorch gives weights and biases of Linear and Conv2d
  // (He et al. 2015 with a = sqrt(5)).
  static Init kaiming_uniform(std::int64_t fan_in);
  // GPT-2's projections back into the residual stream: normal, deviation / sqrt(2 layers).
  static Init gpt2_residual(std::int64_t layers, double deviation = 0.02);
};

// Fills values of the parameter `full_name` under the current seed (manual_seed). UserError E0210
// where a scale is not finite, or a deviation or bound is negative.
void fill(const Init& init, std::string_view full_name, float* values, std::int64_t count);

// UserError E0210 unless value >= 1; `what` as in "Linear 'up': in_features".
void need_positive(std::int64_t value, const std::string& what);
// The same of a number of layers, which are made one by one: at most 65,536.
void need_depth(std::int64_t value, const std::string& what);

}  // namespace aloft::nn
