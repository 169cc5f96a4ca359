#include "observe/compare/gradient_factor.h"

#include <cmath>
#include <cstddef>

#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

// What an op of Aloft's gives in the backward pass may be an activation, which no scale changes.
bool is_gradient(const Entry& e) { return e.tap.empty() || e.kind.ends_with("_grad"); }

// Whether most gradients of the two are nearer to one another with the one factor than the other.
bool are_nearer(const Pairs& pairs, double factor, double other) {
  std::ptrdiff_t nearer = 0;
  for (const EntryPair& p : pairs.entries) {
    const Direction d = p.npu->direction;
    if (!p.bench || (d != Direction::Backward && d != Direction::ParametersGrad)) continue;
    if (!is_gradient(*p.npu) || !is_gradient(*p.bench)) continue;
    for (const RecordPair& r : p.records) {
      if (!r.npu || !r.bench || unit_of(r.npu->type) == 0) continue;
      const double n = std::abs(r.npu->norm.number.value_or(0));
      const double b = std::abs(r.bench->norm.number.value_or(0));
      if (!(n > 0 && b > 0) || !std::isfinite(n) || !std::isfinite(b)) continue;
      const auto apart = [&](double f) { return std::abs(std::log(b) - std::log(n * f)); };
      nearer += apart(factor) < apart(other) ? 1 : -1;
    }
  }
  return nearer > 0;
}

}  // namespace

double gradient_factor(const Training& npu, const Training& bench, const Pairs& pairs) {
  const double said = bench.gradient_factor() / npu.gradient_factor();
  if (npu.loss_scale.has_value() == bench.loss_scale.has_value()) return said;
  const double without = said * npu.loss_scale.value_or(1) / bench.loss_scale.value_or(1);
  return without != said && are_nearer(pairs, without, said) ? without : said;
}

}  // namespace aloft::compare
