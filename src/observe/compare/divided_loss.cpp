#include "observe/compare/divided_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace aloft::compare {

namespace {

// Of losses that are told, or of gradients that are summed; 0: the dump does not say it.
std::int64_t parts_of(const Training& t) {
  return std::max(t.losses, t.micro_batches > 1 ? t.micro_batches : 0);
}

bool is_gradient(const Compared& c) {
  const Record& r = c.records.npu ? *c.records.npu : *c.records.bench;
  return r.part == Part::Gradient ||
         (c.moment.entry->npu->direction == Direction::Backward && r.part != Part::Update);
}

bool is_zero(const Record& r) { return !r.norm.number || *r.norm.number == 0; }

// What is said of the gradients where the first that comes from the loss is the same in both runs;
// "" where it is not, or nobody has one. It would be off by half of it or more, were the loss that
// it comes from divided.
std::string of_gradients(const std::vector<Compared>& all) {
  constexpr double kFarFromHalf = 0.25;
  const Compared* first = nullptr;
  bool are_same = true;
  for (const Compared& c : all) {
    if (!is_gradient(c)) continue;
    are_same = are_same && !c.difference.is_more();
    if (!first && c.records.npu && c.records.bench && !is_zero(*c.records.npu) &&
        !is_zero(*c.records.bench))
      first = &c;
  }
  if (!first || first->difference.is_more() || first->difference.size > kFarFromHalf) return "";
  return are_same ? "gradients agree" : "the first gradients agree";
}

}  // namespace

std::string take_divided_loss(const Training& npu, const Training& bench,
                              const std::vector<Compared>& all,
                              std::vector<TrainingDifference>& loop, double& quotient) {
  if (!npu.loss || !bench.loss) return "";
  const double before = quotient;
  const auto it = std::ranges::find(loop, "loss", &TrainingDifference::place);
  if (it == loop.end()) {
    quotient = 1;
    return "";
  }
  const double ratio = *npu.loss / *bench.loss;
  if (!std::isfinite(ratio) || !(ratio > 0)) return "";
  const bool is_first = ratio < 1;  // which one is divided
  const double times = is_first ? 1 / ratio : ratio, whole = std::round(times);
  // Where much is allowed, any number would be near a whole one.
  const double near = std::min(it->allowed * whole, 0.1);
  if (!(whole >= 2 && whole <= 1e9 && std::abs(times - whole) <= near)) return "";
  const auto parts = static_cast<std::int64_t>(whole);
  const bool is_told = parts == parts_of(npu) || parts == parts_of(bench);
  if (!is_told) {
    if (std::max(parts_of(npu), parts_of(bench)) > 1) return "";
    if (parts_of(npu) == 1 && parts_of(bench) == 1) return "";
    const double now = is_first ? 1 / whole : whole;
    if (before != 0 && before != now) return "";
    quotient = now;
  }
  const std::string gradients = of_gradients(all);
  if (gradients.empty()) return "";
  loop.erase(it);
  return fmt::format("the {} run's loss is divided by {} micro-batches{}; {}",
                     is_first ? "first" : "second", parts,
                     is_told ? "" : ", as far as their quotient says", gradients);
}

}  // namespace aloft::compare
