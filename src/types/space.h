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
};
inline constexpr Layout kAllLayouts[] = {Layout::Dense, Layout::SplitRests};

// "dense", "split_rests"
constexpr std::string_view name_of(Layout l) {
  return l == Layout::Dense ? "dense" : "split_rests";
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
