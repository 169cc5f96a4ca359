#include "observe/compare/repeated.h"

#include <algorithm>
#include <cmath>

namespace aloft::compare {

namespace {

// Whether each axis, counted from the last, is the same or of one element.
bool is_broadcast(const Record& small, const Record& large) {
  if (small.shape.size() > large.shape.size()) return false;
  return std::equal(small.shape.rbegin(), small.shape.rend(), large.shape.rbegin(),
                    [](std::int64_t s, std::int64_t l) { return s == l || s == 1; });
}

}  // namespace

std::set<double> common_sizes(const Pairs& pairs) {
  std::set<double> sizes;
  for (const EntryPair& p : pairs.entries)
    if (p.bench && p.npu->direction == Direction::Forward)
      for (const RecordPair& r : p.records)
        if (r.has_same_size() && (r.npu->part == Part::Input || r.npu->part == Part::Output))
          sizes.insert(r.npu->elements());
  return sizes;
}

std::optional<Record> as_repeated(const RecordPair& pair, const std::set<double>& common) {
  if (!pair.npu || !pair.bench || pair.has_same_size()) return std::nullopt;
  const bool is_npu_small = pair.npu->elements() < pair.bench->elements();
  const Record& small = is_npu_small ? *pair.npu : *pair.bench;
  const Record& large = is_npu_small ? *pair.bench : *pair.npu;
  if (!(small.elements() > 0) || !is_broadcast(small, large)) return std::nullopt;
  if (!common.contains(large.elements())) return std::nullopt;
  Record repeated = small;
  const double times = large.elements() / small.elements();
  if (repeated.norm.number) *repeated.norm.number *= std::sqrt(times);
  for (Figure* const count : {&repeated.nan, &repeated.inf, &repeated.minus_inf})
    if (count->number) *count->number *= times;
  repeated.shape = large.shape;
  repeated.hash.clear();
  return repeated;
}

}  // namespace aloft::compare
