// Images and labels of any bytes, the first half of the input and the second: refused, or as many
// labels as images, with numbers that are finite.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "data/idx.h"
#include "temporary_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  static const TemporaryFolder folder;
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  TemporaryFolder::put(folder / "x", all.substr(0, size / 2));
  TemporaryFolder::put(folder / "y", all.substr(size / 2));
  try {
    const ArrayData read = read_idx(folder / "x", folder / "y");
    ensure(read.values.size() == read.labels.size() * static_cast<std::size_t>(read.features),
           "every image has a label");
    for (const float v : read.values) ensure(std::isfinite(v), "a number");
  } catch (const DataError&) {
  }
  return 0;
}
