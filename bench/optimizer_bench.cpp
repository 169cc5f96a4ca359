// The end of a training step on GPT-2 124M's parameters: AdamW's sweep and the gradients'
// statistics, in GB/s of the bytes that they cannot avoid, and as a share of the stream measured in
// the same round. The stream reads two bytes for each that it writes; AdamW's mix is nearer to half
// and half, which some memories move faster: its share may exceed 1.
//
//   optimizer_bench [ROUNDS]        (OMP_NUM_THREADS sets the threads)
#include <cstdio>
#include <cstdlib>

#include "backends/cpu/measure.h"
#include "ops/adam_update.h"
#include "ops/grad_stats.h"
#include "scalar/split_float.h"
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

struct Kind {
  const char* name;
  DType type;  // of parameters and gradients
  bool master = false, split = false;
};
const Kind kKinds[] = {{"bf16", DType::BF16, true},
                       {"bf16-split", DType::BF16, true, true},
                       {"fp16", DType::F16, true},
                       {"fp32", DType::F32},
                       {"bf16-alone", DType::BF16}};

CallSpec adam(const Kind& kind) {
  const auto all = sizes();
  AdamUpdateAttrs a{.count = static_cast<std::int64_t>(all.size()),
                    .has_master = kind.master,
                    .split_master = kind.split};
  a.decay.assign(all.size(), 1);
  a.weight_decay = 0.1;
  CallSpec call{"adam_update", to_attrs(a), {}, {}};
  call.in = {{DType::F32, {}}, {DType::F32, {}}, {DType::I32, {}}, {DType::I64, {}}};
  const auto add = [&](std::vector<TensorType>& list, DType t) {
    for (std::int64_t n : all) list.push_back({t, {n}});
  };
  add(call.in, kind.type);
  add(call.in, kind.type);
  add(call.out, kind.type);
  for (auto* list : {&call.in, &call.out}) {
    if (kind.split)
      for (std::int64_t n : all) list->push_back({DType::U8, {scalar::rest_bytes(n)}});
    else if (kind.master)
      add(*list, DType::F32);
    for (int moment = 0; moment < 2; ++moment) add(*list, DType::F32);
  }
  return call;
}

CallSpec statistics(const CallSpec& update) {
  const std::size_t n = sizes().size();
  CallSpec stats{"grad_stats", to_attrs(GradStatsAttrs{.clip_norm = 1}), {{DType::F32, {}}}, {}};
  for (std::size_t i = 0; i < n; ++i) stats.in.push_back(update.in[4 + n + i]);
  stats.out = {{DType::F32, {}}, {DType::F32, {}}, {DType::I32, {}}, {DType::I32, {}}};
  return stats;
}

std::vector<std::pair<int, int>> in_place(const CallSpec& call) {
  return choose_kernel(cpu_backend(), call).kernel->in_place(call);
}

// Everything that ends a step: norm, check and clipping, then the update that they decide.
class Step {
 public:
  explicit Step(const Kind& kind)
      : spec_(adam(kind)), update_(spec_, in_place(spec_)), stats_(statistics(spec_)) {
    for (const auto& [i, value] : {std::pair{0, 1e-4}, {1, 1.0}, {2, 1.0}, {3, 10.0}})
      update_.set(i, value);
    stats_.set(0, 1.0);
    const std::size_t n = sizes().size();
    const UpdateLayout layout = from_attrs<AdamUpdateAttrs>(spec_.attrs).layout();
    for (std::size_t i = 0; i < n; ++i) update_.set(layout.moment(1, static_cast<int>(i)), 0.01);
  }
  double stats_ms() { return stats_.run(); }
  double update_ms() { return update_.run(); }

 private:
  CallSpec spec_;
  bench::TimedKernel update_, stats_;
};

void measure(const Kind& kind, int rounds) {
  Step step(kind);
  std::vector<double> sweep, read, stream;
  for (int i = 0; i < rounds; ++i) {
    stream.push_back(cpu::measure_stream_rate(1));
    read.push_back(step.stats_ms());
    sweep.push_back(step.update_ms());
  }
  double count = 0;
  for (std::int64_t n : sizes()) count += static_cast<double>(n);
  // Moments and the full-precision values are read and written; the gradient is read; a parameter
  // beside its master is only written.
  const double low = static_cast<double>(size_of(kind.type));
  const double values = kind.split ? 2 * (low + 2) : kind.master ? 8 + low : 2 * low;
  const double rate = count * (16 + low + values) / bench::median(sweep) / 1e6,
               norm_rate = count * low / bench::median(read) / 1e6, limit = bench::median(stream);
  std::printf(
      "%-10s stream %5.1f GB/s   AdamW %7.1f ms %6.1f GB/s %4.2f   norm %6.1f ms %6.1f GB/s "
      "%4.2f\n",
      kind.name, limit, bench::median(sweep), rate, rate / limit, bench::median(read), norm_rate,
      norm_rate / limit);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  for (const Kind& kind : kKinds) measure(kind, rounds);
}
