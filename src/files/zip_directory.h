// The list of files at a zip file's end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace aloft {

struct ZipDirectoryEntry {
  std::string_view name;  // within the file
  std::uint64_t flags = 0, method = 0, checksum = 0, packed_size = 0, size = 0, place = 0;
};

// In its order; nothing where there is no list, or it is cut.
std::optional<std::vector<ZipDirectoryEntry>> zip_directory(std::span<const std::byte> file);

// What an entry holds, packed or not, within `file`; nothing where the file is cut.
std::optional<std::span<const std::byte>> zip_bytes(std::span<const std::byte> file,
                                                    const ZipDirectoryEntry& entry);

}  // namespace aloft
