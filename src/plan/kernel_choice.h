// What planning needs to know about kernels, without knowing any back end.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "types/call.h"

namespace aloft {

struct KernelChoice {
  std::string kernel;  // empty: no kernel takes the call
  bool is_view = false;
  std::vector<std::pair<int, int>> in_place;  // (input, output) that may share a buffer
  std::size_t scratch_bytes = 0;
  std::vector<std::string> refusals;
};

using ChooseKernel = std::function<KernelChoice(const CallSpec&)>;

}  // namespace aloft
