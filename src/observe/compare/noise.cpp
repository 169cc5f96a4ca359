#include "observe/compare/noise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text.h"
#include "types/float_step.h"
#include "types/statistics.h"

namespace aloft::compare {

namespace {

// Where all so far is the same, rounding has not added up: of bf16, whose unit is coarse, half of
// it counts for each call then, so that a branch that is 5 % off is seen.
constexpr double kMostBehindSame = 0x1p-9;
// Behind values that are the same: so many calls of the coarsest type may lie between two that are
// seen, and be rounded otherwise.
constexpr double kUnseenCalls = 1;
constexpr double kUnitF64 = 0x1p-53, kUnitF32 = 0x1p-24, kUnitF16 = 0x1p-11, kUnitBf16 = 0x1p-8;

}  // namespace

std::optional<DType> float_type_of(std::string_view type) {
  // Of complex numbers the type of their parts, which their figures (of magnitudes) have, too.
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"bfloat16", DType::BF16}, {"float16", DType::F16},   {"float32", DType::F32},
      {"float64", DType::F64},   {"complex32", DType::F16}, {"complex64", DType::F32},
      {"complex128", DType::F64}};
  const std::string t = lower(type);
  for (const auto& [word, dtype] : kTypes)
    if (t.find(word) != std::string::npos) return dtype;
  return std::nullopt;
}

double unit_of(std::string_view type) {
  const std::optional<DType> t = float_type_of(type);
  return t ? step_at(*t, 1) / 2 : 0;
}

std::string number_text(double value, std::string_view type) {
  if (float_type_of(type) == DType::F64) return fmt::format("{}", value);
  return fmt::format("{:.9g}", value);
}

bool is_at_end(double value, std::string_view type) {
  constexpr double kNear = 0.99;
  const std::optional<DType> t = float_type_of(type);
  return t && std::abs(value) >= kNear * edges_of(*t).largest;
}

double unit_of(const EntryPair& entry) {
  double coarsest = 0;
  for (const Entry* e : {entry.npu, entry.bench})
    if (e)
      for (const Record& r : e->records) coarsest = std::max(coarsest, unit_of(r.type));
  return coarsest;
}

double summands_of(const Entry& entry) {
  double most = 1;
  bool takes_floats = entry.direction != Direction::Forward;
  for (const Record& r : entry.records)
    if (r.part == Part::Input && unit_of(r.type) > 0) takes_floats = true;
  if (!takes_floats) return most;  // a table that is read: nothing is summed
  for (const Record& r : entry.records) {
    if (unit_of(r.type) == 0 || r.shape.empty()) continue;
    const double last = static_cast<double>(r.shape.back());
    if (r.part == Part::Input || r.part == Part::Output) most = std::max(most, last);
    // A weight's elements for one result: the taps of a convolution, the features of a product.
    if (r.part == Part::Parameter && r.shape.size() > 1 && r.shape[0] > 0)
      most = std::max(most, r.elements() / static_cast<double>(r.shape[0]));
    // A gradient of a parameter is a sum over all rows, of which the batch is not known here.
    if (r.part == Part::Gradient) most = std::max(most, 1024.0);
  }
  return most;
}

void Noise::add(const EntryPair& entry) {
  const double stored = unit_of(entry);
  coarsest_ = std::max(coarsest_, stored);
  const double summed = stored <= kUnitF64 ? kUnitF64 : kUnitF32;
  const double sum = summed * std::sqrt(summands_of(*entry.npu));
  squares_ += std::pow(2 * stored + sum, 2);
  since_ += std::pow(2 * std::min(stored, kMostBehindSame) + sum, 2);
}

void Noise::forget() {
  since_ = drift_ * drift_;
  was_same_ = true;
  is_cancelled_since_ = false;
}

void Noise::add_cancelled(double relative) {
  cancelled_ = relative;
  is_cancelled_since_ = true;
}

void Noise::add_drift(double relative) {
  drift_ = relative;
  squares_ += relative * relative;
  since_ += relative * relative;
}

void Noise::measure_cancelled(double relative) { cancelled_ = std::min(cancelled_, relative); }

double Noise::level() const {
  const double lost = cancelled_ * cancelled_, all = squares_ + lost;
  if (coarsest_ <= kUnitF32 || !was_same_) return std::sqrt(all);
  const double unseen = 2 * std::min(coarsest_, kMostBehindSame);
  const double since = since_ + (is_cancelled_since_ ? lost : 0) + kUnseenCalls * unseen * unseen;
  return std::sqrt(std::min(all, since));
}

double Noise::most() const {
  // Parameters that were trained apart, or digits that were lost: as much as a softmax or a norm
  // makes of it.
  const double trained = 8 * (drift_ + cancelled_);
  if (coarsest_ >= kUnitBf16) return 0.25 + trained;
  if (coarsest_ >= kUnitF16) return 0.05 + trained;
  return (coarsest_ >= kUnitF32 ? 1e-3 : 1e-6) + trained;
}

double figure_noise(const Record& record) {
  if (!record.is_exact) return 2 * unit_of(record.type) + 0x1p-22;
  // Of low types, and of what updates add, some elements at a time are summed in f32.
  const bool begins_in_f32 = unit_of(record.type) > kUnitF32 || record.part == Part::Update;
  return begins_in_f32 ? 0x1p-20 : 0x1p-50;
}

}  // namespace aloft::compare
