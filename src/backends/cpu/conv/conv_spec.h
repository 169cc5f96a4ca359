// A convolution or one of its gradients, as the grids of convolutions take it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/isa.h"
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
  // Of one image of those that a Forward or GradInput reads, and of those that it makes.
  std::int64_t read_size() const { return kind == ConvKind::GradInput ? y_size() : x_size(); }
  std::int64_t made_size() const { return kind == ConvKind::GradInput ? x_size() : y_size(); }
  // What the library multiplies: bf16 where the processor does, else f32.
  DType computed() const {
    return type == DType::BF16 && cpu_features().avx512_bf16 ? DType::BF16 : DType::F32;
  }
};

struct ConvPointers {
  const void* first = nullptr;   // Forward: x. GradInput: dy. GradWeight: x.
  const void* second = nullptr;  // Forward, GradInput: the weight. GradWeight: dy.
  const void* bias = nullptr;
  void* result = nullptr;  // y, dx or dweight
  void* scratch = nullptr;
};

// Memory laid out piece by piece, each on a cache line of its own.
struct ScratchLayout {
  std::size_t bytes = 0;
  std::size_t take(std::size_t size) {
    const std::size_t at = bytes;
    bytes = (bytes + size + 63) / 64 * 64;
    return at;
  }
};

}  // namespace aloft::cpu
