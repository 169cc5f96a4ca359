#include "observe/compare/operand_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "observe/compare/function_names.h"
#include "observe/compare/noise.h"
#include "observe/compare/records_apart.h"

namespace aloft::compare {

namespace {

// Another order is the right one where it fits so much better.
constexpr double kMuchNearer = 0.1;
// What belongs together in two programs is not further apart than that.
constexpr double kAlike = 0.25;
// Of more operands of one size all orders are not tried.
constexpr std::size_t kMostTried = 5;

using Row = std::vector<RecordPair*>;
using Others = std::vector<const Record*>;

double at_most_1(const Record& a, const Record& b) { return std::min(apart(a, b), 1.0); }

// The order of `theirs` in which they are nearest to `ours`, of which there are no more; as they
// stand where no other one is much nearer.
Others nearest(const Row& ours, const Others& theirs) {
  const auto distance = [&](const std::vector<std::size_t>& order) {
    double sum = 0;
    for (std::size_t i = 0; i < ours.size(); ++i)
      sum += at_most_1(*ours[i]->npu, *theirs[order[i]]);
    return sum;
  };
  std::vector<std::size_t> order(theirs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<std::size_t> best = order;
  if (theirs.size() <= kMostTried) {
    // Where the one run lacks an operand, places say nothing.
    double least = (ours.size() < theirs.size() ? 1 : kMuchNearer) * distance(order);
    while (std::ranges::next_permutation(order).found)
      if (const double sum = distance(order); sum < least) least = sum, best = order;
  }
  Others found;
  for (std::size_t i = 0; i < ours.size(); ++i) found.push_back(theirs[best[i]]);
  return found;
}

void put(RecordPair& pair, const Record& bench, std::set<const Record*>& taken) {
  pair.bench = &bench;
  pair.matched_by = pair.npu->own == bench.own ? "name" : "size";
  taken.insert(&bench);
}

// Of one op in two runs of Aloft's.
void pair_by_place(const Row& ours, const Others& theirs, std::set<const Record*>& taken) {
  for (RecordPair* const p : ours)
    for (const Record* const b : theirs)
      if (p->npu->own == b->own && p->npu->elements() == b->elements()) put(*p, *b, taken);
}

// One that stands in either order: also where one run has one of its operands alone.
void pair_in_either_order(const Row& ours, const Others& theirs, std::set<const Record*>& taken) {
  if (ours.size() <= theirs.size()) {
    const Others found = nearest(ours, theirs);
    for (std::size_t i = 0; i < ours.size(); ++i) put(*ours[i], *found[i], taken);
    return;
  }
  for (const Record* const b : theirs) {
    const auto distance = [&](const RecordPair* p) {
      return p->bench ? 2 : at_most_1(*p->npu, *b);
    };
    put(**std::ranges::min_element(ours, {}, distance), *b, taken);
  }
}

// What two runs both lack at a place, or is no tensor in both, such as the tokens of an embedding.
void pair_without_figures(const Entry& bench, std::vector<RecordPair>& pairs,
                          std::set<const Record*>& taken) {
  const auto is_such = [](const Record& r) { return r.part == Part::Input && !r.is_tensor; };
  for (RecordPair& p : pairs) {
    if (!p.npu || p.bench || !is_such(*p.npu)) continue;
    for (const Record& b : bench.records)
      if (is_such(b) && b.own == p.npu->own && !taken.contains(&b)) put(p, b, taken);
  }
}

void pair_alike(const Row& ours, const Others& theirs, std::set<const Record*>& taken) {
  if (ours.size() != theirs.size()) return;
  const Others found = nearest(ours, theirs);
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (ours.size() > 1 && at_most_1(*ours[i]->npu, *found[i]) > kAlike) return;
  for (std::size_t i = 0; i < ours.size(); ++i) put(*ours[i], *found[i], taken);
}

}  // namespace

bool is_of_ops(const Entry& npu, const Entry& bench) {
  return !npu.tap.empty() || !bench.tap.empty();
}

bool is_operand(const Entry& npu, const Entry& bench, const Record& r) {
  return is_of_ops(npu, bench) && r.part == Part::Input;
}

void pair_operands(const Entry& npu, const Entry& bench, std::vector<RecordPair>& pairs,
                   std::set<const Record*>& taken) {
  const auto is_float = [](const Record& r) {
    return r.part == Part::Input && r.is_tensor && unit_of(r.type) > 0;
  };
  std::map<double, std::pair<Row, Others>> sizes;
  Row ours;
  Others theirs;
  for (RecordPair& p : pairs)
    if (p.npu && !p.bench && is_float(*p.npu)) {
      ours.push_back(&p);
      sizes[p.npu->elements()].first.push_back(&p);
    }
  for (const Record& b : bench.records)
    if (!taken.contains(&b) && is_float(b)) {
      theirs.push_back(&b);
      sizes[b.elements()].second.push_back(&b);
    }
  const bool are_ops = !npu.tap.empty() && !bench.tap.empty();
  if (are_ops) pair_without_figures(bench, pairs, taken);
  if (are_ops && !commutes(npu)) return pair_by_place(ours, theirs, taken);
  // Gradients may stand under another scale, so that nothing says which one a run lacks.
  const auto may_pair = [&](const Row& row, const Others& others) {
    return npu.direction == Direction::Forward || row.size() == others.size();
  };
  for (auto& [elements, own] : sizes) {
    if (!may_pair(own.first, own.second)) continue;
    are_ops ? pair_in_either_order(own.first, own.second, taken)
            : pair_alike(own.first, own.second, taken);
  }
}

std::string operand_remark(const std::vector<Compared>& all, const Compared& first) {
  const Entry& e = *first.moment.entry->npu;
  if (e.is_module || !first.records.npu || first.records.npu->part != Part::Output) return "";
  std::string text;
  for (const Compared& c : all) {
    if (&c == &first) break;
    const Record* const r = c.records.npu;
    if (c.moment.entry != first.moment.entry || !r || r->part != Part::Input || !r->norm.number)
      continue;
    text += fmt::format("{}{:.4g} ({})", text.empty() ? "" : ", ", *r->norm.number, r->own);
  }
  if (text.empty()) return "";
  return (e.direction == Direction::Forward ? "; what it takes agrees: Norm "
                                            : "; the gradients that reach it agree: Norm ") +
         text;
}

}  // namespace aloft::compare
