// The checksum of zip files and PNGs: CRC-32 with the polynomial 0xEDB88320.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace aloft {

// Of all bytes; `before`: the checksum of those in front of them.
std::uint32_t crc32(std::span<const std::byte> bytes, std::uint32_t before = 0);

}  // namespace aloft
