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

#include "backends/cpu/shelf.h"
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

// Memory objects and the argument list of one primitive, for one caller at a time: run() sets the
// pointers and executes, allocating nothing itself.
class OneDnnCall {
 public:
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

// The same for any number of callers at once: each takes a call of its own.
class OneDnnCalls {
 public:
  OneDnnCalls() = default;
  // `ready` of them are made now: as many as the threads of one run.
  OneDnnCalls(const dnnl::primitive& primitive,
              const std::vector<std::pair<int, dnnl::memory::desc>>& args, int ready);
  void run(std::initializer_list<const void*> pointers) const;

 private:
  Shelf<OneDnnCall> calls_;
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
  // `threads`: how many a run of it has. `like`: take its layout of the weight (another number of
  // images, the same convolution).
  OneDnnConv(const OneDnnConvShape& shape, int threads, const OneDnnConv* like = nullptr);
  struct Layouts {
    dnnl::memory::desc x, weight, y;
  };
  const Layouts& plain() const { return plain_; }
  const Layouts& packed() const { return packed_; }
  struct Images {
    const dnnl::memory::desc &plain, &packed;
  };
  Images inputs() const { return {plain_.x, packed_.x}; }
  Images results() const { return {plain_.y, packed_.y}; }
  // Of a Forward or GradInput: the images that it reads, and those that it makes.
  Images read() const { return is_grad_input() ? results() : inputs(); }
  Images made() const { return is_grad_input() ? inputs() : results(); }
  std::size_t scratch_bytes() const { return scratch_.get_size(); }
  // run({x, weight, y, scratch, bias}); without a bias the last is left out. Thread-safe.
  void run(std::initializer_list<const void*> pointers) const { calls_.run(pointers); }
  // The same, from the images that are read to those that are made.
  void run_images(const void* read, const void* weight, const void* made, const void* scratch,
                  const void* bias) const;

 private:
  dnnl::primitive make(const OneDnnConvShape& shape, const Layouts& wanted);
  std::vector<std::pair<int, dnnl::memory::desc>> arguments(const OneDnnConvShape& shape) const;
  bool is_grad_input() const { return kind_ == OneDnnConvShape::Kind::GradInput; }
  OneDnnConvShape::Kind kind_;
  bool has_bias_;
  dnnl::memory::dims weight_dims_;
  Layouts plain_, packed_;
  dnnl::memory::desc scratch_, bias_desc_;
  OneDnnCalls calls_;
};

// A copy between layouts. run({from, to, scratch}), thread-safe.
class OneDnnReorder {
 public:
  OneDnnReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, int threads);
  std::size_t scratch_bytes() const { return scratch_bytes_; }
  void run(std::initializer_list<const void*> pointers) const { calls_.run(pointers); }

 private:
  std::size_t scratch_bytes_ = 0;
  OneDnnCalls calls_;
};

}  // namespace aloft::cpu
