// The weight gradient of a convolution: a fixed grid of output channels x groups of images, each
// cell one single-threaded oneDNN primitive that leaves its sums in the library's layout; the
// groups are added in order, then brought into the caller's layout. Wide layers are cut along
// their channels, so that no weight is held many times. Same inputs, same bits, on any number of
// threads.
#pragma once

#include <memory>

#include "backends/cpu/conv/conv_spec.h"

namespace aloft::cpu {

class ConvWeightGrid {
 public:
  // `spec.kind` is GradWeight. Throws EnvironmentError E0411 where oneDNN refuses.
  explicit ConvWeightGrid(const ConvSpec& spec);
  ~ConvWeightGrid();
  std::size_t scratch_bytes() const;
  // `images`: how many of the bound are there.
  void run(const ConvPointers& pointers, std::int64_t images) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aloft::cpu
