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
// An update follows its gradient, and the moments of it, so many times enlarged.
constexpr double kFollows = 4;
// So many of a matrix's elements may have a gradient that is nothing but rounding.
constexpr double kWithoutGradient = 1e-3;

std::string key(const Entry& entry, const Record& r) { return entry.path + "." + r.own; }

double or_zero(const Figure& f) {
  return f.number && std::isfinite(*f.number) ? std::abs(*f.number) : 0;
}
double length_of(const Record& r) { return or_zero(r.norm); }
double largest_of(const Record& r) { return std::max(or_zero(r.max), or_zero(r.min)); }

// A part of a whole; all of it where the whole is nothing.
double part_of(double part, double whole) {
  if (part == 0) return 0;
  return whole > 0 ? part / whole : 1;
}

// The coarsest of a step's types.
double unit_of(const DumpFile& npu, const DumpFile& bench) {
  double unit = 0;
  for (const DumpFile* dump : {&npu, &bench})
    for (const Entry& e : dump->entries)
      for (const Record& r : e.records) unit = std::max(unit, compare::unit_of(r.type));
  return unit;
}

}  // namespace

double Drift::share(double unit) const {
  return std::min(1.0, std::sqrt(2 * (kRoundings * unit + typical_)));
}

const Drift::Moved* Drift::moved(const Entry& entry, const Record& parameter) const {
  std::string name = key(entry, parameter);
  if (const auto other = same_.find(name); other != same_.end()) name = other->second;
  const auto it = moved_.find(name);
  return it == moved_.end() ? nullptr : &it->second;
}

double Drift::of(const Entry& entry, const Record& parameter) const {
  const Moved* const m = moved(entry, parameter);
  return m ? std::min(1.0, part_of(m->apart, length_of(parameter))) : 0;
}

Drift::Limits Drift::limits(const Entry& entry, const Record& parameter) const {
  const Moved* const m = moved(entry, parameter);
  if (!m || m->steps == 0) return {};
  const double length = length_of(parameter);
  // What is added is rounded in each step.
  const double rounded = 4 * compare::unit_of(parameter.type) * std::sqrt(m->steps);
  const double few = 1 + kWithoutGradient * parameter.elements();
  Limits limits{of(entry, parameter) + part_of(2 * m->reach * std::sqrt(few), length),
                part_of(2 * m->reach, largest_of(parameter)), part_of(m->smooth, length)};
  // All elements of a vector may be without a gradient, such as a bias of keys.
  if (parameter.shape.size() < 2)
    limits.length = limits.typical = std::max(limits.length, part_of(2 * m->length, length));
  for (double* const limit : {&limits.length, &limits.element, &limits.typical}) *limit += rounded;
  return limits;
}

void Drift::find_same(const DumpFile& npu) {
  using Figures = std::tuple<std::vector<std::int64_t>, double, double, double, double>;
  std::map<Figures, std::string> with_updates;
  std::vector<std::pair<Figures, std::string>> others;
  for (const Entry& e : npu.entries)
    for (const Record& r : e.records) {
      if (r.part != Part::Parameter || !r.norm.number || !(*r.norm.number > 0)) continue;
      const auto of = [](const Figure& f) { return f.number.value_or(0); };
      Figures figures{r.shape, of(r.max), of(r.min), of(r.mean), of(r.norm)};
      const std::string name = key(e, r);
      if (moved_.contains(name))
        with_updates.emplace(std::move(figures), name);
      else
        others.emplace_back(std::move(figures), name);
    }
  same_.clear();
  for (const auto& [figures, name] : others)
    if (const auto it = with_updates.find(figures); it != with_updates.end())
      same_.emplace(name, it->second);
}

void Drift::measure() {
  typical_ = smooth_ = 0;
  for (const auto& [name, length] : matrices_) {
    const auto same = same_.find(name);
    const auto it = moved_.find(same == same_.end() ? name : same->second);
    if (it == moved_.end()) continue;
    typical_ = std::max(typical_, std::min(1.0, part_of(it->second.apart, length)));
    smooth_ = std::max(smooth_, std::min(1.0, part_of(it->second.pushed, length)));
  }
}

void Drift::move(const std::vector<Update>& updates, std::int64_t steps, double unit) {
  // Of very many steps some at a time.
  const std::int64_t rounds = std::min<std::int64_t>(steps, 1000);
  const double each = static_cast<double>(steps) / static_cast<double>(rounds);
  for (std::int64_t round = 0; round < rounds; ++round) {
    const double share_here = share(unit), follows = kFollows * (kRoundings * unit + smooth_);
    for (const Update& u : updates) {
      Moved& m = moved_[u.name];
      const double length = std::max(u.length, m.last);
      m.apart += each * (share_here + u.apart) * length;
      m.length += each * length;
      m.reach += each * u.reach;
      m.smooth += each * follows * length;
      // In the first step a rule that divides knows nothing but this gradient.
      m.pushed += (m.steps == 0 ? share_here : each * follows) * length;
      m.steps += each;
      m.last = u.length;
    }
    if (rounds > 1) measure();
  }
}

void Drift::begin(const DumpFile& npu, const DumpFile& bench, std::int64_t step) {
  matrices_.clear();
  std::vector<Update> updates;
  for (const Entry& e : npu.entries)
    for (const Record& r : e.records) {
      if (r.part == Part::Parameter && r.shape.size() > 1) matrices_[key(e, r)] = length_of(r);
      if (r.part == Part::Update) updates.push_back({key(e, r), length_of(r), largest_of(r), 0});
    }
  find_same(npu);
  measure();
  if (step_ >= 0 || step <= 0) return;
  move(updates, step, unit_of(npu, bench));
  step_ = step - 1;
  find_same(npu);
  measure();
}

void Drift::end(const std::vector<Compared>& all, std::int64_t step) {
  double unit = 0;
  std::vector<Update> updates;
  for (const Compared& c : all) {
    unit = std::max(unit, compare::unit_of(*c.moment.entry));
    if (!c.records.npu || !c.records.bench || c.records.npu->part != Part::Update) continue;
    const Record &n = *c.records.npu, &b = *c.records.bench;
    updates.push_back({key(*c.moment.entry->npu, n), std::max(length_of(n), length_of(b)),
                       std::max(largest_of(n), largest_of(b)),
                       std::isfinite(c.difference.size) ? 2 * c.difference.size : 1});
  }
  // Steps that were not looked at moved as much as those around them.
  move(updates, std::max<std::int64_t>(1, step - step_), unit);
  step_ = step;
}

}  // namespace aloft::compare
