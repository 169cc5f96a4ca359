// The state of torch's GradScaler in a file that torch.save wrote.
#pragma once

#include "base/file.h"
#include "frontend/grad_scaler.h"

namespace aloft::amp {

// What GradScaler::load_state_dict() takes, from a file of scaler.state_dict() or of a checkpoint
// that has it under one of the keys scaler, grad_scaler, scaler_state_dict. Nothing in the file is
// run, and what else there is in it is not read. DataError E0601 where it is not there, E0832 where
// it has no such state, or is damaged.
GradScalerState read_grad_scaler_state(const Path& path);

}  // namespace aloft::amp
