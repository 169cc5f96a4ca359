#include "observe/compare/alike_calls.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "observe/compare/function_names.h"
#include "observe/compare/records_apart.h"

namespace aloft::compare {

namespace {

// Two runs in other types have fed a call alike up to here; what another call of the same shapes is
// fed is further off.
constexpr double kFedAlike = 0.02;
// And what calls give that may be the same is not further apart than that.
constexpr double kGivenAlike = 0.25;
// Of calls that give nearly the same those with one number are taken first, unless one of them has
// another that gives the same, or is much nearer.
constexpr double kSameNumber = 0.05;
// What is the same, beside what is not.
constexpr double kMuchNearer = 0.1;
// The work of a table of two rows of calls.
constexpr std::size_t kLargestTable = 4'000'000;

using Found = CallPairs;

std::vector<const Record*> floats_of(const Entry& call, Part part) {
  std::vector<const Record*> all;
  for (const Record& r : call.records)
    if (r.part == part && has_float_norm(r)) all.push_back(&r);
  return all;
}

// Nothing where one of the two has no record of what it was fed, or, as an op of Aloft's, perhaps
// not of all.
std::optional<bool> are_fed_alike(const Entry& a, const Entry& b) {
  if (!a.tap.empty() || !b.tap.empty()) return std::nullopt;
  const auto ours = floats_of(a, Part::Input), theirs = floats_of(b, Part::Input);
  if (ours.empty() || ours.size() != theirs.size()) return std::nullopt;
  const auto are_alike = [&](bool exchanged) {
    for (std::size_t i = 0; i < ours.size(); ++i)
      if (!(apart(*ours[i], *theirs[exchanged ? 1 - i : i]) <= kFedAlike)) return false;
    return true;
  };
  return are_alike(false) || (ours.size() == 2 && commutes(a) && are_alike(true));
}

// 1 of two calls that give the same, 0 of what can be no pair.
double likeness(const Entry& a, const Entry& b) {
  const auto ours = floats_of(a, Part::Output), theirs = floats_of(b, Part::Output);
  if (ours.empty() || theirs.empty()) return 0;
  return std::max(0.0, 1 - apart(*ours[0], *theirs[0]) / kGivenAlike);
}

// Takes from both rows the calls that were fed the same; of several the one with the same place.
void take_fed_alike(Calls& npu, Calls& bench, Found& pairs) {
  std::set<const Entry*> taken;
  for (std::size_t i = 0; i < npu.size(); ++i) {
    const auto fits = [&](const Entry* b) {
      return !taken.contains(b) && are_fed_alike(*npu[i], *b).value_or(false);
    };
    auto it = bench.begin() + static_cast<std::ptrdiff_t>(std::min(i, bench.size()));
    if (it == bench.end() || !fits(*it)) it = std::ranges::find_if(bench, fits);
    if (it == bench.end()) continue;
    pairs.emplace_back(npu[i], *it);
    taken.insert({npu[i], *it});
  }
  const auto is_taken = [&](const Entry* e) { return taken.contains(e); };
  std::erase_if(npu, is_taken), std::erase_if(bench, is_taken);
}

bool have_same_numbers(const Calls& npu, const Calls& bench) {
  return std::ranges::equal(
      npu, bench, [](const Entry* a, const Entry* b) { return a->number() == b->number(); });
}

// How far what two calls give is apart.
double given_apart(const Entry& a, const Entry& b) {
  const auto ours = floats_of(a, Part::Output), theirs = floats_of(b, Part::Output);
  if (ours.empty() || ours.size() != theirs.size()) return 1;
  double most = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) most = std::max(most, apart(*ours[i], *theirs[i]));
  return most;
}

// Takes from both rows, in order, those calls whose likeness is the most in all.
void take_given_alike(Calls& npu, Calls& bench, Found& pairs) {
  const std::size_t width = bench.size() + 1;
  if ((npu.size() + 1) * width > kLargestTable) return;
  std::vector<double> alike(npu.size() * width, 0), most((npu.size() + 1) * width, 0);
  std::vector<double> ours(npu.size(), 0), theirs(bench.size(), 0);  // the most of each call
  for (std::size_t i = 0; i < npu.size(); ++i)
    for (std::size_t j = 0; j < bench.size(); ++j) {
      const double own = alike[i * width + j] = likeness(*npu[i], *bench[j]);
      ours[i] = std::max(ours[i], own), theirs[j] = std::max(theirs[j], own);
    }
  constexpr double kSure = 1 - kFedAlike / kGivenAlike;
  const auto is_near = [](double own, double nearest) {
    return nearest < kSure || kMuchNearer * (1 - own) <= 1 - nearest;
  };
  for (std::size_t i = npu.size(); i-- > 0;)
    for (std::size_t j = bench.size(); j-- > 0;) {
      double& own = alike[i * width + j];
      if (own > 0 && npu[i]->number() == bench[j]->number() && is_near(own, ours[i]) &&
          is_near(own, theirs[j]))
        own += kSameNumber;
      most[i * width + j] = std::max({most[(i + 1) * width + j], most[i * width + j + 1],
                                      own > 0 ? own + most[(i + 1) * width + j + 1] : 0});
    }
  Calls rest, others;
  std::size_t i = 0, j = 0;
  while (i < npu.size() && j < bench.size()) {
    const double own = alike[i * width + j], here = most[i * width + j];
    if (own > 0 && here == own + most[(i + 1) * width + j + 1])
      pairs.emplace_back(npu[i++], bench[j++]);
    else if (here == most[(i + 1) * width + j])
      rest.push_back(npu[i++]);
    else
      others.push_back(bench[j++]);
  }
  rest.insert(rest.end(), npu.begin() + static_cast<std::ptrdiff_t>(i), npu.end());
  others.insert(others.end(), bench.begin() + static_cast<std::ptrdiff_t>(j), bench.end());
  npu = std::move(rest), bench = std::move(others);
}

// What gives something else is known by its number, counted from the nearest call before it (else
// behind it) that is known: one of the two runs may have calls more before both.
void take_by_neighbours(const Calls& npu, Calls& bench, Found& pairs) {
  std::map<std::int64_t, std::int64_t> known;  // numbers, by the first run's
  for (const auto& [a, b] : pairs) known.emplace(a->number(), b->number());
  for (const Entry* a : npu) {
    auto near = known.upper_bound(a->number());
    if (near != known.begin()) --near;
    std::pair<std::int64_t, std::int64_t> from{0, 0};
    if (near != known.end()) from = *near;
    const auto it = std::ranges::find_if(bench, [&](const Entry* b) {
      return b->number() - from.second == a->number() - from.first;
    });
    if (it == bench.end()) continue;
    pairs.emplace_back(a, *it);
    bench.erase(it);
  }
}

}  // namespace

