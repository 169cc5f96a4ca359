// oneDNN behind one face: 2.6 (Debian 12) and 3.x differ in how primitives are described, and that
// difference stays in onednn.cpp. Primitives here are made for one thread; the caller shares them
// out, so that the tiling, and with it every bit, does not depend on the number of threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "types/dtype.h"

namespace aloft::cpu {

// F32, BF16, F16, I32, U8, I8.
dnnl::memory::data_type onednn_type(DType type);
const dnnl::engine& onednn_engine();
// Throws EnvironmentError E0411 with oneDNN's own words.
[[noreturn]] void throw_onednn(const char* what, const dnnl::error& error);

// While alive, primitives made on this thread are made for one thread; inside a parallel region,
// library calls on this thread run on one thread too.
class OneThread {
 public:
  OneThread();
  ~OneThread();
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

// Memory objects and the argument list of one primitive, for one thread: run() sets the pointers
// and executes, allocating nothing itself.
class OneDnnCall {
 public:
  OneDnnCall() = default;
  // `args`: (DNNL_ARG_*, its descriptor), in the order of run()'s pointers.
  OneDnnCall(const dnnl::primitive& primitive,
             const std::vector<std::pair<int, dnnl::memory::desc>>& args);
  void run(std::initializer_list<const void*> pointers);

 private:
  static constexpr std::size_t kMostArgs = 6;
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::array<dnnl::memory, kMostArgs> memory_;
  std::array<dnnl_exec_arg_t, kMostArgs> args_{};
  int count_ = 0;
};

// C[m, n] = A[m, k] B[k, n] (+ bias[n], f32) (+ C), all plain; a transposed operand is stored the
// other way round. `in`: F32 or BF16; `out`: F32, or BF16 with BF16.
struct OneDnnMatmulShape {
  std::int64_t m = 0, n = 0, k = 0;
  DType in = DType::F32, out = DType::F32;
  bool transpose_a = false, transpose_b = false;
  std::int64_t lda = 0, ldb = 0, ldc = 0;  // row strides as stored
  bool bias = false, accumulate = false;
};

class OneDnnMatmul {
 public:
  explicit OneDnnMatmul(const OneDnnMatmulShape& shape);
  std::size_t scratch_bytes() const { return scratch_.get_size(); }
  // run({a, b, c, scratch, bias}); without a bias the last is left out.
  OneDnnCall call() const;

 private:
  bool bias_;
  dnnl::matmul::primitive_desc desc_;
  dnnl::primitive primitive_;
  dnnl::memory::desc scratch_;
  std::array<dnnl::memory::desc, 4> descs_;  // a, b, c, bias
};

// A two-dimensional convolution of `images` images or one of its gradients. The three operands are
// x, weight and y in the layouts that the library likes best; plain is NCHW (OIHW, GOIHW).
struct OneDnnConvShape {
  enum class Kind { Forward, GradInput, GradWeight } kind = Kind::Forward;
  std::int64_t images = 1, in = 0, out = 0, groups = 1;
  std::int64_t height = 0, width = 0, kernel_height = 0, kernel_width = 0;
  std::int64_t out_height = 0, out_width = 0;
  std::array<std::int64_t, 2> stride{1, 1}, padding{0, 0}, dilation{1, 1};
  DType type = DType::F32;  // F32 or BF16; a weight's gradient is F32
  bool bias = false;        // f32
};

class OneDnnConv {
 public:
  // `like`: take its layout of the weight (another number of images, the same convolution).
  explicit OneDnnConv(const OneDnnConvShape& shape, const OneDnnConv* like = nullptr);
  struct Layouts {
    dnnl::memory::desc x, weight, y;
  };
  const Layouts& plain() const { return plain_; }
  const Layouts& packed() const { return packed_; }
  std::size_t scratch_bytes() const { return scratch_.get_size(); }
  // run({x, weight, y, scratch, bias}); without a bias the last is left out.
  OneDnnCall call() const;

 private:
  dnnl::primitive make(const OneDnnConvShape& shape, const Layouts& wanted);
  OneDnnConvShape::Kind kind_;
  bool bias_;
  dnnl::memory::dims weight_dims_;
  Layouts plain_, packed_;
  dnnl::memory::desc scratch_, bias_desc_;
  dnnl::primitive primitive_;
};

// A copy between layouts. run({from, to, scratch}).
class OneDnnReorder {
 public:
  OneDnnReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to);
  std::size_t scratch_bytes() const { return scratch_.get_size(); }
  OneDnnCall call() const;

 private:
  dnnl::memory::desc from_, to_, scratch_;
  dnnl::primitive primitive_;
};

}  // namespace aloft::cpu
