// Weight gradients by unfolding, in strips and as one product, against sums in double: windows of
// every kind, images in one part and in several, odd numbers of pixels, the same bits on any
// threads and whatever the bound.
#include "backends/cpu/conv/conv_weight_strips.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "backends/cpu/conv/conv_weight_product.h"
#include "backends/cpu/float_buffer.h"
#include "types/tolerance.h"

namespace aloft::cpu {
namespace {

using test::FloatBuffer;
using test::random_values;

struct Geometry {
  const char* name;
  std::int64_t images, in, out, height, width, kernel[2], stride[2], padding[2], dilation[2];
};

constexpr Geometry kGeometries[] = {
    {"3 x 3", 5, 9, 30, 16, 16, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"of several channels a panel", 3, 40, 7, 4, 4, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"one pixel each", 7, 33, 65, 1, 1, {1, 1}, {1, 1}, {0, 0}, {1, 1}},
    {"strides", 4, 3, 14, 9, 11, {3, 2}, {2, 3}, {1, 0}, {1, 1}},
    {"odd pixels, dilation", 3, 5, 15, 9, 7, {2, 3}, {1, 1}, {2, 2}, {2, 3}},
    {"wide padding", 2, 2, 3, 3, 2, {2, 2}, {1, 2}, {4, 5}, {1, 1}},
    {"rows of an image in parts", 2, 1, 2, 70, 80, {3, 3}, {1, 1}, {1, 1}, {1, 1}},
    {"rows not reached", 3, 2, 4, 8, 8, {2, 2}, {5, 5}, {0, 0}, {1, 1}},
    {"a stride past the window", 3, 4, 5, 7, 7, {1, 1}, {2, 2}, {0, 0}, {1, 1}},
};

ConvSpec spec_of(const Geometry& g) {
  ConvSpec s;
  s.kind = ConvKind::GradWeight;
  s.type = DType::BF16;
  s.images = g.images, s.in = g.in, s.out = g.out, s.height = g.height, s.width = g.width;
  s.kernel_height = g.kernel[0], s.kernel_width = g.kernel[1];
  for (int d = 0; d < 2; ++d)
    s.stride[d] = g.stride[d], s.padding[d] = g.padding[d], s.dilation[d] = g.dilation[d];
  const auto out = [&](std::int64_t extent, int d) {
    return (extent + 2 * g.padding[d] - g.dilation[d] * (g.kernel[d] - 1) - 1) / g.stride[d] + 1;
  };
  s.out_height = out(g.height, 0), s.out_width = out(g.width, 1);
  return s;
}

// Element (o, c, a, b) of the gradient over the first `images`.
double expected(const ConvSpec& s, const std::vector<double>& x, const std::vector<double>& dy,
                std::int64_t images, std::int64_t at) {
  const std::int64_t b = at % s.kernel_width, a = at / s.kernel_width % s.kernel_height;
  const std::int64_t c = at / (s.kernel_width * s.kernel_height) % s.in;
  const std::int64_t o = at / (s.kernel_width * s.kernel_height * s.in);
  double sum = 0;
  for (std::int64_t n = 0; n < images; ++n)
    for (std::int64_t r = 0; r < s.out_height; ++r)
      for (std::int64_t q = 0; q < s.out_width; ++q) {
        const std::int64_t row = r * s.stride[0] - s.padding[0] + a * s.dilation[0];
        const std::int64_t col = q * s.stride[1] - s.padding[1] + b * s.dilation[1];
        if (row < 0 || row >= s.height || col < 0 || col >= s.width) continue;
        sum += x[((n * s.in + c) * s.height + row) * s.width + col] *
               dy[((n * s.out + o) * s.out_height + r) * s.out_width + q];
      }
  return sum;
}

template <class Gradient>
FloatBuffer run(ConvSpec s, const std::vector<double>& x, const std::vector<double>& dy,
                std::int64_t images, int threads) {
  s.threads = threads;
  Gradient gradient(s);
  FloatBuffer x_(s.type, x), dy_(s.type, dy), result(s.type, s.weight_size());
  FloatBuffer scratch(DType::F32, static_cast<std::int64_t>(gradient.scratch_bytes()) / 4 + 1);
  const int before = omp_get_max_threads();
  omp_set_num_threads(threads);
  gradient.run({x_.data(), dy_.data(), nullptr, result.data(), scratch.data()}, images);
  omp_set_num_threads(before);
  result.expect_guards();
  scratch.expect_guards();
  return result;
}

// The gradients over fewer and fewer images, and their bits on more threads.
template <class Gradient, class AlsoEqual>
void expect_right(const AlsoEqual& also_equal) {
  for (const Geometry& g : kGeometries) {
    const ConvSpec s = spec_of(g);
    const auto x = random_values(s.images * s.x_size(), s.type, 1);
    const auto dy = random_values(s.images * s.y_size(), s.type, 2);
    for (const std::int64_t images : {s.images, s.images - 1, std::int64_t{1}, std::int64_t{0}}) {
      // What lies behind the images that are there must not count.
      auto poisoned = x, poisoned_dy = dy;
      std::fill(poisoned.begin() + images * s.x_size(), poisoned.end(), std::nan(""));
      std::fill(poisoned_dy.begin() + images * s.y_size(), poisoned_dy.end(), std::nan(""));
      FloatBuffer one = run<Gradient>(s, poisoned, poisoned_dy, images, 1);
      const std::int64_t products = images * s.out_height * s.out_width;  // of numbers in (-1, 1)
      for (std::int64_t i = 0; i < s.weight_size(); ++i) {
        const double want = expected(s, x, dy, images, i);
        ASSERT_NEAR(one.get(i), want, allowed_error(DType::BF16, products, want, 1))
            << g.name << " " << i;
      }
      for (const int threads : {2, 4})
        EXPECT_EQ(run<Gradient>(s, poisoned, poisoned_dy, images, threads).copy(), one.copy())
            << g.name;
      also_equal(g, poisoned, poisoned_dy, images, one.copy());
    }
  }
}

TEST(ConvWeightStrips, AreRightAndTheSameBitsOnAnyThreadsAndOfAnyBound) {
  if (!cpu_features().avx512_bf16) GTEST_SKIP() << "this processor has no bf16 products";
  expect_right<ConvWeightStrips>(
      [](const Geometry& g, const auto& x, const auto& dy, std::int64_t images, const auto& bits) {
        ConvSpec just = spec_of(g);
        just.images = images;
        EXPECT_EQ(run<ConvWeightStrips>(just, x, dy, images, 2).copy(), bits) << g.name;
      });
}

TEST(ConvWeightProduct, IsRightAndTheSameBitsOnAnyThreads) {
  expect_right<ConvWeightProduct>([](const auto&...) {});
}

TEST(ConvWeightStrips, NanAndInfinityReachTheTapsThatSeeThem) {
  if (!cpu_features().avx512_bf16) GTEST_SKIP() << "this processor has no bf16 products";
  const ConvSpec s = spec_of(kGeometries[0]);
  auto x = random_values(s.images * s.x_size(), s.type, 1);
  const auto dy = random_values(s.images * s.y_size(), s.type, 2);
  x[3 * s.height * s.width] =
      std::numeric_limits<double>::infinity();  // image 0, channel 3, a corner
  FloatBuffer got = run<ConvWeightStrips>(s, x, dy, s.images, 2);
  for (std::int64_t i = 0; i < s.weight_size(); ++i) {
    const double want = expected(s, x, dy, s.images, i);
    EXPECT_EQ(std::isfinite(got.get(i)), std::isfinite(want)) << i;
    // A corner is seen by the taps at the centre, and above and left of it.
    EXPECT_EQ(std::isfinite(want), i / 9 % s.in != 3 || i % 3 == 2 || i % 9 / 3 == 2) << i;
  }
}

}  // namespace
}  // namespace aloft::cpu
