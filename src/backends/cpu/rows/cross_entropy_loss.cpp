#include "backends/cpu/rows/cross_entropy_loss.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cpu/integers.h"
#include "backends/cpu/vectors/tiles.h"
#include "runtime/kernel.h"

namespace aloft::cpu {

namespace {
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
}  // namespace

CrossEntropyLoss::CrossEntropyLoss(const CrossEntropyAttrs& attrs, DType logits, DType targets,
                                   std::int64_t classes)
    : attrs_(attrs),
      logits_(logits),
      targets_(targets),
      classes_(classes),
      sweeps_(cross_entropy_rows(logits, logits)) {}

double CrossEntropyLoss::divisor(const void* targets, std::int64_t rows) const {
  if (attrs_.reduction == "sum") return 1;
  std::int64_t n = 0;
  for (std::int64_t row = 0; row < rows; ++row) n += counts(integer_at(targets_, targets, row));
  return static_cast<double>(std::max<std::int64_t>(1, n));
}

CrossEntropyLoss::Row CrossEntropyLoss::row(const void* logits, const void* targets,
                                            std::int64_t index) const {
  Row r{logits, integer_at(targets_, targets, index), {}};
  if (counts(r.target) && is_class(r.target)) r.sum = sweeps_.log_sum_exp(logits, classes_);
  return r;
}

float CrossEntropyLoss::logit(const Row& row) const {
  float buffer;
  return *open_f32(logits_, at(row.logits, row.target, logits_), &buffer, 1);
}

double CrossEntropyLoss::loss(const Row& row) const {
  if (!counts(row.target)) return 0;
  if (!is_class(row.target)) return static_cast<double>(kNaN);
  const double hit = row.sum.above(static_cast<double>(logit(row)));
  const double smooth = attrs_.label_smoothing;
  if (smooth == 0) return hit;
  const double mean = sweeps_.mean_above(row.logits, classes_, row.sum.high);
  return (1 - smooth) * hit + smooth * (static_cast<double>(row.sum.low) - mean);
}

void CrossEntropyLoss::gradient(const Row& row, float scale, void* dx) const {
  if (!counts(row.target)) {
    std::memset(dx, 0, static_cast<std::size_t>(classes_) * size_of(logits_));
    return;
  }
  if (!is_class(row.target)) return sweeps_.gradient(row.logits, classes_, {kNaN, 0}, 0, 1, dx);
  const double floor = attrs_.label_smoothing / static_cast<double>(classes_);
  // Before the sweep, which may overwrite the logit.
  const double p = std::exp(-row.sum.above(static_cast<double>(logit(row))));
  const auto hit =
      static_cast<float>((p - (1 - attrs_.label_smoothing) - floor) * static_cast<double>(scale));
  sweeps_.gradient(row.logits, classes_, row.sum, static_cast<float>(floor), scale, dx);
  close_f32(logits_, &hit, at(dx, row.target, logits_), 1);
}

}  // namespace aloft::cpu
