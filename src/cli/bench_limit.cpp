// What the machine could do with a training step: its matrix products, each alone at its best
// layout, and the update at the speed of memory.
#include <map>
#include <tuple>

#include "backends/cpu/measure.h"
#include "cli/bench_step.h"
#include "ops/op.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

// Milliseconds that the program's matrix products take, each alone at its best layout.
struct MatmulLimit {
  double limit_ms = 0;   // on zeros
  double normal_ms = 0;  // on normal numbers
  double flops = 0;
  json products = json::array();  // each kind, with its rate
};

MatmulLimit matmul_limit(const Program& program) {
  using Key = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t, DType>;
  std::map<Key, int> products;
  MatmulLimit total;
  for (const Instruction& ins : program.instructions) {
    const OpDef& op = op_named(ins.call.op);
    if (!op.products) continue;
    for (const Product& p : op.products(ins.call.attrs, ins.call.in, ins.call.out))
      ++products[{p.batch, p.m, p.n, p.k, ins.call.in[0].dtype}];
  }
  for (const auto& [key, count] : products) {
    const auto& [batch, m, n, k, type] = key;
    const cpu::MatmulProblem problem{batch, m, n, k, type};
    const auto [ms, normal_ms] = cpu::product_limit(problem);
    total.limit_ms += count * ms;
    total.normal_ms += count * normal_ms;
    total.flops += count * problem.flops();
    total.products.push_back({{"count", count},
                              {"batch", batch},
                              {"m", m},
                              {"n", n},
                              {"k", k},
                              {"type", name_of(type)},
                              {"limit_ms", count * ms},
                              {"limit_normal_ms", count * normal_ms},
                              {"gflops", problem.flops() / (ms * 1e6)}});
  }
  return total;
}

}  // namespace

void add_limit(json& j, const Program& program, double bytes) {
  const MatmulLimit limit = matmul_limit(program);
  const double stream = cpu::measure_stream_rate();
  const double update_ms = bytes / (stream * 1e9) * 1e3;
  const double limit_ms = limit.limit_ms + update_ms;
  const double limit_normal_ms = limit.normal_ms + update_ms;
  j["matmul_limit_ms"] = limit.limit_ms;
  j["products"] = limit.products;
  j["matmul_gflops"] = limit.flops / (limit.limit_ms * 1e6);
  j["stream_gb_s"] = stream;
  j["limit_ms"] = limit_ms;
  j["limit_fraction"] = limit_ms / j["step_ms"].get<double>();
  j["limit_normal_ms"] = limit_normal_ms;
  j["limit_normal_fraction"] = limit_normal_ms / j["step_ms"].get<double>();
}

}  // namespace aloft::cli
