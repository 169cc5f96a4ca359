// Convolutions: images in fixed groups, each group one single-threaded oneDNN primitive, shared out
// by the OpenMP pool. Operands are brought into the library's layouts, group by group, in planned
// scratch. f32, and bf16 where the processor multiplies it; other types are widened to f32.
// Same inputs, same bits, on any number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "types/dtype.h"

namespace aloft::cpu {

enum class ConvKind { Forward, GradInput, GradWeight };

struct ConvSpec {
  ConvKind kind = ConvKind::Forward;
  std::int64_t images = 0;                   // bound
  std::int64_t in = 0, out = 0, groups = 1;  // channels
  std::int64_t height = 0, width = 0;        // of x
  std::int64_t kernel_height = 0, kernel_width = 0;
  std::int64_t out_height = 0, out_width = 0;
  std::int64_t stride[2] = {1, 1}, padding[2] = {0, 0}, dilation[2] = {1, 1};
  DType type = DType::F32;  // of everything
  bool bias = false;        // Forward only
  int threads = 1;

  std::int64_t x_size() const { return in * height * width; }  // of one image
  std::int64_t y_size() const { return out * out_height * out_width; }
  std::int64_t weight_size() const { return out * (in / groups) * kernel_height * kernel_width; }
};

struct ConvPointers {
  const void* first = nullptr;   // Forward: x. GradInput: dy. GradWeight: x.
  const void* second = nullptr;  // Forward, GradInput: the weight. GradWeight: dy.
  const void* bias = nullptr;
  void* result = nullptr;  // y, dx or dweight
  void* scratch = nullptr;
};

class ConvGrid {
 public:
  // Throws EnvironmentError E0411 where oneDNN refuses.
  explicit ConvGrid(const ConvSpec& spec);
  ~ConvGrid();
  std::size_t scratch_bytes() const;
  // `images`: how many of the bound are there.
  void run(const ConvPointers& pointers, std::int64_t images);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aloft::cpu
