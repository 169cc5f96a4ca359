#include "cli/bench_profile.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <utility>

#include "ops/op.h"

namespace aloft::cli {

using nlohmann::json;

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Profile::Profile(const Program& program)
    : program_(program),
      seconds_(program.instructions.size(), 0),
      least_(program.instructions.size(), std::numeric_limits<double>::infinity()) {}

void Profile::after(const OpEvent& e) {
  if (e.program != program_.name) return;
  const double seconds = e.end.seconds() - e.begin.seconds();
  const auto i = static_cast<std::size_t>(e.instruction);
  seconds_[i] += seconds;
  least_[i] = std::min(least_[i], seconds);
  if (i + 1 == seconds_.size()) ++steps_;
}

std::vector<double> Profile::least_ms() const {
  std::vector<double> ms;
  for (const double seconds : least_) ms.push_back(1e3 * seconds);
  return ms;
}

double Profile::mean_ms(std::size_t instruction) const {
  return steps_ > 0 ? 1e3 * seconds_[instruction] / steps_ : 0;
}

double Profile::products_ms() const {
  double sum = 0;
  for (std::size_t i = 0; i < seconds_.size(); ++i)
    if (op_named(program_.instructions[i].call.op).products) sum += mean_ms(i);
  return sum;
}

double Profile::update_ms() const {
  double sum = 0;
  for (std::size_t i = 0; i < seconds_.size(); ++i)
    if (program_.instructions[i].phase == Phase::Update) sum += mean_ms(i);
  return sum;
}

json Profile::by_op() const {
  struct Sum {
    int count = 0;
    double ms = 0;
  };
  std::map<std::pair<std::string, std::string>, Sum> sums;
  for (std::size_t i = 0; i < seconds_.size(); ++i) {
    const Instruction& ins = program_.instructions[i];
    Sum& s = sums[{ins.call.op.str(), std::string(name_of(ins.phase))}];
    ++s.count;
    s.ms += mean_ms(i);
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

}  // namespace aloft::cli
