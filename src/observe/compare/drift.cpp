#include "observe/compare/drift.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "observe/compare/difference.h"
#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

// A gradient has gone through so many roundings.
constexpr double kRoundings = 64;

std::string key(const Entry& entry, const Record& r) { return entry.path + "." + r.own; }

double length_of(const Record& r) {
  return r.norm.number && std::isfinite(*r.norm.number) ? *r.norm.number : 0;
}

}  // namespace

double Drift::share(double unit) const {
  return std::min(1.0, std::sqrt(2 * (kRoundings * unit + typical_)));
}

double Drift::of(const Entry& entry, const Record& parameter) const {
  std::string name = key(entry, parameter);
  if (const auto other = same_.find(name); other != same_.end()) name = other->second;
  const auto it = moved_.find(name);
  if (it == moved_.end() || it->second == 0) return 0;
  const double length = length_of(parameter);
  return length > 0 ? std::min(1.0, it->second / length) : 1;
}

void Drift::find_same(const DumpFile& npu) {
  using Figures = std::tuple<std::vector<std::int64_t>, double, double, double, double>;
  std::map<Figures, std::string> moved;
  std::vector<std::pair<Figures, std::string>> others;
  for (const Entry& e : npu.entries)
    for (const Record& r : e.records) {
      if (r.part != Part::Parameter || !r.norm.number || !(*r.norm.number > 0)) continue;
      const auto of = [](const Figure& f) { return f.number.value_or(0); };
      Figures figures{r.shape, of(r.max), of(r.min), of(r.mean), of(r.norm)};
      const std::string name = key(e, r);
      if (moved_.contains(name))
        moved.emplace(std::move(figures), name);
      else
        others.emplace_back(std::move(figures), name);
    }
  same_.clear();
  for (const auto& [figures, name] : others)
    if (const auto it = moved.find(figures); it != moved.end()) same_.emplace(name, it->second);
}

void Drift::begin(const DumpFile& npu) {
  find_same(npu);
  typical_ = 0;
  for (const Entry& e : npu.entries)
    for (const Record& r : e.records)
      if (r.part == Part::Parameter && r.shape.size() > 1) typical_ = std::max(typical_, of(e, r));
}

void Drift::end(const std::vector<Compared>& all, std::int64_t step) {
  double unit = 0;
  for (const Compared& c : all) unit = std::max(unit, unit_of(*c.moment.entry));
  // Steps that were not looked at moved as much as those around them.
  const double steps = static_cast<double>(std::max<std::int64_t>(1, step - step_));
  for (const Compared& c : all) {
    if (!c.records.npu || !c.records.bench || c.records.npu->part != Part::Update) continue;
    const std::string name = key(*c.moment.entry->npu, *c.records.npu);
    const double length = std::max(length_of(*c.records.npu), length_of(*c.records.bench));
    const double apart = std::isfinite(c.difference.size) ? 2 * c.difference.size : 1;
    moved_[name] += steps * (share(unit) + apart) * std::max(length, last_[name]);
    last_[name] = length;
  }
  step_ = step;
}

}  // namespace aloft::compare
