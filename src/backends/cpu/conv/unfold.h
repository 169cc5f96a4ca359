// The unfolded images of a convolution, a piece at a time: X[k, p] is what tap k (channel, row and
// column of the window) sees where result pixel p is made, zero in the padding. A thread cuts out
// the part of the images that some rows of results see, with its padding ("a patch"), and takes
// lines of X from there.
//
// A patch is [channel][image][row][column] of bf16, the columns sorted by column % stride, so that
// result pixels beside each other see elements beside each other, whatever the stride.
#pragma once

#include <cstdint>

#include "backends/cpu/conv/conv_spec.h"

namespace aloft::cpu {

struct Window {
  std::int64_t channels = 0, height = 0, width = 0;  // of an image
  std::int64_t kernel[2] = {1, 1}, out[2] = {0, 0};  // out: rows and columns of results
  std::int64_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};

  std::int64_t taps() const { return channels * kernel[0] * kernel[1]; }
  std::int64_t pixels() const { return out[0] * out[1]; }  // of results, an image
};
// What the convolution's own results see of x.
Window window_of(const ConvSpec& spec);

// Rows of results: [row, row + rows) of one image, or all rows of several.
struct ResultRows {
  std::int64_t image = 0, images = 1, row = 0, rows = 0;
};

class Unfold {
 public:
  Unfold() = default;
  // Patches of at most so many images and rows of results.
  Unfold(const Window& window, std::int64_t images, std::int64_t rows);

  std::int64_t channel_of(std::int64_t tap) const { return tap / (w_.kernel[0] * w_.kernel[1]); }
  // Elements of the patch of any `taps` taps.
  std::int64_t patch_size(std::int64_t taps) const;
  // Cuts out what taps [k0, k1) see of the images at x.
  void cut(const std::uint16_t* x, const ResultRows& part, std::int64_t k0, std::int64_t k1,
           std::uint16_t* patch) const;
  // Writes taps [k0, k1) of a patch cut for them: a tap's pixels of the part lie one behind the
  // other, two taps `ld` elements apart.
  void lines(const std::uint16_t* patch, const ResultRows& part, std::int64_t k0, std::int64_t k1,
             std::uint16_t* lines, std::int64_t ld) const;

 private:
  std::int64_t rows_seen(std::int64_t rows) const;

  Window w_;
  std::int64_t phase_ = 0, pitch_ = 0;    // columns of one remainder; a row of a patch
  std::int64_t image_ = 0, channel_ = 0;  // elements of an image's channel; of all images'
};

}  // namespace aloft::cpu
