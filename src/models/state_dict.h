// A model's state as named fp32 tensors: parameters (the fp32 master where the optimizer keeps one)
// and buffers, whatever type and place training keeps them in. Files are safetensors.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "files/safetensors.h"
#include "frontend/module.h"
#include "frontend/optimizer.h"

namespace aloft::models {

struct StateEntry {
  std::string name;
  VariablePtr variable;
  VariablePtr master;  // f32 or remainders; null where the variable is its own master
};

// Parameters, then buffers, in order of construction. `optimizer` may be null: masters are unknown.
std::vector<StateEntry> state_entries(const nn::Module& model,
                                      const Optimizer* optimizer = nullptr);

// The logical value, fp32: `count` elements from `first` on.
void read_state(const StateEntry& entry, std::int64_t first, std::span<float> to);
// Sets elements [first, first + from.size()): the master, and the variable rounded from it.
void write_state(const StateEntry& entry, std::int64_t first, std::span<const float> from);

// Element `i` on of a stored tensor (F64, F32, BF16, F16) as fp32.
void read_floats(const TensorView& tensor, std::int64_t first, std::span<float> to);

void save_state(const Path& path, const nn::Module& model, const Optimizer* optimizer = nullptr,
                const Metadata& metadata = {});

// Every entry must be in the file with the same shape and a float type, and nothing else may be
// there. All problems in one DataError E0630; nothing is changed then.
void load_state(const Safetensors& file, nn::Module& model, const Optimizer* optimizer = nullptr);

}  // namespace aloft::models
