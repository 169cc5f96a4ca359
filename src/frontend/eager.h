// Eager mode: an op has executed when its call returns (eager_emitter.h says how). On which device
// that is, tensors of a program's own numbers, and gradients that backward() left.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/tensor.h"
#include "runtime/current_device.h"

namespace aloft {

// Makes `device` the one that models are made on, and eager calls and compiled programs run on, by
// every thread that is in no DeviceScope. <aloft/aloft.h> has done so with chosen_device.
void use_device(Device& device);
// The same, opened when it is first asked for: use_device(chosen_device) takes what ALOFT_DEVICE
// names, or the cpu.
void use_device(Device& (*open)());

// A tensor of the program's own numbers, row by row, copied: f32, f64, i32, i64. UserError E0313
// where the number of values is not the shape's.
Tensor from_floats(const std::vector<float>& values, const Shape& shape);
Tensor from_doubles(const std::vector<double>& values, const Shape& shape);
Tensor from_ints(const std::vector<std::int32_t>& values, const Shape& shape);
Tensor from_int64s(const std::vector<std::int64_t>& values, const Shape& shape);

// The gradient that backward() left for a parameter: the sum over every backward() since the last
// step of an optimizer that has it, or zero_grad(), in f32 where there were several; a compiled
// step counts. Undefined where no loss depended on it. UserError E0325 for no parameter
// (Module::parameter knows no such name).
Tensor grad_of(const VariablePtr& parameter);

}  // namespace aloft
