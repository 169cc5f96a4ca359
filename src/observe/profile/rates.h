// What a device can do, which the times of a profile are held against.
#pragma once

#include <string>

namespace aloft::profile {

// As measured, or as the device says; 0: not known.
struct Rates {
  double f32_gflops = 0, bf16_gflops = 0, f16_gflops = 0;  // of matrix products
  double memory_gb_s = 0;
  std::string source = {};  // "measured now"
};

}  // namespace aloft::profile
