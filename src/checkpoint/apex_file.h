// The state of apex's loss scalers in a file that torch.save wrote.
#pragma once

#include "base/file.h"
#include "frontend/amp_state.h"

namespace aloft::amp {

// What amp::load_state_dict() takes, from a file of amp.state_dict() or of a checkpoint that has it
// under the key `amp`, as apex's documentation writes it. Nothing in the file is run, and what else
// there is in it is not read. DataError E0601 where it is not there, E0832 where it has no such
// state, is damaged, lacks a loss scaler between others or has numbers that cannot be theirs.
AmpState read_state_dict(const Path& path);

}  // namespace aloft::amp
