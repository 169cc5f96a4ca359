#include "cli/made_up_batch.h"

#include <cstring>

#include "scalar/philox.h"

namespace aloft::cli {

namespace {
void put(const Column& c, std::uint64_t bits, std::int64_t i, std::vector<std::byte>& to) {
  if (c.type == DType::I32) {
    const auto value = static_cast<std::int32_t>(bits % static_cast<std::uint64_t>(c.below));
    std::memcpy(to.data() + i * 4, &value, 4);
  } else {
    const float value = static_cast<float>(bits % 2001) / 1000.0f - 1;
    std::memcpy(to.data() + i * 4, &value, 4);
  }
}
}  // namespace

MadeUpBatch::MadeUpBatch(const std::vector<Column>& columns, std::int64_t rows) {
  std::uint64_t drawn = 0;
  batch_.rows = rows;
  for (const Column& c : columns) {
    std::vector<std::byte>& bytes = bytes_.emplace_back();
    bytes.resize(static_cast<std::size_t>(rows * c.elements()) * size_of(c.type));
    for (std::int64_t i = 0; i < rows * c.elements(); ++i)
      put(c, scalar::random_bits({1, 0, 0, 0}, drawn++), i, bytes);
  }
  for (const std::vector<std::byte>& bytes : bytes_) batch_.columns.emplace_back(bytes);
}

}  // namespace aloft::cli
