// The processor: our own kernels, most in Highway's vectors, those of the matrix units in
// intrinsics; oneDNN for convolutions; one OpenMP pool.
#pragma once

#include "runtime/device.h"

namespace aloft {

// Its kernels, without the host's threads: who runs them in a way of his own opens cpu_device().
const Backend& cpu_backend();
// The one of the process, for use_device(). Brings the host's threads (runtime/threads.h).
Device& cpu_device();

}  // namespace aloft
