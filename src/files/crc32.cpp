#include "files/crc32.h"

#include <array>
#include <cstring>

namespace aloft {

namespace {

// kTables[k][b]: what byte b does to the checksum when k bytes follow it, so that eight bytes are
// taken at once.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;
const Tables kTables = [] {
  Tables t{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
    t[0][i] = crc;
  }
  for (std::size_t k = 1; k < t.size(); ++k)
    for (std::uint32_t i = 0; i < 256; ++i) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 0xff];
  return t;
}();

}  // namespace

std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before) {
  std::uint32_t crc = ~before;
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, sizeof word);
    word ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= kTables[7 - k][word >> 8 * k & 0xff];
  }
  for (; i < bytes.size(); ++i)
    crc = crc >> 8 ^ kTables[0][(crc ^ static_cast<std::uint32_t>(bytes[i])) & 0xff];
  return ~crc;
}

}  // namespace aloft
