#include "observe/compare/tied_parameters.h"

#include <algorithm>

namespace aloft::compare {

namespace {

// Of two that are nothing but zeros figures do not say that they are one.
bool is_same_and_not_zero(const Record& a, const Record& b) {
  return a.norm.number.value_or(0) > 0 && a.shape == b.shape && is_same_value(a, b);
}

}  // namespace

TiedParameters::TiedParameters(const Pairs& pairs) {
  for (const EntryPair& p : pairs.entries) {
    note(*p.npu, npu_);
    if (p.bench) note(*p.bench, bench_);
  }
  for (const Entry* b : pairs.only_bench) note(*b, bench_);
  for (const EntryPair& p : pairs.entries)
    if (p.bench && p.npu->direction == Direction::ParametersGrad)
      for (const RecordPair& r : p.records)
        if (r.npu && r.bench && r.npu->is_tensor && r.bench->is_tensor)
          note_told(*p.npu, *r.npu, npu_), note_told(*p.bench, *r.bench, bench_);
}

void TiedParameters::note(const Entry& e, OfRun& run) {
  for (const Record& r : e.records)
    if (r.part == Part::Parameter) run.parameters.emplace(std::pair(e.path, r.own), &r);
}

void TiedParameters::note_told(const Entry& e, const Record& r, OfRun& run) {
  if (const auto it = run.parameters.find({e.path, r.own}); it != run.parameters.end())
    run.told.emplace_back(&r, it->second);
}

bool TiedParameters::is_told_elsewhere(const std::string& path, const Record& r,
                                       bool is_npu) const {
  if (r.is_exact || r.part != Part::Gradient) return false;
  const OfRun& run = is_npu ? npu_ : bench_;
  const auto own = run.parameters.find({path, r.own});
  return own != run.parameters.end() && std::ranges::any_of(run.told, [&](const auto& told) {
           return is_same_and_not_zero(*told.first, r) &&
                  is_same_and_not_zero(*told.second, *own->second);
         });
}

}  // namespace aloft::compare
