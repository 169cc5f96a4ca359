// An input of a step: what each example brings.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "types/dtype.h"

namespace aloft {

struct Column {
  std::string name;  // "tokens"
  DType type = DType::F32;
  std::vector<std::int64_t> shape;  // of an example; a batch has an axis more, in front
  std::int64_t below = 0;           // whole numbers are from 0 to below it; 0: any
  bool is_share = false;            // numbers are from 0 to 1

  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const std::int64_t extent : shape) n *= extent;
    return n;
  }
};

}  // namespace aloft
