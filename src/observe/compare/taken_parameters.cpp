#include "observe/compare/taken_parameters.h"

#include <algorithm>

#include "observe/compare/noise.h"
#include "observe/compare/records_apart.h"

namespace aloft::compare {

namespace {

bool is_taken(const Record& taken, const Record& parameter) {
  return taken.norm.number && parameter.norm.number && is_cast_of(taken, parameter);
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
    return is_taken(*taken.npu, *k.records->npu) && is_taken(*taken.bench, *k.records->bench);
  });
  if (found == it->second.end()) return {};
  return {found->entry, found->records->npu};
}

}  // namespace aloft::compare
