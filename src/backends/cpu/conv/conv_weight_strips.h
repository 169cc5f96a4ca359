// The weight gradient of a bf16 convolution as a matrix product in vectors: dweight[out, taps] =
// dy[out, pixels] x unfolded(images)[taps, pixels]^T (unfold.h), the pixels of a few images at a
// time, by the strips of matmul/bf16_strip.h. Every element is a sum of fixed parts of the
// pixels, in order: same inputs, same bits, on any number of threads, whatever the bound of the
// images.
#pragma once

#include "backends/cpu/conv/conv_way.h"
#include "backends/cpu/conv/unfold.h"

namespace aloft::cpu {

class ConvWeightStrips : public TeamConv {
 public:
  // Whether this is the faster way; a function of the shape and the processor alone.
  static bool suits(const ConvSpec& spec);
  // `spec.kind` is GradWeight, and suits(spec).
  explicit ConvWeightStrips(const ConvSpec& spec);
  bool is_cut_by_bound() const override { return false; }

 private:
  struct Turn {
    ResultRows part;
    bool first, last;
  };
  void run_thread(const ConvPointers& p, std::int64_t images) const override;
  std::int64_t parts(std::int64_t images) const;
  ResultRows part_of(std::int64_t number, std::int64_t images) const;
  void copy_gradients(const ConvPointers& p, const ResultRows& part, std::int64_t channel) const;
  void run_item(const ConvPointers& p, const Turn& turn, std::int64_t item) const;

  Window window_;
  Unfold unfold_;
  std::int64_t rows_ = 0, many_ = 1;  // of results a part has; images, where all rows
  std::int64_t ld_ = 0;               // of a row of a part's pixels
  std::int64_t sums_ld_ = 0;
  std::int64_t splits_ = 1;  // of the channels of dy
  std::size_t dy_at_ = 0, sums_at_ = 0, lines_at_ = 0, panel_at_ = 0;
};

}  // namespace aloft::cpu
