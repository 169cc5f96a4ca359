#include "observe/compare/taken_parameters.h"

#include <algorithm>

#include "observe/compare/difference.h"
#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

// What is cast is off by some units of the coarser type.
constexpr double kUnitsOfCast = 4;

bool is_cast_of(const Record& taken, const Record& parameter) {
  if (!taken.norm.number || !parameter.norm.number) return false;
  const auto d = difference_of({&taken, &parameter}, nullptr);
  return d && d->size <= kUnitsOfCast * std::max(unit_of(taken.type), unit_of(parameter.type));
}

}  // namespace

TakenParameters::TakenParameters(const Pairs& pairs) {
  for (const EntryPair& p : pairs.entries)
    if (p.bench && p.npu->is_module)
      for (const RecordPair& r : p.records)
        if (r.has_same_size() && r.npu->part == Part::Parameter && unit_of(r.npu->type) > 0)
          known_[r.npu->elements()].push_back({p.npu, &r});
}

TakenParameter TakenParameters::of(const EntryPair& call, const RecordPair& taken) const {
  if (call.npu->is_module || taken.npu->part != Part::Input || !taken.has_same_size()) return {};
  const auto it = known_.find(taken.npu->elements());
  if (it == known_.end()) return {};
  const auto found = std::ranges::find_if(it->second, [&](const Known& k) {
    return is_cast_of(*taken.npu, *k.records->npu) && is_cast_of(*taken.bench, *k.records->bench);
  });
  if (found == it->second.end()) return {};
  return {found->entry, found->records->npu};
}

}  // namespace aloft::compare
