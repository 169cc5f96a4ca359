// The processor: oneDNN for the large products, Highway kernels for the rest, one OpenMP pool.
#pragma once

#include "runtime/backend.h"

namespace aloft {

const Backend& cpu_backend();

}  // namespace aloft
