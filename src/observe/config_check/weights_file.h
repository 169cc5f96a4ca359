// Weights in files, tensor by tensor, as check-config keeps them.
#pragma once

#include <optional>

#include "base/file.h"
#include "observe/config_check/side.h"

namespace aloft::config_check {

// Of a safetensors file; of a folder that has one, as a checkpoint or a Hugging Face folder does,
// or several and their index; of a state that torch.save wrote (*.pt, *.pth, *.bin: a dictionary of
// tensors, or one below "model" or "state_dict"). Nothing where the path is none of these by its
// name and what lies there. DataError of safetensors.h and sharded_safetensors.h; E0832 and E0844
// where a file of torch is damaged or has no tensors.
std::optional<StepTensors> read_weights(const Path& path);

}  // namespace aloft::config_check
