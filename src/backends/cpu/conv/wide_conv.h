// Convolutions of f64 and their gradients, for checks of gradients: plain loops over planes, each
// result one chain of additions in a fixed order.
#pragma once

#include "backends/cpu/conv/conv_way.h"

namespace aloft::cpu {

class WideConv : public ConvWay {
 public:
  // `spec.type` is F64.
  explicit WideConv(const ConvSpec& spec) : spec_(spec) {}
  std::size_t scratch_bytes() const override { return 0; }
  void run(const ConvPointers& pointers, std::int64_t images) const override;

 private:
  void forward(const ConvPointers& p, std::int64_t image, std::int64_t out) const;
  void grad_input(const ConvPointers& p, std::int64_t image, std::int64_t in) const;
  void grad_weight(const ConvPointers& p, std::int64_t images, std::int64_t out,
                   std::int64_t in) const;
  std::int64_t window() const { return spec_.kernel_height * spec_.kernel_width; }
  std::int64_t in_of_group() const { return spec_.in / spec_.groups; }
  std::int64_t out_of_group() const { return spec_.out / spec_.groups; }

  ConvSpec spec_;
};

}  // namespace aloft::cpu
