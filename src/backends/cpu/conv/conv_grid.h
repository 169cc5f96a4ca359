// Convolutions and their input gradients: images in fixed groups, each group one single-threaded
// oneDNN primitive, shared out by the OpenMP pool. Operands are brought into the library's layouts,
// group by group, in planned scratch; weights once a run. f32, and bf16 where the processor
// multiplies it; other types are widened to f32. Same inputs, same bits, on any number of threads.
#pragma once

#include <memory>

#include "backends/cpu/conv/conv_spec.h"

namespace aloft::cpu {

class ConvGrid {
 public:
  // `spec.kind` is Forward or GradInput. Throws EnvironmentError E0411 where oneDNN refuses.
  explicit ConvGrid(const ConvSpec& spec);
  ~ConvGrid();
  std::size_t scratch_bytes() const;
  // `images`: how many of the bound are there.
  void run(const ConvPointers& pointers, std::int64_t images) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aloft::cpu
