#include "exec/move_in.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace aloft {
namespace {

constexpr std::size_t kPiece = 4096;     // what is skipped when it is zero: a page
constexpr std::size_t kBlock = 1 << 20;  // a thread's share of the work

bool is_zero(const std::byte* at, std::size_t bytes) {
  while (bytes >= 64) {
    std::uint64_t words[8];
    std::memcpy(words, at, sizeof words);
    std::uint64_t any = 0;
    for (const std::uint64_t w : words) any |= w;
    if (any != 0) return false;
    at += 64;
    bytes -= 64;
  }
  return std::all_of(at, at + bytes, [](std::byte b) { return b == std::byte{0}; });
}

}  // namespace

void move_in(std::byte* to, const std::byte* from, std::size_t bytes) {
  const auto blocks = static_cast<std::int64_t>((bytes + kBlock - 1) / kBlock);
#pragma omp parallel for schedule(static) if (blocks > 1)
  for (std::int64_t b = 0; b < blocks; ++b) {
    const std::size_t begin = static_cast<std::size_t>(b) * kBlock;
    const std::size_t end = std::min(bytes, begin + kBlock);
    for (std::size_t at = begin; at < end; at += kPiece) {
      const std::size_t n = std::min(kPiece, end - at);
      if (!is_zero(from + at, n)) std::memcpy(to + at, from + at, n);
    }
  }
}

}  // namespace aloft
