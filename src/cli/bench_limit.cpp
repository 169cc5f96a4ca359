#include "cli/bench_limit.h"

#include <algorithm>

#include "ops/matmul.h"
#include "ops/op.h"
#include "ops/update.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

// What an update reads and writes of parameters once; one beside a whole master is only written.
double bytes_of_update(const CallSpec& call, const optim::FormulaRecord& formula) {
  const UpdateLayout layout = update_layout(update_attrs(call.attrs), formula);
  const int first = layout.master == StateFormat::F32 ? layout.gradient(0) : layout.parameter(0);
  double bytes = 0;
  for (int i = first; i < layout.sums(); ++i)
    bytes += static_cast<double>(call.in[static_cast<std::size_t>(i)].max_bytes());
  for (const TensorType& t : call.out) bytes += static_cast<double>(t.max_bytes());
  return bytes;
}

// A formula of tensors is ops like others: its bytes are those of what is trained, a gradient of
// each parameter's type, and what the optimizer keeps.
double bytes_by_state(const Plan& plan) {
  double bytes = 0;
  for (const StateSlot& slot : plan.state) {
    const auto own = static_cast<double>(slot.type.max_bytes());
    if (slot.cls == StateClass::Optimizer) bytes += 2 * own;
    if (slot.cls == StateClass::Parameter && slot.requires_grad) bytes += 3 * own;
  }
  return bytes;
}

bool is_of_tensors(const Instruction& ins) {
  return std::ranges::any_of(optim::formulas(), [&](const optim::FormulaRecord* f) {
    return f->is_of_tensors && ins.call.op == Name(numbers_op_name(*f));
  });
}

}  // namespace

double unavoidable_update_bytes(const Plan& plan) {
  double most = 0;  // one of the programs steps
  for (const Program& program : plan.programs) {
    if (std::ranges::any_of(program.instructions, is_of_tensors)) return bytes_by_state(plan);
    double bytes = 0;
    for (const Instruction& ins : program.instructions)
      if (const optim::FormulaRecord* formula = formula_of_update(ins.call.op))
        bytes += bytes_of_update(ins.call, *formula);
    most = std::max(most, bytes);
  }
  return most;
}

void add_no_limit(json& j, const char* why) {
  j["limit_ms"] = j["limit_fraction"] = nullptr;
  j["limit_normal_ms"] = j["limit_normal_fraction"] = nullptr;
  j["limit_missing"] = why;
}

std::map<ProductKind, int> StepWork::products() const {
  std::map<ProductKind, int> all;
  for (const Instruction& ins : instructions)
    for (const auto& [kind, count] : ins.products) all[kind] += count;
  return all;
}

double StepWork::flops() const {
  double all = 0;
  for (const Instruction& ins : instructions)
    for (const auto& [kind, count] : ins.products) {
      const auto& [batch, m, n, k, type] = kind;
      all += ins.share * count * cpu::MatmulProblem{batch, m, n, k, type}.flops();
    }
  return all;
}

namespace {
bool is_times_own_transpose(const Instruction& ins) {
  if (ins.call.op != Name("matmul") || ins.in.size() != 2 || ins.in[0].buffer != ins.in[1].buffer)
    return false;
  const auto a = from_attrs<MatmulAttrs>(ins.call.attrs);
  return a.transpose_a != a.transpose_b;
}
}  // namespace

StepWork work_of(const Plan& plan, const Program& program) {
  StepWork work;
  work.update_bytes = unavoidable_update_bytes(plan);
  for (const Instruction& ins : program.instructions) {
    StepWork::Instruction& w = work.instructions.emplace_back();
    w.is_update = ins.phase == Phase::Update;
    const OpDef& op = op_named(ins.call.op);
    if (!op.products) continue;
    if (is_times_own_transpose(ins)) w.share = 0.5;
    const DType type = ins.call.in[0].dtype;
    for (const Product& p : op.products(ins.call.attrs, ins.call.in, ins.call.out))
      ++w.products[{p.batch, p.m, p.n, p.k, type}];
  }
  return work;
}

void MachineBest::see_rates(double sweep, double update) {
  sweep_gb_s = std::max(sweep_gb_s, sweep);
  update_gb_s = std::max(update_gb_s, update);
}

LimitMs limit_of(const StepWork& work, const MachineBest& best, std::span<const double> least_ms) {
  LimitMs limit;
  double update_in_step = 0;
  for (std::size_t i = 0; i < work.instructions.size(); ++i) {
    const StepWork::Instruction& ins = work.instructions[i];
    if (ins.is_update) update_in_step += least_ms[i];
    if (ins.products.empty()) continue;
    MachineBest::Product alone{0, 0};
    for (const auto& [kind, count] : ins.products) {
      alone.zeros_ms += ins.share * count * best.products.at(kind).zeros_ms;
      alone.normal_ms += ins.share * count * best.products.at(kind).normal_ms;
    }
    limit.products.zeros_ms += std::min(alone.zeros_ms, least_ms[i]);
    limit.products.normal_ms += std::min(alone.normal_ms, least_ms[i]);
  }
  limit.update = work.update_bytes / std::max(best.sweep_gb_s, best.update_gb_s) / 1e6;
  if (update_in_step > 0) limit.update = std::min(limit.update, update_in_step);
  return limit;
}

StepLimit::StepLimit(const Plan& plan, const Program& program) : work_(work_of(plan, program)) {
  for (const auto& [kind, count] : work_.products()) {
    const auto& [batch, m, n, k, type] = kind;
    alone_.emplace(kind, cpu::MatmulProblem{batch, m, n, k, type});
    has_half_ = has_half_ || type == DType::F16;
  }
}

void StepLimit::measure_round() {
  if (has_half_) return;
  for (auto& [kind, product] : alone_) {
    product.measure();
    best_.products[kind] = {product.zeros_ms(), product.normal_ms()};
  }
  best_.see_rates(cpu::measure_stream_rate(), cpu::measure_update_rate());
}

json StepLimit::products() const {
  json list = json::array();
  for (const auto& [kind, count] : work_.products()) {
    const auto& [batch, m, n, k, type] = kind;
    const cpu::ProductAlone& alone = alone_.at(kind);
    list.push_back({{"count", count},
                    {"batch", batch},
                    {"m", m},
                    {"n", n},
                    {"k", k},
                    {"type", name_of(type)},
                    {"limit_ms", count * alone.zeros_ms()},
                    {"limit_normal_ms", count * alone.normal_ms()},
                    {"gflops", alone.problem().flops() / (alone.zeros_ms() * 1e6)}});
  }
  return list;
}

void StepLimit::add_to(json& j, double step_ms, const Profile& profile) const {
  if (has_half_)
    return add_no_limit(j, "the library has no f16 product on this processor to compare with");
  const LimitMs limit = limit_of(work_, best_, profile.least_ms());
  j["matmul_limit_ms"] = limit.products.zeros_ms;
  j["products"] = products();
  j["matmul_gflops"] = work_.flops() / (limit.products.zeros_ms * 1e6);
  j["stream_gb_s"] = best_.sweep_gb_s;
  j["update_sweep_gb_s"] = best_.update_gb_s;
  j["update_limit_ms"] = limit.update;
  j["limit_ms"] = limit.zeros();
  j["limit_fraction"] = limit.zeros() / step_ms;
  j["limit_normal_ms"] = limit.normal();
  j["limit_normal_fraction"] = limit.normal() / step_ms;
}

}  // namespace aloft::cli
