#include "backends/cpu/conv/conv_weight_product.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"

namespace aloft::cpu {
namespace {

// Measured on ResNet-18: below this the library's kernel is as fast.
constexpr std::int64_t kLeastChannels = 256;
// An image of one channel with its padding, brought together before its windows are cut out.
constexpr std::int64_t kMostPadded = 4096;

std::int64_t padded_height(const ConvSpec& s) { return s.height + 2 * s.padding[0]; }
std::int64_t padded_width(const ConvSpec& s) { return s.width + 2 * s.padding[1]; }

// `rows` rows of kWidth elements, `step` apart, one behind the other.
template <int kWidth>
void copy_rows(const std::uint16_t* from, std::int64_t step, std::int64_t rows, std::uint16_t* to) {
  for (std::int64_t r = 0; r < rows; ++r)
    std::memcpy(to + r * kWidth, from + r * step, kWidth * sizeof(std::uint16_t));
}

// What one tap of the window sees: every stride-th element of every stride-th row.
void cut(const ConvSpec& s, const std::uint16_t* from, std::uint16_t* to) {
  const std::int64_t step = s.stride[0] * padded_width(s), rows = s.out_height, n = s.out_width;
  if (s.stride[1] == 1) {
    if (n == 4) return copy_rows<4>(from, step, rows, to);
    if (n == 8) return copy_rows<8>(from, step, rows, to);
    if (n == 16) return copy_rows<16>(from, step, rows, to);
    for (std::int64_t r = 0; r < rows; ++r) std::memcpy(to + r * n, from + r * step, 2 * n);
    return;
  }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < n; ++c) to[r * n + c] = from[r * step + c * s.stride[1]];
}

// Rows [channel x window] of the unfolded x, for `images` images; a row is `pixels` long.
void unfold_channel(const ConvSpec& s, const std::uint16_t* x, std::int64_t images,
                    std::int64_t pixels, std::uint16_t* rows) {
  std::uint16_t padded[kMostPadded];
  const std::int64_t width = padded_width(s), area = s.out_height * s.out_width;
  std::memset(padded, 0, padded_height(s) * width * sizeof(std::uint16_t));
  for (std::int64_t n = 0; n < images; ++n) {
    for (std::int64_t r = 0; r < s.height; ++r)
      std::memcpy(padded + (r + s.padding[0]) * width + s.padding[1],
                  x + n * s.x_size() + r * s.width, s.width * sizeof(std::uint16_t));
    std::int64_t tap = 0;
    for (std::int64_t r = 0; r < s.kernel_height; ++r)
      for (std::int64_t c = 0; c < s.kernel_width; ++c, ++tap)
        cut(s, padded + r * s.dilation[0] * width + c * s.dilation[1],
            rows + tap * pixels + n * area);
  }
}

}  // namespace

bool ConvWeightProduct::suits(const ConvSpec& s) {
  return s.type == DType::BF16 && cpu_features().amx_bf16 && s.groups == 1 &&
         s.out >= kLeastChannels && padded_height(s) * padded_width(s) <= kMostPadded;
}

ConvWeightProduct::ConvWeightProduct(const ConvSpec& s)
    : spec_(s), pixels_(std::max<std::int64_t>(1, s.images) * s.out_height * s.out_width) {
  const std::int64_t window = s.in * s.kernel_height * s.kernel_width;
  MatmulSpec product;
  product.m = s.out, product.n = window, product.k = pixels_;
  product.k_varies = true;
  product.a = product.b = product.c = s.type;
  product.transpose_b = true;
  product.threads = s.threads;
  grid_ = std::make_unique<MatmulGrid>(product);
  dy_at_ = layout_.take(s.out * pixels_ * sizeof(std::uint16_t));
  x_at_ = layout_.take(window * pixels_ * sizeof(std::uint16_t));
  grid_at_ = layout_.take(grid_->scratch_bytes());
}

void ConvWeightProduct::run(const ConvPointers& p, std::int64_t images) const {
  const ConvSpec& s = spec_;
  const auto *x = static_cast<const std::uint16_t*>(p.first),
             *dy = static_cast<const std::uint16_t*>(p.second);
  char* scratch = static_cast<char*>(p.scratch);
  auto* rows = reinterpret_cast<std::uint16_t*>(scratch + x_at_);
  auto* dy_rows = reinterpret_cast<std::uint16_t*>(scratch + dy_at_);
  const std::int64_t window = s.kernel_height * s.kernel_width;
  const std::int64_t area = s.out_height * s.out_width;
  parallel_for(s.in, images * area * window / 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = begin; c < end; ++c)
      unfold_channel(s, x + c * s.height * s.width, images, pixels_, rows + c * window * pixels_);
  });
  parallel_for(s.out, images * area / 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      for (std::int64_t n = 0; n < images; ++n)
        std::memcpy(dy_rows + o * pixels_ + n * area, dy + n * s.y_size() + o * area,
                    area * sizeof(std::uint16_t));
  });
  grid_->run({dy_rows, rows, nullptr, p.result, scratch + grid_at_}, {1, s.out, images * area});
}

}  // namespace aloft::cpu
