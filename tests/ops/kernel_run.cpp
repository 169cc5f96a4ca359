#include "ops/kernel_run.h"

#include <fmt/format.h>
#include <omp.h>

#include <cmath>
#include <cstring>

#include "backends/cpu/cpu_backend.h"
#include "runtime/kernel_cache.h"
#include "types/tolerance.h"

namespace aloft::testing {
namespace {

constexpr std::size_t kGuard = 128;
constexpr unsigned char kCanary = 0xc5;
// All-ones bytes are NaN in every float type, -1 in every integer.
constexpr unsigned char kPoison = 0xff;

}  // namespace

GuardedBuffer::GuardedBuffer(std::size_t bytes)
    : bytes_(bytes), memory_(bytes + 2 * kGuard + 64, kCanary) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuard;
  offset_ = kGuard + (64 - address % 64) % 64;
  std::memset(data(), kPoison, bytes_);
}

bool GuardedBuffer::is_intact() const {
  for (std::size_t i = 0; i < memory_.size(); ++i)
    if ((i < offset_ || i >= offset_ + bytes_) && memory_[i] != kCanary) return false;
  return true;
}

RunResult run_kernel(const Kernel& kernel, const CallSpec& spec, const std::vector<HostArray>& in,
                     const RunOptions& options) {
  CallSpec call = spec;
  call.threads = options.threads;
  omp_set_num_threads(options.threads);
  std::vector<GuardedBuffer> buffers;
  buffers.reserve(call.in.size() + call.out.size() + 1);
  std::vector<void*> ins, outs;
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    buffers.emplace_back(call.in[i].max_bytes());
    store_bytes(in[i], buffers.back().data());
    ins.push_back(buffers.back().data());
  }
  for (std::size_t i = 0; i < call.out.size(); ++i) {
    buffers.emplace_back(call.out[i].max_bytes());
    outs.push_back(buffers.back().data());
  }
  if (options.share) outs[options.share->second] = ins[options.share->first];
  const std::shared_ptr<const Prepared> prepared = prepare(cpu_backend(), kernel, call);
  GuardedBuffer scratch(prepared->scratch_bytes());
  RunArgs args{ins, outs, scratch.data(), options.symbols};
  prepared->run(args);
  RunResult result;
  if (!scratch.is_intact()) result.problem = "wrote outside its scratch";
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (!buffers[i].is_intact()) result.problem = fmt::format("wrote outside buffer {}", i);
  for (std::size_t i = 0; i < call.in.size(); ++i) {
    if (options.share && options.share->first == static_cast<int>(i)) continue;
    std::vector<unsigned char> before(in[i].values.size() * size_of(in[i].dtype));
    store_bytes(in[i], before.data());
    if (!before.empty() && std::memcmp(before.data(), ins[i], before.size()) != 0)
      result.problem = fmt::format("changed its input {}", i);
  }
  for (std::size_t i = 0; i < call.out.size(); ++i) {
    const auto extents =
        options.out_extents.empty() ? call.out[i].shape.max_extents() : options.out_extents[i];
    HostArray& out = result.out.emplace_back(HostArray::zeros(call.out[i].dtype, extents));
    load_bytes(out, outs[i]);
    const auto* bytes = static_cast<const unsigned char*>(outs[i]);
    result.bits.emplace_back(bytes, bytes + out.values.size() * size_of(out.dtype));
  }
  return result;
}

std::string compare(const HostArray& got, const HostArray& want, std::int64_t length, double scale,
                    const Sample& sample, DType operands) {
  if (got.shape != want.shape) return "another shape";
  if (got.dtype != want.dtype) return "another element type";
  HostArray rounded = want;
  round_to_dtype(rounded);
  const Tolerance t = tolerance_of(want.dtype, length);
  for (std::int64_t i = 0; i < got.numel(); ++i) {
    // Infinities are judged after rounding, distances before it.
    const double g = got[i], w = want[i];
    if (is_integer(got.dtype)) {
      if (got[i].whole() == rounded[i].whole()) continue;
      return fmt::format("element {}: got {}, want {}", i, got[i].whole(), rounded[i].whole());
    }
    if (std::isnan(g) && std::isnan(w)) continue;
    if (g == rounded[i]) continue;
    const double inner = sample.inner_roundings * unit_roundoff(operands);
    const double allowed =
        sample.tolerance * (t.relative * std::abs(w) + (t.absolute + inner) * scale) + t.floor;
    if (std::abs(g - w) <= allowed && std::isfinite(g)) continue;
    return fmt::format("element {}: got {:.9g}, want {:.9g}, allowed {:.3g}", i, g, w, allowed);
  }
  return "";
}

}  // namespace aloft::testing
