#include "observe/compare/regrouped_sums.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "observe/compare/function_names.h"
#include "observe/compare/records_apart.h"

namespace aloft::compare {

namespace {

// Two runs in other types have a term alike to that; two terms of a sum are further apart.
constexpr double kAlike = 0.02;
// The terms of longer sums are not all looked at.
constexpr std::size_t kMostInner = 8;
// Of more calls of one kind, as in a dump that has no modules, each is not held against each.
constexpr std::size_t kMostCalls = 256;

bool are_as_many(const Record& a, const Record& b) { return a.elements() == b.elements(); }

struct Term {
  const Record* value;
  const Entry* made_by;  // null: by none of the calls
};
using Terms = std::vector<Term>;

// The calls of a run that add two tensors of the size of their sum, and what they take.
class Sums {
 public:
  explicit Sums(Calls calls) {
    std::ranges::stable_sort(calls, {}, [](const Entry* e) { return e->number(); });
    for (const Entry* e : calls) {
      const Record* given = nullptr;
      std::vector<const Record*> taken;
      for (const Record& r : e->records) {
        if (!has_float_norm(r)) continue;
        if (r.part == Part::Input) taken.push_back(&r);
        if (r.part == Part::Output && !given) given = &r;
      }
      const auto is_whole = [&](const Record* r) { return r->elements() == given->elements(); };
      if (!given || taken.size() != 2 || !std::ranges::all_of(taken, is_whole)) continue;
      terms_[e] = {made(*taken[0]), made(*taken[1])};
      order_.push_back(e), given_.push_back(given);
    }
  }
  const Calls& calls() const { return order_; }
  const Terms& of(const Entry* sum) const { return terms_.at(sum); }
  std::size_t place(const Entry* sum) const {
    return static_cast<std::size_t>(std::ranges::find(order_, sum) - order_.begin());
  }

 private:
  // By which of the calls so far.
  Term made(const Record& taken) const {
    for (std::size_t i = order_.size(); i-- > 0;) {
      // What a call gives and the next one takes is the same, but for a cast.
      if (are_as_many(taken, *given_[i]) && is_cast_of(taken, *given_[i]))
        return {&taken, order_[i]};
    }
    return {&taken, nullptr};
  }

  Calls order_;
  std::vector<const Record*> given_;
  std::map<const Entry*, Terms> terms_;
};

// Leaves of two lists what is in one of them alone.
void drop_common(Terms& a, Terms& b) {
  std::erase_if(a, [&](const Term& term) {
    const auto it = std::ranges::find_if(b, [&](const Term& other) {
      return are_as_many(*term.value, *other.value) && apart(*term.value, *other.value) <= kAlike;
    });
    if (it == b.end()) return false;
    b.erase(it);
    return true;
  });
}

bool take_the_same(const Terms& a, const Terms& b) {
  Terms ours = a, theirs = b;
  drop_common(ours, theirs);
  return ours.empty() && theirs.empty();
}

// Puts in the place of the last term that a call makes what that takes; false: none makes one.
bool expand(Terms& terms, const Sums& sums, Calls& inner) {
  auto last = terms.end();
  for (auto it = terms.begin(); it != terms.end(); ++it)
    if (it->made_by && (last == terms.end() || sums.place(it->made_by) > sums.place(last->made_by)))
      last = it;
  if (last == terms.end()) return false;
  const Entry* const call = last->made_by;
  terms.erase(last);
  const Terms& more = sums.of(call);
  terms.insert(terms.end(), more.begin(), more.end());
  inner.push_back(call);
  return true;
}

// What two calls add on the way, in either run, where both are sums of the same terms.
std::optional<std::array<Calls, 2>> inner_of(const Entry* a, const Entry* b, const Sums& npu,
                                             const Sums& bench) {
  Terms ours = npu.of(a), theirs = bench.of(b);
  std::array<Calls, 2> inner;
  for (std::size_t i = 0; i <= kMostInner; ++i) {
    drop_common(ours, theirs);
    if (ours.empty() && theirs.empty()) return inner;
    // A run with fewer terms has more of them in one.
    const bool is_npu_first = ours.size() <= theirs.size();
    const auto expand_npu = [&] { return expand(ours, npu, inner[0]); };
    const auto expand_bench = [&] { return expand(theirs, bench, inner[1]); };
    if (is_npu_first ? !expand_npu() && !expand_bench() : !expand_bench() && !expand_npu())
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace

RegroupedSums regrouped_sums(const Calls& npu, const Calls& bench) {
  RegroupedSums found;
  if (npu.empty() || bench.empty() || npu.size() + bench.size() < 3 || npu.size() > kMostCalls ||
      bench.size() > kMostCalls || plain_function(*npu[0]) != "add")
    return found;
  const Sums ours(npu), theirs(bench);
  std::set<const Entry*> same;  // those that take what a call of the other run takes
  for (const Entry* a : ours.calls())
    for (const Entry* b : theirs.calls())
      if (take_the_same(ours.of(a), theirs.of(b))) same.insert({a, b});
  std::set<const Entry*> paired;
  for (const Entry* a : ours.calls()) {
    if (same.contains(a)) continue;
    for (const Entry* b : theirs.calls()) {
      if (same.contains(b) || paired.contains(b)) continue;
      const auto inner = inner_of(a, b, ours, theirs);
      if (!inner) continue;
      Calls others;  // in one run alone
      for (const Calls& calls : *inner)
        std::ranges::copy_if(calls, std::back_inserter(others),
                             [&](const Entry* e) { return !same.contains(e); });
      if (others.empty()) continue;
      found.pairs.emplace_back(a, b);
      paired.insert({a, b});
      found.inner.insert(others.begin(), others.end());
      break;
    }
  }
  std::erase_if(found.inner, [&](const Entry* e) { return paired.contains(e); });
  return found;
}

}  // namespace aloft::compare
