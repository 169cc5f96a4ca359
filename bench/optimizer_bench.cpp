// The end of a training step on GPT-2 124M's parameters: AdamW's sweep and the gradients'
// statistics, in GB/s of the bytes that they cannot avoid, and as a share of the stream measured in
// the same run.
//
//   optimizer_bench [ROUNDS]        (OMP_NUM_THREADS sets the threads)
#include <cstdio>
#include <cstdlib>

#include "backends/cpu/measure.h"
#include "ops/adam_update.h"
#include "timed_kernel.h"

namespace {

using namespace aloft;

// The tensors of GPT-2 124M: embeddings, twelve blocks, the last norm.
std::vector<std::int64_t> sizes() {
  constexpr std::int64_t kDim = 768;
  std::vector<std::int64_t> all = {50304 * kDim, 1024 * kDim};
  for (int layer = 0; layer < 12; ++layer)
    for (std::int64_t n : {kDim, kDim, 3 * kDim * kDim, 3 * kDim, kDim * kDim, kDim, kDim, kDim,
                           4 * kDim * kDim, 4 * kDim, 4 * kDim * kDim, kDim})
      all.push_back(n);
  all.insert(all.end(), {kDim, kDim});
  return all;
}

CallSpec adam(DType type, bool master) {
  const auto all = sizes();
  AdamUpdateAttrs a{.count = static_cast<std::int64_t>(all.size()), .has_master = master};
  a.decay.assign(all.size(), 1);
  a.weight_decay = 0.1;
  CallSpec call{"adam_update", to_attrs(a), {}, {}};
  call.in = {{DType::F32, {}}, {DType::F32, {}}, {DType::I32, {}}, {DType::I64, {}}};
  const auto add = [&](std::vector<TensorType>& list, DType t) {
    for (std::int64_t n : all) list.push_back({t, {n}});
  };
  for (DType t : {type, type}) add(call.in, t);
  add(call.out, type);
  for (int i = 0; i < 2 + master; ++i) {
    add(call.in, DType::F32);
    add(call.out, DType::F32);
  }
  return call;
}

std::vector<std::pair<int, int>> in_place(const CallSpec& call) {
  return choose_kernel(cpu_backend(), call).kernel->in_place(call);
}

void measure(DType type, bool master, double stream, int rounds) {
  const CallSpec spec = adam(type, master);
  bench::TimedKernel update(spec, in_place(spec));
  for (const auto& [i, value] : {std::pair{0, 1e-4}, {1, 1.0}, {2, 1.0}, {3, 10.0}})
    update.set(i, value);
  const std::size_t n = sizes().size();
  const UpdateLayout layout = from_attrs<AdamUpdateAttrs>(spec.attrs).layout();
  double count = 0;
  for (std::size_t i = 0; i < n; ++i) {
    update.set(layout.moment(1, static_cast<int>(i)), 0.01);
    count += static_cast<double>(sizes()[i]);
  }
  CallSpec stats{"grad_stats", {}, {{DType::F32, {}}}, {}};
  for (std::size_t i = 0; i < n; ++i) stats.in.push_back(spec.in[4 + n + i]);
  stats.out = {{DType::F32, {}}, {DType::F32, {}}, {DType::I32, {}}, {DType::I32, {}}};
  bench::TimedKernel norm(stats);
  std::vector<double> sweep, read;
  for (int i = 0; i < rounds; ++i) {
    sweep.push_back(update.run());
    read.push_back(norm.run());
  }
  // Moments and the full-precision values are read and written; the gradient is read; a parameter
  // beside its master is only written.
  const double low = static_cast<double>(size_of(type));
  const double bytes = count * (16 + low + (master ? 8 + low : 2 * low));
  const double rate = bytes / bench::median(sweep) / 1e6,
               norm_rate = count * low / bench::median(read) / 1e6;
  std::printf(
      "%-5s %-9s AdamW %7.1f ms %6.1f GB/s %4.2f of the stream   norm %6.1f ms %6.1f GB/s "
      "%4.2f\n",
      std::string(name_of(type)).c_str(), master ? "+ masters" : "", bench::median(sweep), rate,
      rate / stream, bench::median(read), norm_rate, norm_rate / stream);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  const double stream = cpu::measure_stream_rate();
  std::printf("stream %.1f GB/s\n", stream);
  measure(DType::BF16, true, stream, rounds);
  measure(DType::F16, true, stream, rounds);
  measure(DType::F32, false, stream, rounds);
  measure(DType::BF16, false, stream, rounds);
}
