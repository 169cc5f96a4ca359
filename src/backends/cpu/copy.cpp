#include "backends/cpu/copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "backends/cpu/parallel.h"

namespace aloft::cpu {
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

// body(begin, end) on blocks of the bytes.
template <class Body>
void for_each_block(std::size_t bytes, const Body& body) {
  for_each_chunk(static_cast<std::int64_t>((bytes + kBlock - 1) / kBlock), [&](std::int64_t b) {
    const std::size_t begin = static_cast<std::size_t>(b) * kBlock;
    body(begin, std::min(bytes, begin + kBlock));
  });
}

}  // namespace

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  for_each_block(bytes, [&](std::size_t begin, std::size_t end) {
    std::memcpy(to + begin, from + begin, end - begin);
  });
}

void copy_to_zeros(std::byte* to, const std::byte* from, std::size_t bytes) {
  for_each_block(bytes, [&](std::size_t begin, std::size_t end) {
    for (std::size_t at = begin; at < end; at += kPiece) {
      const std::size_t n = std::min(kPiece, end - at);
      if (!is_zero(from + at, n)) std::memcpy(to + at, from + at, n);
    }
  });
}

}  // namespace aloft::cpu
