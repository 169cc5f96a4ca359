#include "ops/kept_states.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "scalar/split_float.h"
#include "scalar/stochastic_rounding.h"

namespace aloft {
namespace {

using Bits = std::function<std::uint16_t(std::int64_t)>;

// Elements [begin, end), which are a block.
void write_block(std::span<const double> values, scalar::BlockForm form, std::int64_t begin,
                 std::int64_t end, const Bits& bits, const scalar::Blocks& to) {
  float largest = 0;
  bool is_nan = false;
  for (std::int64_t j = begin; j < end; ++j) {
    const auto x = static_cast<float>(values[static_cast<std::size_t>(j)]);
    is_nan |= std::isnan(x);
    largest = std::max(largest, form.is_signed ? std::abs(x) : x);
  }
  const float scale = is_nan ? NAN : scalar::block_scale(largest);
  to.scales[begin / scalar::kBlock] = scale;
  for (std::int64_t j = begin; j < end && scale > 0; ++j)
    to.codes[j] = scalar::block_code(static_cast<float>(values[static_cast<std::size_t>(j)]), scale,
                                     bits(j), form);
}

}  // namespace

std::vector<double> KeptState::read(const HostArray& kept, std::int64_t n) const {
  if (format != StateFormat::Block8) return {kept.values.begin(), kept.values.end()};
  std::vector<std::uint8_t> memory(kept.values.size());
  store_bytes(kept, memory.data());
  const scalar::ConstBlocks blocks(memory.data(), n);
  std::vector<double> out;
  for (std::int64_t j = 0; j < n; ++j)
    out.push_back(scalar::block_value(blocks.codes[j], blocks.scales[j / scalar::kBlock], form));
  return out;
}

void KeptState::write(const std::vector<double>& values, const Bits& bits, HostArray& kept) const {
  const auto n = static_cast<std::int64_t>(values.size());
  if (format != StateFormat::Block8) {
    for (std::int64_t j = 0; j < n; ++j) {
      const double x = values[static_cast<std::size_t>(j)];
      kept[j] = format == StateFormat::BF16 ? rounded_at_random(x, DType::BF16, bits(j)) : x;
    }
    return;
  }
  std::vector<std::uint8_t> memory(kept.values.size());
  const scalar::Blocks blocks(memory.data(), n);
  for (std::int64_t j = 0; j < n; j += scalar::kBlock)
    write_block(values, form, j, std::min(n, j + scalar::kBlock), bits, blocks);
  std::ranges::copy(memory, kept.values.begin());
}

double split_master(const HostArray& near, const HostArray& rests, std::int64_t j) {
  const std::int64_t n = near.numel();
  const auto byte = [&](std::int64_t i) { return static_cast<unsigned>(rests[i]); };
  const auto rest = static_cast<std::uint16_t>(byte(2 * j) | byte(2 * j + 1) << 8);
  return scalar::join({scalar::bf16_of(near[j]), rest, (byte(2 * n + j / 8) >> (j % 8) & 1u) != 0});
}

double rounded_at_random(double value, DType type, std::uint16_t bits) {
  if (type != DType::BF16) return value;
  return scalar::f32_of(scalar::bf16_at_random(static_cast<float>(value), bits));
}

}  // namespace aloft
