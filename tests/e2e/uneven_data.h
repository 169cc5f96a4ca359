// Data whose columns or pixels are of such sizes that low types lose what tells examples apart.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "scalar/philox.h"

namespace aloft::e2e {

// From -1 to 1.
inline double drawn(std::uint64_t i) {
  return static_cast<double>(scalar::mix64(i * 7919 + 17) % 20001) / 10000 - 1;
}

// Houses in units of their own: degrees, years, rooms, dollars a year. f16 does not hold what
// weights make of the dollars.
inline std::string table_of_houses() {
  std::string text;
  for (std::uint64_t i = 0; i < 512; ++i) {
    const auto from = [&](std::uint64_t column, double least, double most) {
      return least + (most - least) * (drawn(6 * i + column) + 1) / 2;
    };
    const double longitude = from(0, -122, -119.5), latitude = from(1, 36, 39);
    const double age = from(2, 1, 52), rooms = from(3, 500, 6000), income = from(4, 20000, 140000);
    for (double value : {longitude, latitude, age, rooms, income})
      text += std::to_string(value) + ",";
    text += std::to_string(1.5 + 2 * std::sin(2 * longitude) * std::cos(latitude) + income / 1e5) +
            "\n";
  }
  return text;
}

// Images on a pedestal: what differs is a small part of what there is.
inline std::string images_on_a_pedestal() {
  std::string text;
  for (std::uint64_t i = 0; i < 96; ++i) {
    for (std::uint64_t p = 0; p < 64; ++p) {
      const double shape = (p / 8 + p * (i % 3)) % 3 == 0 ? 200 : 0;
      text += std::to_string(static_cast<int>(512 + shape + 100 * drawn(64 * i + p))) + ",";
    }
    text += std::to_string(i % 3) + "\n";
  }
  return text;
}

// Of images.csv, which holds images_on_a_pedestal().
inline constexpr const char* kImagesRecipe = R"([model]
family = "resnet"
width = 16
blocks = [1, 1]
[data]
csv = "images.csv"
shape = [1, 8, 8]
scale = 0.0025
[train]
batch = 16
steps = 4
)";

}  // namespace aloft::e2e
