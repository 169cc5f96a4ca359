#include "base/copy_past_caches.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace aloft {

#if defined(__x86_64__)

void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to) {
  constexpr std::size_t kLine = 64, kWide = sizeof(__m128i);
  const std::byte* read = from.data();
  std::byte* written = to.data();
  std::size_t left = from.size();
  // A line is written past the caches only as a whole.
  const std::size_t before =
      std::min(left, (kLine - reinterpret_cast<std::uintptr_t>(written) % kLine) % kLine);
  if (before != 0) std::memcpy(written, read, before);
  read += before, written += before, left -= before;
  for (; left >= kLine; read += kLine, written += kLine, left -= kLine) {
    __m128i line[kLine / kWide];
    for (std::size_t i = 0; i < std::size(line); ++i)
      line[i] = _mm_loadu_si128(reinterpret_cast<const __m128i*>(read + i * kWide));
    for (std::size_t i = 0; i < std::size(line); ++i)
      _mm_stream_si128(reinterpret_cast<__m128i*>(written + i * kWide), line[i]);
  }
  if (left != 0) std::memcpy(written, read, left);
  _mm_sfence();  // such stores are ordered with no other until it
}

#else

void copy_past_caches(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

#endif

}  // namespace aloft
