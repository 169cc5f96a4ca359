// Aligned memory of the host, uninitialised.
#pragma once

#include <cstddef>
#include <memory>

namespace aloft::cpu {

// 64-byte aligned; large blocks lie on huge pages where the system offers them. EnvironmentError
// E0401 where there is not enough.
std::shared_ptr<void> allocate_aligned(std::size_t bytes);

}  // namespace aloft::cpu
