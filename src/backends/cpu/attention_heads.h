// One head of one operand of attention in memory.
#pragma once

#include <cstdint>

#include "backends/cpu/attention.h"
#include "backends/cpu/tiles.h"

namespace aloft::cpu {

// Rows of `width` elements, `row` elements apart.
struct HeadRows {
  const void* data;
  DType type;
  std::int64_t row, width;
  const void* at_row(std::int64_t t) const { return cpu::at(data, t * row, type); }
};

inline HeadRows head_rows(const void* data, DType type, const HeadsLayout& l, std::int64_t width,
                          std::int64_t batch, std::int64_t head) {
  return {cpu::at(data, l.offset + batch * l.batch + head * width, type), type, l.row, width};
}

constexpr std::int64_t round_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

}  // namespace aloft::cpu
