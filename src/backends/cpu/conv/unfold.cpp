#include "backends/cpu/conv/unfold.h"

#include <algorithm>
#include <cstring>

#include "backends/cpu/rounding.h"

namespace aloft::cpu {
namespace {

template <int kLength>
struct CopyOf {
  void operator()(const std::uint16_t* from, std::uint16_t* to) const {
    std::memcpy(to, from, kLength * sizeof(*to));
  }
};

// What is copied so often that the length should be known: a call takes longer than a short copy.
template <class Use>
void with_copy_of(std::int64_t length, const Use& use) {
  if (length == 4) return use(CopyOf<4>());
  if (length == 8) return use(CopyOf<8>());
  if (length == 16) return use(CopyOf<16>());
  if (length == 32) return use(CopyOf<32>());
  use([length](const std::uint16_t* from, std::uint16_t* to) {
    std::memcpy(to, from, length * sizeof(*to));
  });
}

// A row of an image with its padding, columns sorted by their remainder.
void cut_sorted(const Window& w, std::int64_t phase, const std::uint16_t* from, std::uint16_t* to) {
  for (std::int64_t r = 0; r < w.stride[1]; ++r)
    for (std::int64_t i = 0; i < phase; ++i, ++to) {
      const std::int64_t column = i * w.stride[1] + r - w.padding[1];
      *to = column >= 0 && column < w.width ? from[column] : std::uint16_t{0};
    }
}

}  // namespace

Window window_of(const ConvSpec& s) {
  Window w;
  w.channels = s.in, w.height = s.height, w.width = s.width;
  w.kernel[0] = s.kernel_height, w.kernel[1] = s.kernel_width;
  w.out[0] = s.out_height, w.out[1] = s.out_width;
  for (int d = 0; d < 2; ++d)
    w.dilation[d] = s.dilation[d], w.stride[d] = s.stride[d], w.padding[d] = s.padding[d];
  return w;
}

Unfold::Unfold(const Window& window, std::int64_t images, std::int64_t rows) : w_(window) {
  const std::int64_t columns =
      (w_.out[1] - 1) * w_.stride[1] + (w_.kernel[1] - 1) * w_.dilation[1] + 1;
  phase_ = ceil_div(columns, w_.stride[1]);
  pitch_ = phase_ * w_.stride[1];
  image_ = rows_seen(rows) * pitch_;
  channel_ = images * image_;
}

std::int64_t Unfold::rows_seen(std::int64_t rows) const {
  return (rows - 1) * w_.stride[0] + (w_.kernel[0] - 1) * w_.dilation[0] + 1;
}

std::int64_t Unfold::patch_size(std::int64_t taps) const {
  // The first and the last may be alone in their channel.
  return std::min(w_.channels, channel_of(taps - 2) + 2) * channel_;
}

void Unfold::cut(const std::uint16_t* x, const ResultRows& part, std::int64_t k0, std::int64_t k1,
                 std::uint16_t* patch) const {
  const std::int64_t first = channel_of(k0), count = channel_of(k1 - 1) - first + 1;
  const std::int64_t top = part.row * w_.stride[0] - w_.padding[0], seen = rows_seen(part.rows);
  // A stride of one leaves columns where they are; what the window never reaches is left out.
  const std::int64_t pad = w_.padding[1], there = std::min(w_.width, pitch_ - pad);
  std::memset(patch, 0, count * channel_ * sizeof(*patch));
  with_copy_of(there, [&](const auto& copy) {
    for (std::int64_t c = 0; c < count; ++c)
      for (std::int64_t i = 0; i < part.images; ++i) {
        const std::uint16_t* plane =
            x + ((part.image + i) * w_.channels + first + c) * w_.height * w_.width;
        std::uint16_t* to = patch + c * channel_ + i * image_;
        const std::int64_t end = std::min(top + seen, w_.height);
        for (std::int64_t r = std::max<std::int64_t>(top, 0); r < end; ++r) {
          if (w_.stride[1] == 1)
            copy(plane + r * w_.width, to + (r - top) * pitch_ + pad);
          else
            cut_sorted(w_, phase_, plane + r * w_.width, to + (r - top) * pitch_);
        }
      }
  });
}

void Unfold::lines(const std::uint16_t* patch, const ResultRows& part, std::int64_t k0,
                   std::int64_t k1, std::uint16_t* lines, std::int64_t ld) const {
  const std::int64_t window = w_.kernel[0] * w_.kernel[1], first = channel_of(k0);
  const std::int64_t step = w_.stride[0] * pitch_, run = w_.out[1];
  with_copy_of(run, [&](const auto& copy) {
    for (std::int64_t k = k0; k < k1; ++k) {
      const std::int64_t row = k % window / w_.kernel[1] * w_.dilation[0];
      const std::int64_t column = k % w_.kernel[1] * w_.dilation[1];
      const std::uint16_t* tap = patch + (channel_of(k) - first) * channel_ + row * pitch_ +
                                 column % w_.stride[1] * phase_ + column / w_.stride[1];
      std::uint16_t* to = lines + (k - k0) * ld;
      for (std::int64_t i = 0; i < part.images; ++i)
        for (std::int64_t r = 0; r < part.rows; ++r, to += run)
          copy(tap + i * image_ + r * step, to);
    }
  });
}

}  // namespace aloft::cpu
