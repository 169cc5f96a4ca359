// Convolutions of many images: groups, single images left over, partial batches, rounds of weight
// gradients. (Geometries, types and special values are tested op by op from the samples.)
#include "backends/cpu/conv/conv_grid.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "backends/cpu/conv/conv_weight_grid.h"
#include "backends/cpu/conv/conv_weight_product.h"
#include "backends/cpu/conv/conv_weight_strips.h"
#include "backends/cpu/float_buffer.h"

namespace aloft::cpu {
namespace {

using test::FloatBuffer;
using test::random_values;

ConvSpec make_spec(ConvKind kind, DType type) {
  ConvSpec s;
  s.kind = kind;
  s.type = type;
  s.images = 37, s.in = 4, s.out = 6, s.groups = 2;
  s.height = 7, s.width = 6, s.kernel_height = 3, s.kernel_width = 2;
  s.padding[0] = 1;
  s.stride[0] = 2;
  s.out_height = 4, s.out_width = 5;
  s.bias = kind == ConvKind::Forward;
  return s;
}

struct Operands {
  std::vector<double> x, w, y, bias;
};

// y += x * w, dx += y * w or dw += x * y, over the first `images`.
std::vector<double> expected(const ConvSpec& s, const Operands& o, std::int64_t images) {
  std::vector<double> result(s.kind == ConvKind::Forward     ? o.y.size()
                             : s.kind == ConvKind::GradInput ? o.x.size()
                                                             : o.w.size());
  const std::int64_t in = s.in / s.groups, out = s.out / s.groups;
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t c = 0; c < s.out; ++c)
      for (std::int64_t r = 0; r < s.out_height; ++r)
        for (std::int64_t q = 0; q < s.out_width; ++q) {
          const std::int64_t y = ((n * s.out + c) * s.out_height + r) * s.out_width + q;
          if (s.bias) result[y] = o.bias[c];
          for (std::int64_t i = 0; i < in; ++i)
            for (std::int64_t a = 0; a < s.kernel_height; ++a)
              for (std::int64_t b = 0; b < s.kernel_width; ++b) {
                const std::int64_t row = r * s.stride[0] - s.padding[0] + a, col = q + b;
                if (row < 0 || row >= s.height || col >= s.width) continue;
                const std::int64_t x =
                    ((n * s.in + c / out * in + i) * s.height + row) * s.width + col;
                const std::int64_t w = ((c * in + i) * s.kernel_height + a) * s.kernel_width + b;
                if (s.kind == ConvKind::Forward) result[y] += o.x[x] * o.w[w];
                if (s.kind == ConvKind::GradInput) result[x] += o.y[y] * o.w[w];
                if (s.kind == ConvKind::GradWeight) result[w] += o.x[x] * o.y[y];
              }
        }
  return result;
}

// As the kernels choose.
std::unique_ptr<ConvWay> way_of(const ConvSpec& s) {
  if (s.kind != ConvKind::GradWeight) return conv_grid(s);
  if (ConvWeightStrips::suits(s)) return std::make_unique<ConvWeightStrips>(s);
  if (ConvWeightProduct::suits(s)) return std::make_unique<ConvWeightProduct>(s);
  return conv_weight_grid(s);
}

FloatBuffer run(ConvSpec s, const Operands& o, std::int64_t images, int threads) {
  s.threads = threads;
  const std::unique_ptr<ConvWay> way = way_of(s);
  FloatBuffer x(s.type, o.x), w(s.type, o.w), y(s.type, o.y), bias(s.type, o.bias);
  FloatBuffer* parts[] = {&y, &x, &w};
  FloatBuffer result(s.type, static_cast<std::int64_t>(parts[static_cast<int>(s.kind)]->bytes() /
                                                       size_of(s.type)));
  FloatBuffer scratch(DType::F32, static_cast<std::int64_t>(way->scratch_bytes()) / 4 + 1);
  const bool forward = s.kind == ConvKind::Forward, weight = s.kind == ConvKind::GradWeight;
  const int before = omp_get_max_threads();
  omp_set_num_threads(s.threads);
  way->run({forward || weight ? x.data() : y.data(), weight ? y.data() : w.data(), bias.data(),
            result.data(), scratch.data()},
           images);
  omp_set_num_threads(before);
  result.expect_guards();
  scratch.expect_guards();
  return result;
}

class ConvGridTest : public testing::TestWithParam<std::tuple<ConvKind, DType>> {};

TEST_P(ConvGridTest, RightAndTheSameBitsOnAnyThreads) {
  const ConvSpec s = make_spec(std::get<0>(GetParam()), std::get<1>(GetParam()));
  Operands o;
  o.x = random_values(s.images * s.x_size(), s.type, 1);
  o.w = random_values(s.weight_size(), s.type, 2);
  o.y = random_values(s.images * s.y_size(), s.type, 3);
  o.bias = random_values(s.out, s.type, 4);
  const double rounding = s.type == DType::F32 ? 0x1p-20 : s.type == DType::F16 ? 0x1p-10 : 0x1p-7;
  for (const std::int64_t images : {37, 5, 1, 0}) {
    // What lies behind the images that are there must not count.
    Operands poisoned = o;
    std::fill(poisoned.x.begin() + images * s.x_size(), poisoned.x.end(), std::nan(""));
    std::fill(poisoned.y.begin() + images * s.y_size(), poisoned.y.end(), std::nan(""));
    FloatBuffer one = run(s, poisoned, images, 1);
    const std::vector<double> want = expected(s, o, images);
    std::int64_t there = static_cast<std::int64_t>(want.size());
    if (s.kind != ConvKind::GradWeight) there = there / s.images * images;
    for (std::int64_t i = 0; i < there; ++i)
      ASSERT_NEAR(one.get(i), want[i], rounding * (1 + std::abs(want[i]))) << images << " " << i;
    for (const int threads : {2, 4}) {
      auto bits = run(s, poisoned, images, threads).copy(), first = one.copy();
      bits.resize(there * size_of(s.type)), first.resize(there * size_of(s.type));
      EXPECT_EQ(bits, first) << threads << " threads";
    }
  }
}

// Of an image of one pixel the window's outer taps see padding alone, which is no factor.
TEST(ConvWeightGrid, AnInfiniteGradientReachesNoTapBesideTheImage) {
  for (const DType type : {DType::F32, DType::F16}) {
    ConvSpec s;
    s.kind = ConvKind::GradWeight;
    s.type = type;
    s.images = 5, s.in = 64, s.out = 128;
    s.height = s.width = s.out_height = s.out_width = 1;
    s.kernel_height = 3, s.kernel_width = 1;
    s.padding[0] = 1;
    Operands o;
    o.x.assign(s.images * s.x_size(), 1);
    o.w.resize(s.weight_size());
    o.y.assign(s.images * s.y_size(), HUGE_VAL);
    const std::vector<double> want = expected(s, o, s.images);
    FloatBuffer got = run(s, o, s.images, 2);
    for (std::int64_t i = 0; i < s.weight_size(); ++i)
      ASSERT_EQ(got.get(i), want[i]) << name_of(type) << " " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, ConvGridTest,
                         testing::Combine(testing::Values(ConvKind::Forward, ConvKind::GradInput,
                                                          ConvKind::GradWeight),
                                          testing::Values(DType::F32, DType::BF16, DType::F16)));

}  // namespace
}  // namespace aloft::cpu
