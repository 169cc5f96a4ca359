// Convolutions and their input gradients where the weight is more memory than the images: cut along
// the channels that they produce, each cut one single-threaded oneDNN primitive over all images,
// which reads its share of the weight once, from the cache. Same inputs, same bits, on any number
// of threads.
#pragma once

#include <memory>

#include "backends/cpu/conv/conv_spec.h"

namespace aloft::cpu {

class ConvCutGrid {
 public:
  // Whether this is the faster way; a function of the shape alone.
  static bool suits(const ConvSpec& spec);
  // `spec.kind` is Forward or GradInput, and suits(spec). Throws EnvironmentError E0411 where
  // oneDNN refuses.
  explicit ConvCutGrid(const ConvSpec& spec);
  ~ConvCutGrid();
  std::size_t scratch_bytes() const;
  // `images`: how many of the bound are there.
  void run(const ConvPointers& pointers, std::int64_t images) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aloft::cpu