bool hand_on_others(const Entry& a, const Entry& b) {
  // Gradients may be those of a scaled loss.
  if (a.direction != Direction::Forward || !moves_values(a) || !moves_values(b)) return false;
  const auto ours = floats_of(a, Part::Input), theirs = floats_of(b, Part::Input);
  if (ours.size() != 1 || theirs.size() != 1) return false;
  const double elements = given_elements(a);
  return ours[0]->elements() == elements && theirs[0]->elements() == elements &&
         apart(*ours[0], *theirs[0]) > kGivenAlike;
}

double given_elements(const Entry& call) {
  double most = -1;
  for (const Record& r : call.records)
    if (r.part == Part::Output && r.is_tensor) most = std::max(most, r.elements());
  return most;
}

void exchange_alike(CallPairs& pairs, const Calls& npu, const Calls& bench) {
  struct Off {
    const Entry* call;
    double size;  // how far it is from its partner; 1 where it has none
  };
  std::vector<Off> ours, theirs;
  std::map<const Entry*, const Entry*> holders;  // of calls of the second run that are off
  for (const auto& [a, b] : pairs)
    if (const double size = given_apart(*a, *b); size > 0) {
      ours.push_back({a, size}), theirs.push_back({b, size});
      holders.emplace(b, a);
    }
  for (const Entry* a : npu) ours.push_back({a, 1});
  for (const Entry* b : bench) theirs.push_back({b, 1});
  if (ours.empty() || theirs.size() > kLargestTable / ours.size()) return;
  std::vector<std::tuple<double, std::size_t, std::size_t>> nearer;
  for (std::size_t i = 0; i < ours.size(); ++i)
    for (std::size_t k = 0; k < theirs.size(); ++k) {
      const double size = given_apart(*ours[i].call, *theirs[k].call);
      if (size <= kFedAlike && size <= kMuchNearer * std::min(ours[i].size, theirs[k].size))
        nearer.emplace_back(size, i, k);
    }
  std::ranges::sort(nearer);
  std::map<const Entry*, const Entry*> to;
  std::set<std::size_t> taken;
  for (const auto& [size, i, k] : nearer)
    if (!to.contains(ours[i].call) && taken.insert(k).second)
      to.emplace(ours[i].call, theirs[k].call);
  // Nothing takes the partner of a call that has found no other.
  const auto is_held = [&](const auto& one) {
    const auto holder = holders.find(one.second);
    return holder != holders.end() && !to.contains(holder->second);
  };
  while (std::erase_if(to, is_held) > 0) continue;
  std::set<const Entry*> found;
  for (const auto& [call, partner] : to) found.insert(partner);
  Calls left;  // whose partner has found another
  for (const auto& [call, partner] : pairs)
    if (to.contains(call) && !found.contains(partner)) left.push_back(partner);
  std::erase_if(pairs, [&](const auto& pair) { return to.contains(pair.first); });
  pairs.insert(pairs.end(), to.begin(), to.end());
  // A mistake gives what no other call does: it is what is left.
  auto next = left.begin();
  for (const Entry* call : npu)
    if (!to.contains(call) && next != left.end()) pairs.emplace_back(call, *next++);
}

CallPairs pair_alike(Calls npu, Calls bench) {
  Found pairs;
  const auto by_number = [](Calls& calls) {
    std::ranges::stable_sort(calls, {}, [](const Entry* e) { return e->number(); });
  };
  by_number(npu), by_number(bench);
  const bool are_clear = npu.size() == 1 && bench.size() == 1;
  if (!are_clear && npu.size() * bench.size() <= kLargestTable) take_fed_alike(npu, bench, pairs);
  const auto has_tap = [](const Entry* e) { return !e->tap.empty(); };
  // Numbers of taps count at one place alone, so that other numbers are other calls; those of all
  // calls of a run say less, and as many calls are the same in order.
  const bool are_counted_there =
      std::ranges::all_of(npu, has_tap) && std::ranges::all_of(bench, has_tap);
  if (are_counted_there ? have_same_numbers(npu, bench) : npu.size() == bench.size()) {
    Found by_number;
    for (std::size_t i = 0; i < npu.size(); ++i) by_number.emplace_back(npu[i], bench[i]);
    exchange_alike(by_number, {}, {});
    pairs.insert(pairs.end(), by_number.begin(), by_number.end());
    return pairs;
  }
  take_given_alike(npu, bench, pairs);
  take_by_neighbours(npu, bench, pairs);
  return pairs;
}

}  // namespace aloft::compare
