// Times a training step: whole, and instruction by instruction.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/process.h"
#include "cli/bench_step.h"
#include "ops/op.h"

namespace aloft::cli {
namespace {

using nlohmann::json;

double median(std::vector<double> v) {
  if (v.empty()) return 0;
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

// Times each instruction of a program: which share the products and the update take.
class Clock : public Observer {
 public:
  explicit Clock(const Program& program) : seconds_(program.instructions.size(), 0) {}
  void before(std::string_view, int) override { start_ = steady_seconds(); }
  void after(std::string_view, int i, std::span<void* const>) override {
    seconds_[i] += steady_seconds() - start_;
  }
  double of(int i) const { return seconds_[i]; }

 private:
  std::vector<double> seconds_;
  double start_ = 0;
};

// Bytes that the update cannot avoid: every gradient once for its norm, once for the update; every
// parameter, master and moment read and written once.
double update_bytes(const Plan& plan) {
  double state = 0, gradients = 0;
  for (const StateSlot& s : plan.state) {
    if (s.cls == StateClass::Optimizer || (s.cls == StateClass::Parameter && s.requires_grad))
      state += static_cast<double>(s.type.max_bytes());
    if (s.cls == StateClass::Parameter && s.requires_grad)
      gradients += static_cast<double>(s.type.max_bytes());
  }
  return 2 * state + 2 * gradients;
}

struct Shares {
  double matmul_s = 0, update_s = 0;
};

// Milliseconds a step by op and phase, longest first, from `steps` observed ones.
json times_by_op(const Program& program, const Clock& clock, int steps) {
  struct Sum {
    int count = 0;
    double ms = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& ins = program.instructions[i];
    Sum& s = sums[{ins.call.op.str(), std::string(name_of(ins.phase))}];
    ++s.count;
    s.ms += clock.of(static_cast<int>(i)) / steps * 1e3;
  }
  std::vector<json> rows;
  rows.reserve(sums.size());
  for (const auto& [key, s] : sums)
    rows.push_back({{"op", key.first}, {"phase", key.second}, {"count", s.count}, {"ms", s.ms}});
  std::stable_sort(rows.begin(), rows.end(), [](const json& a, const json& b) {
    return a["ms"].get<double>() > b["ms"].get<double>();
  });
  return rows;
}

// Seconds a step in ops with matrix products, and in the update, from `steps` observed ones.
Shares shares_of(const Program& program, const Clock& clock, int steps) {
  Shares s;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& ins = program.instructions[i];
    if (op_named(ins.call.op).products) s.matmul_s += clock.of(static_cast<int>(i)) / steps;
    if (ins.phase == Phase::Update) s.update_s += clock.of(static_cast<int>(i)) / steps;
  }
  return s;
}

}  // namespace

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

json measure_bench(BenchSubject& subject, const BenchOptions& o, double process_start) {
  Programs& programs = subject.programs();
  const Program& program = *programs.plan().find("train");
  std::vector<double> times;
  double first = 0, loss = 0;
  for (int i = 0; i < o.steps; ++i) {
    const double start = steady_seconds();
    loss = subject.step();
    times.push_back(steady_seconds() - start);
    if (i == 0) first = steady_seconds();
  }
  if (times.size() > 1) times.erase(times.begin());
  const double step = median(times);
  const std::uint64_t rss = peak_rss_bytes();

  Clock clock(program);
  programs.executor().attach(&clock);
  constexpr int kProfiled = 3;
  for (int i = 0; i < kProfiled; ++i) subject.step();
  programs.executor().attach(nullptr);
  const auto [matmul_s, update_s] = shares_of(program, clock, kProfiled);
  const double bytes = update_bytes(programs.plan());
  json j = subject.description();
  j.update({{"threads", omp_get_max_threads()},
            {"unit", subject.unit()},
            {subject.unit() + "_per_s", static_cast<double>(subject.units_a_step()) / step},
            {"steps_per_s", 1 / step},
            {"step_ms", step * 1e3},
            {"compile_ms", programs.compile_seconds() * 1e3},
            {"startup_ms", (first - process_start) * 1e3},
            {"first_step_clock_s", first},  // for whoever started this process and noted the time
            {"planned_peak_bytes", programs.plan().peak_bytes()},
            {"peak_rss_bytes", rss},
            {"matmul_ms", matmul_s * 1e3},
            {"optimizer_gb_s", update_s > 0 ? bytes / update_s / 1e9 : 0},
            {"ops", times_by_op(program, clock, kProfiled)},
            {"loss", loss}});
  if (!o.no_limit) add_limit(j, program, bytes);
  return j;
}

}  // namespace aloft::cli
