// Numbers of foreign files, byte by byte, the lowest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace aloft {

// `bytes` of them from `at` on, the lowest first; nothing behind the end.
inline std::optional<std::uint64_t> little(std::span<const std::byte> b, std::size_t at,
                                           std::size_t bytes) {
  if (at > b.size() || b.size() - at < bytes) return std::nullopt;
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<std::uint8_t>(b[at + i]);
  return value;
}

inline void put_little(std::string& to, std::uint64_t value, int bytes) {
  for (int k = 0; k < bytes; ++k) to += static_cast<char>(value >> 8 * k & 0xff);
}

}  // namespace aloft
