// The processor: our own kernels, most in Highway's vectors, those of the matrix units in
// intrinsics; oneDNN for convolutions; one OpenMP pool.
#pragma once

#include "runtime/backend.h"

namespace aloft {

// The one of the process, for use_backend().
const Backend& cpu_backend();

}  // namespace aloft
