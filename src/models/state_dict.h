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
// Its mean's, where that stands in its place (AveragedWeights).
// UserError E0313 here and below where it does not have so many, E0323 where they are no floats.
void read_state(const Variable& variable, std::int64_t first, std::span<float> to);
// Sets elements [first, first + from.size()): the master, and the variable rounded from it.
// UserError E0836 here and in load_state() within a block of AveragedWeights, at whose end what was
// written would be gone.
void write_state(Variable& variable, std::int64_t first, std::span<const float> from);

// The same with elements of a stored tensor: as they are where both are of one type and there is no
// master, as numbers otherwise.
void write_state(Variable& variable, std::int64_t first, const TensorView& from,
                 std::int64_t count);

// Elements of a stored tensor (F64, F32, BF16, F16) as fp32: to.size() of them from `first` on.
void read_floats(const TensorView& tensor, std::int64_t first, std::span<float> to);

// Writes a model's state to a file: before amp::initialize, after it, while a model trains: the
// file holds what is trained, in fp32; within a block of AveragedWeights the means, as the weights'
// types hold them. EnvironmentError E0603, E0604; UserError E0614 for metadata
// that is not UTF-8. What the file is known by.
FileSeal save_state(const Path& path, const nn::Module& model, const Metadata& metadata = {});
// The same of a model's variables, in the order of state_variables().
FileSeal save_state(const Path& path, const std::vector<VariablePtr>& variables,
                    const Metadata& metadata = {});

// What became of a model's tensors and of a file's, by name.
struct StateReport {
  std::vector<std::string> loaded;      // of the model, as the file has them now
  std::vector<std::string> missing;     // of the model, and not in the file: as they were
  std::vector<std::string> unexpected;  // in the file, and not of the model
  // In both, and not alike: "'fc.weight' is f32[10,84] instead of f32[12,84]"; as they were.
  std::vector<std::string> mismatched;

  // Whether nothing was left, on either side.
  bool is_complete() const { return missing.empty() && unexpected.empty() && mismatched.empty(); }
  // For people: "12 tensors loaded; missing: fc.weight; unexpected: head.weight".
  std::string str() const;
};

// How a state is loaded.
struct LoadOptions {
  // Every tensor of the model must be in the file with the same shape and a float type, and nothing
  // else may be there: all problems in one DataError E0630, and nothing is changed then. false:
  // what fits is loaded, and the report says the rest, as load_state_dict(strict=False) of PyTorch,
  // which refuses shapes that differ all the same.
  bool strict = true;
};

// Sets parameters, with their masters, and buffers: the next step goes on from what was loaded.
StateReport load_state(const Safetensors& file, nn::Module& model, const LoadOptions& options = {});

}  // namespace aloft::models
