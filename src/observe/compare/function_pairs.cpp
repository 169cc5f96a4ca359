#include "observe/compare/function_pairs.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/compare/alike_calls.h"
#include "observe/compare/function_names.h"
#include "observe/compare/last_micro_batch.h"
#include "observe/compare/regrouped_sums.h"

namespace aloft::compare {

namespace {

// The work of a table for the longest common row; beyond it calls are paired by name alone.
constexpr std::size_t kLargestTable = 25'000'000;

using Names = std::map<std::string, std::string>;
using PartnerOf = std::map<const Entry*, const Entry*>;

Calls calls_in(const DumpFile& dump, Direction direction) {
  Calls calls;
  for (const Entry& e : dump.entries)
    if (!e.is_module && e.direction == direction) calls.push_back(&e);
  return calls;
}

using Regrouped = std::set<const Entry*>;

// Pairs sums of the same terms in another order, and leaves neither these nor their parts.
void take_regrouped(Calls& npu, Calls& bench, PartnerOf& partners, Regrouped& regrouped) {
  const RegroupedSums sums = regrouped_sums(npu, bench);
  std::set<const Entry*> done = sums.inner;
  for (const auto& [a, b] : sums.pairs) {
    partners[a] = b;
    regrouped.insert(a);
    done.insert({a, b});
  }
  for (Calls* const calls : {&npu, &bench})
    std::erase_if(*calls, [&](const Entry* e) { return done.contains(e); });
}

// Pairs the calls of each class, and then, among those that are left of a place and name, those of
// other sizes, where both runs have as many.
void pair_classes(CallClasses classes, PartnerOf& partners, Regrouped& regrouped) {
  std::map<std::pair<std::string, std::string>, std::pair<Calls, Calls>> left;
  for (auto& [of, calls] : classes) {
    take_regrouped(calls.first, calls.second, partners, regrouped);
    std::map<const Entry*, const Entry*> own;
    for (const auto& [a, b] : pair_alike(calls.first, calls.second)) {
      own[a] = b, own[b] = a;
      if (!hand_on_others(*a, *b)) partners[a] = b;
    }
    auto& [ours, theirs] = left[{std::get<0>(of), std::get<1>(of)}];
    for (const Entry* e : calls.first)
      if (!own.contains(e)) ours.push_back(e);
    for (const Entry* e : calls.second)
      if (!own.contains(e)) theirs.push_back(e);
  }
  for (auto& [of, calls] : left) {
    auto& [ours, theirs] = calls;
    if (ours.size() != theirs.size()) continue;
    for (Calls* all : {&ours, &theirs})
      std::ranges::stable_sort(*all, {}, [](const Entry* e) { return e->number(); });
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const bool has_tap = !ours[i]->tap.empty();
      if (has_tap != !theirs[i]->tap.empty()) continue;  // programs that cut their work otherwise
      if (!has_tap || ours[i]->number() == theirs[i]->number()) partners[ours[i]] = theirs[i];
    }
  }
}

// The nearest module around a function that both runs have, as the second calls it; `names`: what
// it calls them, of the modules of the function's run.
std::optional<std::string> home_of(const Entry& function, const Names& names) {
  std::optional<std::string> path = function.caller;
  if (!path || names.empty()) return path;  // a dump of functions alone has no modules
  for (;;) {
    if (const auto it = names.find(*path); it != names.end()) return it->second;
    const std::size_t dot = path->rfind('.');
    if (dot == std::string::npos) return "";
    path->resize(dot);
  }
}

// Whether most of the calls say where they are made.
bool know_their_homes(const Calls& calls) {
  const auto known =
      std::ranges::count_if(calls, [](const Entry* e) { return e->caller.has_value(); });
  return !calls.empty() && 2 * static_cast<std::size_t>(known) >= calls.size();
}

// Whether calls of the backward pass are ops that it is made of, as Aloft's dumps have them: an add
// of two gradients there is no gradient of an add. Dumps of others have those, under the function.
bool are_ops(const Calls& calls) {
  return std::ranges::any_of(calls, [](const Entry* e) { return !e->tap.empty(); });
}

// Whether a dump is msprobe's, whose calls of the backward pass give what the last step in them
// gives: neither how many elements that are nor its figures say which call it is.
bool are_last_steps(const Calls& calls) {
  return std::ranges::any_of(calls, [](const Entry* e) {
    return std::ranges::any_of(e->records,
                               [](const Record& r) { return r.is_tensor && !r.is_exact; });
  });
}

// Pairs the backward calls of functions whose forward calls are a pair, and takes them out of the
// lists.
void pair_behind_forward(const DumpFile& npu, Calls& ours, Calls& theirs, PartnerOf& partners) {
  using Call = std::pair<std::string_view, std::int64_t>;
  std::map<Call, const Entry*> forward, backward;
  for (const Entry* e : calls_in(npu, Direction::Forward)) forward[{e->path, e->call}] = e;
  for (const Entry* e : theirs) backward[{e->path, e->call}] = e;
  std::set<const Entry*> taken;
  for (const Entry* e : ours) {
    const auto own = forward.find({e->path, e->call});
    const auto other = own == forward.end() ? partners.end() : partners.find(own->second);
    if (other == partners.end()) continue;
    const auto it = backward.find({other->second->path, other->second->call});
    if (it != backward.end()) partners[e] = it->second, taken.insert({e, it->second});
  }
  for (Calls* all : {&ours, &theirs})
    std::erase_if(*all, [&](const Entry* e) { return taken.contains(e); });
}

void pair_by_name(const Calls& ours, const Calls& theirs, std::int64_t micro_batches,
                  PartnerOf& partners, Regrouped& regrouped) {
  CallClasses classes;
  for (const Entry* e : ours) classes[{"", e->path, given_elements(*e)}].first.push_back(e);
  for (const Entry* e : theirs) classes[{"", e->path, given_elements(*e)}].second.push_back(e);
  keep_last_micro_batch(classes, micro_batches);
  pair_classes(std::move(classes), partners, regrouped);
}

// Such sums, whoever makes them.
void take_regrouped_everywhere(Calls& ours, Calls& theirs, PartnerOf& partners,
                               Regrouped& regrouped) {
  std::map<std::pair<std::string, double>, std::pair<Calls, Calls>> classes;
  const auto of = [&](const Entry* e) -> auto& {
    return classes[{plain_function(*e), given_elements(*e)}];
  };
  for (const Entry* e : ours) of(e).first.push_back(e);
  for (const Entry* e : theirs) of(e).second.push_back(e);
  std::set<const Entry*> left;
  for (auto& [name, calls] : classes) {
    take_regrouped(calls.first, calls.second, partners, regrouped);
    left.insert(calls.first.begin(), calls.first.end());
    left.insert(calls.second.begin(), calls.second.end());
  }
  for (Calls* const calls : {&ours, &theirs})
    std::erase_if(*calls, [&](const Entry* e) { return !left.contains(e); });
}

// The longest rows of calls that do the same, in the same order.
void pair_rows(Calls ours, Calls theirs, PartnerOf& partners, Regrouped& regrouped) {
  take_regrouped_everywhere(ours, theirs, partners, regrouped);
  struct Call {
    std::string name;
    double elements;
    bool operator==(const Call&) const = default;
  };
  const auto plain = [](const Calls& calls) {
    std::vector<Call> all;
    for (const Entry* e : calls) all.push_back({plain_function(*e), given_elements(*e)});
    return all;
  };
  const auto a = plain(ours), b = plain(theirs);
  // longest[i][j]: of the rows that begin at i and j.
  const std::size_t width = b.size() + 1;
  std::vector<std::uint32_t> longest((a.size() + 1) * width, 0);
  for (std::size_t i = a.size(); i-- > 0;)
    for (std::size_t j = b.size(); j-- > 0;)
      longest[i * width + j] =
          a[i] == b[j] ? longest[(i + 1) * width + j + 1] + 1
                       : std::max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
  PartnerOf row;
  for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i] == b[j])
      row[ours[i++]] = theirs[j++];
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1])
      ++i;
    else
      ++j;
  }
  // The same calls may stand elsewhere in the row.
  struct Alike {
    CallPairs pairs;
    Calls npu, bench;
  };
  std::map<std::pair<std::string, double>, Alike> alike;
  std::set<const Entry*> taken;
  for (std::size_t i = 0; i < a.size(); ++i) {
    Alike& of = alike[{a[i].name, a[i].elements}];
    const auto it = row.find(ours[i]);
    if (it == row.end())
      of.npu.push_back(ours[i]);
    else
      of.pairs.emplace_back(*it), taken.insert(it->second);
  }
  for (std::size_t j = 0; j < b.size(); ++j)
    if (!taken.contains(theirs[j])) alike[{b[j].name, b[j].elements}].bench.push_back(theirs[j]);
  for (auto& [name, of] : alike) {
    exchange_alike(of.pairs, of.npu, of.bench);
    std::erase_if(of.pairs, [](const auto& p) { return hand_on_others(*p.first, *p.second); });
    partners.insert(of.pairs.begin(), of.pairs.end());
  }
}

