#include "cli/bench_limit.h"

#include <algorithm>

#include "frontend/amp.h"
#include "ops/op.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

// Slots of masters by their parameter's name: a full one holds the whole value, a split one only
// the bits that the parameter lacks.
std::map<std::string, bool> full_masters(const Plan& plan) {
  std::map<std::string, bool> full;
  for (const StateSlot& s : plan.state)
    if (const std::string name = s.name.str(); name.starts_with(amp::kMasterPrefix))
      full[name.substr(amp::kMasterPrefix.size())] = s.type.dtype == DType::F32;
  return full;
}

}  // namespace

double unavoidable_update_bytes(const Plan& plan) {
  const auto masters = full_masters(plan);
  double bytes = 0;
  for (const StateSlot& s : plan.state) {
    const auto size = static_cast<double>(s.type.max_bytes());
    if (s.cls == StateClass::Optimizer) bytes += 2 * size;
    if (s.cls != StateClass::Parameter || !s.requires_grad) continue;
    const auto master = masters.find(s.name.str());
    const bool is_read = master == masters.end() || !master->second;
    bytes += size /* the gradient */ + size + (is_read ? size : 0);
  }
  return bytes;
}

void add_no_limit(json& j, const char* why) {
  j["limit_ms"] = j["limit_fraction"] = nullptr;
  j["limit_normal_ms"] = j["limit_normal_fraction"] = nullptr;
  j["limit_missing"] = why;
}

StepLimit::StepLimit(const Plan& plan, const Program& program)
    : program_(program), update_bytes_(unavoidable_update_bytes(plan)) {
  for (const Instruction& ins : program.instructions) {
    auto& kinds = of_instruction_.emplace_back();
    const OpDef& op = op_named(ins.call.op);
    if (!op.products) continue;
    const DType type = ins.call.in[0].dtype;
    for (const Product& p : op.products(ins.call.attrs, ins.call.in, ins.call.out))
      ++kinds[{p.batch, p.m, p.n, p.k, type}];
    has_half_ = has_half_ || type == DType::F16;
  }
  for (const auto& kinds : of_instruction_)
    for (const auto& [kind, count] : kinds) {
      const auto& [batch, m, n, k, type] = kind;
      alone_.emplace(kind, cpu::MatmulProblem{batch, m, n, k, type});
    }
}

void StepLimit::measure_round() {
  if (has_half_) return;
  for (auto& [kind, product] : alone_) product.measure();
  sweep_gb_s_ = std::max(sweep_gb_s_, cpu::measure_stream_rate());
  update_gb_s_ = std::max(update_gb_s_, cpu::measure_update_rate());
}

StepLimit::Totals StepLimit::products_ms(const Profile& profile) const {
  Totals total;
  for (std::size_t i = 0; i < of_instruction_.size(); ++i) {
    if (of_instruction_[i].empty()) continue;
    Totals alone;
    for (const auto& [kind, count] : of_instruction_[i]) {
      alone.zeros_ms += count * alone_.at(kind).zeros_ms();
      alone.normal_ms += count * alone_.at(kind).normal_ms();
    }
    total.zeros_ms += std::min(alone.zeros_ms, profile.least_ms(i));
    total.normal_ms += std::min(alone.normal_ms, profile.least_ms(i));
  }
  return total;
}

double StepLimit::update_ms(const Profile& profile) const {
  double seen_ms = 0;
  for (std::size_t i = 0; i < program_.instructions.size(); ++i)
    if (program_.instructions[i].phase == Phase::Update) seen_ms += profile.least_ms(i);
  const double alone_ms = update_bytes_ / std::max(sweep_gb_s_, update_gb_s_) / 1e6;
  return seen_ms > 0 ? std::min(alone_ms, seen_ms) : alone_ms;
}

json StepLimit::products() const {
  std::map<Kind, int> counts;
  for (const auto& kinds : of_instruction_)
    for (const auto& [kind, count] : kinds) counts[kind] += count;
  json list = json::array();
  for (const auto& [kind, count] : counts) {
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
  const Totals products_limit = products_ms(profile);
  const double update_limit_ms = update_ms(profile);
  const double limit_ms = products_limit.zeros_ms + update_limit_ms;
  const double limit_normal_ms = products_limit.normal_ms + update_limit_ms;
  double flops = 0;
  for (const auto& kinds : of_instruction_)
    for (const auto& [kind, count] : kinds) flops += count * alone_.at(kind).problem().flops();
  j["matmul_limit_ms"] = products_limit.zeros_ms;
  j["products"] = products();
  j["matmul_gflops"] = flops / (products_limit.zeros_ms * 1e6);
  j["stream_gb_s"] = sweep_gb_s_;
  j["update_sweep_gb_s"] = update_gb_s_;
  j["update_limit_ms"] = update_limit_ms;
  j["limit_ms"] = limit_ms;
  j["limit_fraction"] = limit_ms / step_ms;
  j["limit_normal_ms"] = limit_normal_ms;
  j["limit_normal_fraction"] = limit_normal_ms / step_ms;
}

}  // namespace aloft::cli
