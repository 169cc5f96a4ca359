#include "kernel_calls.h"

#include <benchmark/benchmark.h>
#include <omp.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/measure.h"
#include "backends/cpu/memory.h"
#include "ops/op.h"
#include "scalar/float_formats.h"

namespace aloft::bench {
namespace {

double stream_rate = 0;

// Ordinary numbers in float operands, positive where they stand for a deviation; small integers.
void fill(void* p, const TensorType& t, std::int64_t below) {
  for (std::int64_t i = 0; i < t.shape.max_numel(); ++i) {
    const auto r = static_cast<std::uint64_t>(i) * 2654435761u;
    const float v = static_cast<float>(r % 1021) / 1021.0f + 0.25f;
    if (t.dtype == DType::F32)
      static_cast<float*>(p)[i] = v;
    else if (t.dtype == DType::BF16)
      static_cast<scalar::Bf16*>(p)[i] = scalar::bf16_of(v);
    else if (t.dtype == DType::F16)
      static_cast<scalar::F16*>(p)[i] = scalar::f16_of(v);
    else if (size_of(t.dtype) == 1)
      static_cast<std::uint8_t*>(p)[i] = static_cast<std::uint8_t>(r % below);
    else if (t.dtype == DType::I64)
      static_cast<std::int64_t*>(p)[i] = static_cast<std::int64_t>(r % below);
    else
      static_cast<std::int32_t*>(p)[i] = static_cast<std::int32_t>(r % below);
  }
}

void run(benchmark::State& state, const Call& c) {
  CallSpec call{c.op, c.attrs, c.in, {}, omp_get_max_threads()};
  const OpDef& op = op_named(c.op);
  call.out = infer_types(op, c.attrs, c.in, {});
  const Choice choice = choose_kernel(cpu_backend(), call);
  if (!choice.kernel) return state.SkipWithError("no kernel takes the call");
  const auto prepared = choice.kernel->prepare(call);
  std::vector<std::shared_ptr<void>> memory;
  std::vector<void*> in, out;
  double bytes = 0;
  const auto allocate = [&](const TensorType& t, std::vector<void*>& to) {
    memory.push_back(cpu::allocate_aligned(t.max_bytes() + 64));
    std::memset(memory.back().get(), 0, t.max_bytes());
    to.push_back(memory.back().get());
  };
  for (const TensorType& t : call.in) {
    allocate(t, in);
    fill(in.back(), t, c.ids_below);
  }
  for (const TensorType& t : call.out) allocate(t, out);
  memory.push_back(cpu::allocate_aligned(prepared->scratch_bytes() + 64));
  bytes = op.cost(c.attrs, call.in, call.out).bytes;
  const RunArgs args{in, out, memory.back().get(), {}};
  prepared->run(args);
  for (auto _ : state) prepared->run(args);
  const double moved = bytes * static_cast<double>(state.iterations()) / 1e9;
  state.counters["GB/s"] = benchmark::Counter(moved, benchmark::Counter::kIsRate);
  state.counters["of_stream"] =
      benchmark::Counter(moved / stream_rate, benchmark::Counter::kIsRate);
}

}  // namespace

Attrs attrs(std::initializer_list<std::pair<Name, AttrValue>> list) {
  Attrs a;
  for (const auto& [name, value] : list) a.set(name, value);
  return a;
}

int run_calls(int argc, char** argv, const std::vector<Call>& calls) {
  benchmark::Initialize(&argc, argv);
  stream_rate = cpu::measure_stream_rate();
  std::printf("stream rate %.1f GB/s on %d threads\n", stream_rate, omp_get_max_threads());
  for (const Call& c : calls) {
    std::string name = c.op + c.note;
    if (!c.in.empty()) name += " " + c.in[0].str();
    benchmark::RegisterBenchmark(name.c_str(), run, c)
        ->UseRealTime()
        ->MinTime(0.1)
        ->Unit(benchmark::kMicrosecond);
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}

}  // namespace aloft::bench