// What an attention of Aloft's holds inside, and what another program has for it, whatever it calls
// that: what its softmax takes, by any call of the same module that gives just that.
const Entry* scores_of(const Entry& softmax, const Calls& calls) {
  const auto taken = std::ranges::find_if(
      softmax.records, [](const Record& r) { return r.part == Part::Input && r.is_tensor; });
  if (taken == softmax.records.end()) return nullptr;
  const Entry* nearest = nullptr;
  for (const Entry* e : calls) {
    if (e == &softmax) break;
    if (e->caller == softmax.caller && std::ranges::any_of(e->records, [&](const Record& r) {
          return r.part == Part::Output && r.shape == taken->shape && is_same_value(r, *taken);
        }))
      nearest = e;
  }
  return nearest;
}

// The scores of attentions whose probabilities have a partner.
void pair_scores(const Calls& ours, const Calls& theirs, PartnerOf& partners) {
  constexpr std::string_view kScores = "attention_scores",
                             kProbabilities = "attention_probabilities";
  std::set<const Entry*> taken;
  for (const auto& [n, b] : partners) taken.insert(b);
  const PartnerOf before = partners;
  for (const auto& [n, b] : before) {
    const bool is_npu = n->kind == kProbabilities;
    if (is_npu == (b->kind == kProbabilities)) continue;
    const Entry &inside = is_npu ? *n : *b, &softmax = is_npu ? *b : *n;
    const Calls& own = is_npu ? ours : theirs;
    const auto scores = std::ranges::find_if(own, [&](const Entry* e) {
      return e->kind == kScores && e->caller == inside.caller && e->number() == inside.number();
    });
    const Entry* const other = scores_of(softmax, is_npu ? theirs : ours);
    if (scores == own.end() || !other) continue;
    const Entry *const a = is_npu ? *scores : other, *const c = is_npu ? other : *scores;
    if (given_elements(*a) != given_elements(*c) || partners.contains(a) || taken.contains(c))
      continue;
    partners.emplace(a, c), taken.insert(c);
  }
}

