#include "backends/cpu/matmul/pack.h"

#include <gtest/gtest.h>

#include <bit>

#include "scalar/float_formats.h"

namespace aloft::cpu {
namespace {

using Bits = std::vector<std::uint16_t>;

// Every 16-bit pattern is met as the sizes go by.
Bits patterns(std::int64_t n) {
  Bits bits(n);
  for (std::int64_t i = 0; i < n; ++i) bits[i] = static_cast<std::uint16_t>(i * 40503u + 77);
  return bits;
}

std::uint16_t element(const Bits& source, std::int64_t ld, bool transposed, std::int64_t r,
                      std::int64_t c) {
  return transposed ? source[c * ld + r] : source[r * ld + c];
}

struct Size {
  std::int64_t rows, cols;
};
constexpr Size kSizes[] = {{1, 1}, {1, 2}, {2, 1}, {5, 7}, {16, 32}, {17, 33}, {32, 64}, {31, 70}};

TEST(Pack, DenseBf16KeepsEveryBit) {
  for (const auto [rows, cols] : kSizes)
    for (const bool transposed : {false, true}) {
      const std::int64_t ld = (transposed ? rows : cols) + 3, padded = (cols + 31) / 32 * 32;
      const Bits source = patterns(ld * (transposed ? cols : rows));
      Bits out(rows * (padded + 32), 1);
      pack_dense({source.data(), DType::BF16, ld, transposed}, rows, cols, padded, PackedType::Bf16,
                 out.data(), padded + 32, 0);
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t c = 0; c < padded + 32; ++c) {
          const std::uint16_t want = c >= padded ? 1
                                     : c >= cols ? 0
                                                 : element(source, ld, transposed, r, c);
          ASSERT_EQ(out[r * (padded + 32) + c], want)
              << rows << "x" << cols << " " << r << "," << c;
        }
    }
}

TEST(Pack, PanelInterleavesPairs) {
  for (const auto [cols, k] : kSizes)
    for (const bool transposed : {false, true}) {
      const std::int64_t n = std::min<std::int64_t>(cols, 32), padded = (k + 31) / 32 * 32;
      const std::int64_t ld = (transposed ? k : n) + 1;
      const Bits source = patterns(ld * (transposed ? n : k));
      Bits out(padded * 32, 1);
      pack_panel({source.data(), DType::BF16, ld, transposed}, k, n, padded, PackedType::Bf16,
                 out.data(), 0);
      for (std::int64_t kk = 0; kk < padded; ++kk)
        for (std::int64_t j = 0; j < 32; ++j) {
          const std::uint16_t want =
              kk < k && j < n ? element(source, ld, transposed, kk, j) : std::uint16_t{0};
          ASSERT_EQ(out[(kk / 2 * 32 + j) * 2 + kk % 2], want) << k << "x" << n;
        }
    }
}

void expect_halves(std::uint16_t f16, std::uint16_t hi, std::uint16_t lo) {
  const float value = scalar::f32_of(scalar::F16{f16});
  const float high = scalar::f32_of(scalar::Bf16{hi}), low = scalar::f32_of(scalar::Bf16{lo});
  if (value != value) {
    EXPECT_NE(high, high);
  } else {
    EXPECT_EQ(high + low, value) << f16;
    EXPECT_LE(std::abs(low), std::abs(value) / 256) << f16;
  }
}

TEST(Pack, HalvesOfF16AreExact) {
  Bits source(65536);
  for (int i = 0; i < 65536; ++i) source[i] = static_cast<std::uint16_t>(i);
  for (const bool transposed : {false, true}) {
    // 256 x 256, so that every pattern is met in vectors.
    Bits out(2 * 65536);
    pack_dense({source.data(), DType::F16, 256, transposed}, 256, 256, 256, PackedType::Bf16x2,
               out.data(), 256, 65536);
    for (int r = 0; r < 256; ++r)
      for (int c = 0; c < 256; ++c)
        expect_halves(element(source, 256, transposed, r, c), out[r * 256 + c],
                      out[65536 + r * 256 + c]);
    Bits panel(2 * 2048 * 32);
    pack_panel({source.data(), DType::F16, transposed ? 2048 : 32, transposed}, 2048, 32, 2048,
               PackedType::Bf16x2, panel.data(), 65536);
    for (int k = 0; k < 2048; ++k)
      for (int j = 0; j < 32; ++j) {
        const int at = (k / 2 * 32 + j) * 2 + k % 2;
        expect_halves(element(source, transposed ? 2048 : 32, transposed, k, j), panel[at],
                      panel[65536 + at]);
      }
  }
}

}  // namespace
}  // namespace aloft::cpu
