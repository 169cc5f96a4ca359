// The reader of numpy's files on arbitrary bytes: nothing, or a shape with its strides and data
// within the file.
#include <cstdint>

#include "base/error.h"
#include "files/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace aloft;
  const auto array = parse_npy(std::as_bytes(std::span(data, size)));
  if (!array) return 0;
  ensure(array->shape.size() == array->strides.size(), "an axis has a stride");
  ensure(array->data.size() <= size, "the data is in the file");
  for (const std::int64_t n : array->shape) ensure(n >= 0, "extents are 0 or more");
  return 0;
}
