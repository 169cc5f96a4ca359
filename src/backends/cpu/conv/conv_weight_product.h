// The weight gradient of a bf16 convolution as one matrix product on the matrix units:
// dweight[out, in x window] = dy[out, pixels] unfolded(x)[pixels, in x window], the pixels of all
// images together. Where there are many output channels the product repays unfolding x; the
// library's kernel for these shapes reaches a fifth of the units' speed. Same inputs, same bits, on
// any number of threads.
#pragma once

#include <memory>

#include "backends/cpu/conv/conv_way.h"
#include "backends/cpu/conv/unfold.h"
#include "backends/cpu/matmul/matmul_grid.h"

namespace aloft::cpu {

class ConvWeightProduct : public ConvWay {
 public:
  // Whether this is the faster way; a function of the shape and the processor alone.
  static bool suits(const ConvSpec& spec);
  // `spec.kind` is GradWeight, and suits(spec).
  explicit ConvWeightProduct(const ConvSpec& spec);
  std::size_t scratch_bytes() const override { return layout_.bytes; }
  void run(const ConvPointers& pointers, std::int64_t images) const override;

 private:
  ConvSpec spec_;
  Unfold unfold_;
  std::int64_t pixels_ = 0;  // of y, all images of the bound
  ScratchLayout layout_;
  std::unique_ptr<MatmulGrid> grid_;
  std::size_t dy_at_ = 0, x_at_ = 0, patches_at_ = 0, patch_bytes_ = 0, grid_at_ = 0;
};

}  // namespace aloft::cpu