// Of functions whose calls are no pair in the forward pass, their gradients are none.
void drop_gradients_of_others(const Calls& npu, const Calls& bench, PartnerOf& partners) {
  const auto stem = [](const Entry* e) { return e->path + "." + std::to_string(e->call); };
  std::map<std::string, const Entry*> ours, theirs;
  for (const Entry* e : npu) ours.emplace(stem(e), e);
  for (const Entry* e : bench) theirs.emplace(stem(e), e);
  std::erase_if(partners, [&](const auto& pair) {
    const auto& [n, b] = pair;
    // Ops of a backward pass are no gradients of calls, and have numbers of their own.
    if (n->direction != Direction::Backward || !n->tap.empty() || !b->tap.empty()) return false;
    const auto one = ours.find(stem(n)), other = theirs.find(stem(b));
    return one != ours.end() && other != theirs.end() &&
           hand_on_others(*one->second, *other->second);
  });
}

}  // namespace

FunctionPairs::FunctionPairs(const DumpFile& npu, const DumpFile& bench, const Names& modules) {
  Names same;  // the second run calls its modules what it calls them
  for (const auto& [n, b] : modules) same.emplace(b, b);
  std::map<std::string_view, const Entry*> named;
  for (const Entry& b : bench.entries)
    if (!b.is_module) named.emplace(b.name, &b);
  const std::int64_t micro_batches =
      std::max(npu.training.micro_batches, bench.training.micro_batches);
  for (const Direction direction : {Direction::Forward, Direction::Backward}) {
    Calls ours = calls_in(npu, direction), theirs = calls_in(bench, direction);
    if (direction == Direction::Backward && are_ops(ours) != are_ops(theirs)) continue;
    if (direction == Direction::Backward && are_last_steps(ours) != are_last_steps(theirs))
      pair_behind_forward(npu, ours, theirs, partners_);
    if (know_their_homes(ours) && know_their_homes(theirs)) {
      CallClasses classes;
      const auto class_of = [](const Entry* e, const Names& names) {
        return CallClass{home_of(*e, names).value_or(""), plain_function(*e), given_elements(*e)};
      };
      for (const Entry* e : ours) classes[class_of(e, modules)].first.push_back(e);
      for (const Entry* e : theirs) classes[class_of(e, same)].second.push_back(e);
      keep_last_micro_batch(classes, micro_batches);
      pair_classes(std::move(classes), partners_, regrouped_);
      if (direction == Direction::Forward) pair_scores(ours, theirs, partners_);
      continue;
    }
    const auto known =
        std::ranges::count_if(ours, [&](auto* e) { return named.contains(e->name); });
    const bool is_named_alike = 2 * static_cast<std::size_t>(known) >= ours.size();
    if (is_named_alike || ours.size() * theirs.size() > kLargestTable)
      pair_by_name(ours, theirs, micro_batches, partners_, regrouped_);
    else
      pair_rows(ours, theirs, partners_, regrouped_);
  }
  drop_gradients_of_others(calls_in(npu, Direction::Forward), calls_in(bench, Direction::Forward),
                           partners_);
}

const Entry* FunctionPairs::partner_of(const Entry& npu) const {
  const auto it = partners_.find(&npu);
  return it == partners_.end() ? nullptr : it->second;
}

}  // namespace aloft::compare
