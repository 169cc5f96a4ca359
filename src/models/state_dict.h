// A model's state as named fp32 tensors: parameters (the fp32 master where there is one) and
// buffers, whatever type and place training keeps them in. Files are safetensors.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "files/safetensors.h"
#include "frontend/module.h"

namespace aloft::models {

// What a model's state is: parameters, then buffers, in order of construction.
std::vector<VariablePtr> state_variables(const nn::Module& model);

// The variable's value in fp32, the master's where it has one: to.size() elements from `first` on.
// UserError E0313 here and below where it does not have so many, E0323 where they are no floats.
void read_state(const Variable& variable, std::int64_t first, std::span<float> to);
// Sets elements [first, first + from.size()): the master, and the variable rounded from it.
void write_state(Variable& variable, std::int64_t first, std::span<const float> from);

// Elements of a stored tensor (F64, F32, BF16, F16) as fp32: to.size() of them from `first` on.
void read_floats(const TensorView& tensor, std::int64_t first, std::span<float> to);

// Writes a model's state to a file: before amp::initialize, after it, while a model trains: the
// file holds what is trained, in fp32. EnvironmentError E0603, E0604; UserError E0614 for metadata
// that is not UTF-8.
void save_state(const Path& path, const nn::Module& model, const Metadata& metadata = {});

// Sets parameters, with their masters, and buffers: the next step goes on from what was loaded.
// Every tensor of the model must be in the file with the same shape and a float type, and nothing
// else may be there. All problems in one DataError E0630; nothing is changed then.
void load_state(const Safetensors& file, nn::Module& model);

}  // namespace aloft::models
