#include "backends/cpu/conv/conv_weight_product.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/parallel.h"

namespace aloft::cpu {
namespace {

// Measured on ResNet-18: below this the library's kernel is as fast.
constexpr std::int64_t kLeastChannels = 256;
// Of an image with its padding: larger ones were not measured, and X is as many times x as the
// window has taps.
constexpr std::int64_t kMostPadded = 4096;

std::int64_t padded_area(const ConvSpec& s) {
  return (s.height + 2 * s.padding[0]) * (s.width + 2 * s.padding[1]);
}

}  // namespace

bool ConvWeightProduct::suits(const ConvSpec& s) {
  return s.type == DType::BF16 && cpu_features().amx_bf16 && s.groups == 1 &&
         s.out >= kLeastChannels && padded_area(s) <= kMostPadded;
}

ConvWeightProduct::ConvWeightProduct(const ConvSpec& s)
    : spec_(s),
      unfold_(window_of(s), std::max<std::int64_t>(1, s.images), s.out_height),
      pixels_(std::max<std::int64_t>(1, s.images) * s.out_height * s.out_width) {
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
  patch_bytes_ = unfold_.patch_size(s.kernel_height * s.kernel_width) * sizeof(std::uint16_t);
  patches_at_ = layout_.take(patch_bytes_ * std::max(1, s.threads));
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
  const ResultRows all{0, images, 0, s.out_height};
  const auto unfold = [&](std::int64_t begin, std::int64_t end) {
    auto* patch =
        reinterpret_cast<std::uint16_t*>(scratch + patches_at_ + pool_rank() * patch_bytes_);
    for (std::int64_t k = begin * window; k < end * window; k += window) {
      unfold_.cut(x, all, k, k + window, patch);
      unfold_.lines(patch, all, k, k + window, rows + k * pixels_, pixels_);
    }
  };
  parallel_for(s.in, images * area * window / 2, unfold, std::max(1, s.threads));
  parallel_for(s.out, images * area / 2, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o)
      for (std::int64_t n = 0; n < images; ++n)
        std::memcpy(dy_rows + o * pixels_ + n * area, dy + n * s.y_size() + o * area,
                    area * sizeof(std::uint16_t));
  });
  grid_->run({dy_rows, rows, nullptr, p.result, scratch + grid_at_}, {1, s.out, images * area});
}

}  // namespace aloft::cpu
