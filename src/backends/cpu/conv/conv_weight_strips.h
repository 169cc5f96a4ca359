// The weight gradient of a bf16 convolution as a matrix product in vectors: dweight[out, taps] =
// dy[out, pixels] x unfolded(images)[taps, pixels]^T (unfold.h), the pixels of a few images at a
// time, by the strips of matmul/bf16_strip.h. Every element is a sum of fixed parts of the
// pixels, in order: same inputs, same bits, on any number of threads, whatever the bound of the
// images.
#pragma once

#include "backends/cpu/conv/conv_spec.h"
#include "backends/cpu/conv/unfold.h"

namespace aloft::cpu {

class ConvWeightStrips {
 public:
  // Whether this is the faster way; a function of the shape and the processor alone.
  static bool suits(const ConvSpec& spec);
  // `spec.kind` is GradWeight, and suits(spec).
  explicit ConvWeightStrips(const ConvSpec& spec);
  std::size_t scratch_bytes() const { return shared_.bytes + thread_bytes_ * threads_; }
  void run(const ConvPointers& pointers, std::int64_t images) const;

 private:
  struct Turn {
    ResultRows part;
    bool first, last;
  };
  std::int64_t parts(std::int64_t images) const;
  ResultRows part_of(std::int64_t number, std::int64_t images) const;
  void copy_gradients(const ConvPointers& p, const ResultRows& part, std::int64_t channel) const;
  void run_item(const ConvPointers& p, const Turn& turn, std::int64_t item) const;

  ConvSpec spec_;
  Window window_;
  Unfold unfold_;
  int threads_;
  std::int64_t rows_ = 0, many_ = 1;  // of results a part has; images, where all rows
  std::int64_t ld_ = 0;               // of a row of a part's pixels
  std::int64_t sums_ld_ = 0;
  std::int64_t splits_ = 1;  // of the channels of dy
  ScratchLayout shared_;
  std::size_t dy_at_ = 0, sums_at_ = 0, lines_at_ = 0, panel_at_ = 0, thread_bytes_ = 0;
};

}  // namespace aloft::cpu
