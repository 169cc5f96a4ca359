// numpy's files of one array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace aloft {

struct NpyArray {
  std::string type;  // numpy's word: "<f4", "|b1"
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;  // in elements
  std::span<const std::byte> data;    // within the file
};

bool is_npy(std::span<const std::byte> file);

// Nothing where the file is none, its header is not what numpy writes, or an extent is out of
// range. Whether the data is as long as the shape says is for whoever reads it.
std::optional<NpyArray> parse_npy(std::span<const std::byte> file);

}  // namespace aloft
