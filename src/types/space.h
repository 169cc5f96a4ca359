// Where memory lies, and what its bytes mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace aloft {

class Device;

// Where memory lies, as a device sees it.
enum class Space : std::uint8_t {
  Device,  // its own: what kernels work on
  Host,    // the host's, within the device's reach: what is kept out of the way
};

// "device", "host"
constexpr std::string_view name_of(Space s) { return s == Space::Device ? "device" : "host"; }

// What the bytes of a tensor mean.
enum class Layout : std::uint8_t {
  Dense,       // its elements, row by row
  SplitRests,  // what bf16 elements lack of the fp32 ones (scalar/split_float.h)
  Blocks,      // 8 bits an element and a scale for every 256 (scalar/block_float.h), signed
  BlocksNotNegative,
};
inline constexpr Layout kAllLayouts[] = {Layout::Dense, Layout::SplitRests, Layout::Blocks,
                                         Layout::BlocksNotNegative};

// "dense", "split_rests", "blocks", "blocks_not_negative"
constexpr std::string_view name_of(Layout l) {
  constexpr std::string_view names[] = {"dense", "split_rests", "blocks", "blocks_not_negative"};
  return names[static_cast<int>(l)];
}

// Where programs keep a variable between and beside the instructions that use it, which get copies
// from there and back. What is computed is the same to the bit.
struct Home {
  Space space = Space::Device;
  // Devices that keep a part each, in this order, of about the same bytes; the first is the one
  // that the programs run on. Fewer than two: it is whole.
  std::vector<Device*> shards = {};
};

}  // namespace aloft
