// One kernel call on memory of its own, for benches: filled with ordinary numbers, run and timed.
#pragma once

#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/memory.h"
#include "base/error.h"
#include "scalar/float_formats.h"

namespace aloft::bench {

inline void put(void* p, std::int64_t i, DType type, double v) {
  switch (type) {
    case DType::F32:
      static_cast<float*>(p)[i] = static_cast<float>(v);
      break;
    case DType::BF16:
      static_cast<scalar::Bf16*>(p)[i] = scalar::bf16_of(v);
      break;
    case DType::F16:
      static_cast<scalar::F16*>(p)[i] = scalar::f16_of(v);
      break;
    case DType::I64:
      static_cast<std::int64_t*>(p)[i] = static_cast<std::int64_t>(v);
      break;
    case DType::I32:
      static_cast<std::int32_t*>(p)[i] = static_cast<std::int32_t>(v);
      break;
    default:
      static_cast<std::int8_t*>(p)[i] = static_cast<std::int8_t>(v);
  }
}

class TimedKernel {
 public:
  // `shared`: (input, output) pairs that lie in one buffer, as the planner would have them.
  TimedKernel(CallSpec call, const std::vector<std::pair<int, int>>& shared = {})
      : call_(std::move(call)) {
    call_.threads = omp_get_max_threads();
    for (const TensorType& t : call_.in) in_.push_back(buffer(t));
    for (const TensorType& t : call_.out) out_.push_back(buffer(t));
    for (const auto& [i, o] : shared) out_[o] = in_[i];
    const Choice choice = choose_kernel(cpu_backend(), call_);
    ensure(choice.kernel != nullptr, "the cpu back end has this kernel");
    prepared_ = choice.kernel->prepare(call_);
    scratch_ = cpu::allocate_aligned(prepared_->scratch_bytes() + 64);
    for (const auto& p : in_) ins_.push_back(p.get());
    for (const auto& p : out_) outs_.push_back(p.get());
  }

  void* in(int i) { return ins_[i]; }
  void* out(int i) { return outs_[i]; }
  // Input i becomes ordinary numbers in [-amplitude, amplitude).
  void fill(int i, double amplitude) {
    const std::int64_t n = call_.in[i].shape.max_numel();
    for (std::int64_t e = 0; e < n; ++e)
      put(ins_[i], e, call_.in[i].dtype,
          amplitude * (static_cast<double>(e * 2654435761u % 1009) / 504.5 - 1));
  }
  // Every element of input i becomes v.
  void set(int i, double v) {
    const std::int64_t n = call_.in[i].shape.max_numel();
    for (std::int64_t e = 0; e < n; ++e) put(ins_[i], e, call_.in[i].dtype, v);
  }
  double scratch_mib() const { return static_cast<double>(prepared_->scratch_bytes()) / (1 << 20); }
  // Milliseconds of one run.
  double run() {
    const auto start = std::chrono::steady_clock::now();
    prepared_->run({ins_, outs_, scratch_.get(), {}});
    const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
    return took.count();
  }

 private:
  static std::shared_ptr<void> buffer(const TensorType& t) {
    auto p = cpu::allocate_aligned(t.max_bytes() + 64);
    const std::int64_t n = t.shape.max_numel();
    for (std::int64_t i = 0; i < n; ++i)
      put(p.get(), i, t.dtype, static_cast<double>(i * 2654435761u % 1024) / 1024.0 - 0.5);
    return p;
  }

  CallSpec call_;
  std::vector<std::shared_ptr<void>> in_, out_;
  std::vector<void*> ins_, outs_;
  std::shared_ptr<void> scratch_;
  std::unique_ptr<Prepared> prepared_;
};

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

}  // namespace aloft::bench
