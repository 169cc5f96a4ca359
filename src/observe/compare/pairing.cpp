#include "observe/compare/pairing.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "observe/compare/function_pairs.h"
#include "observe/compare/fused_modules.h"
#include "observe/compare/module_tree.h"

namespace aloft::compare {

namespace {

// Frameworks name the same parameters otherwise.
std::string_view plain_parameter(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"gamma", "weight"}, {"beta", "bias"}, {"embedding_table", "weight"}};
  for (const auto& [theirs, plain] : kNames)
    if (name == theirs) return plain;
  return name;
}

bool is_named(Part part) {
  return part == Part::Parameter || part == Part::Gradient || part == Part::Update;
}

bool is_float(const Record& r) { return lower(r.type).find("float") != std::string::npos; }

// Pairs the records of two calls: named ones by name, tensors of one kind in order, others by their
// place.
std::vector<RecordPair> pair_records(const Entry& npu, const Entry& bench) {
  std::vector<RecordPair> pairs;
  std::set<const Record*> taken;
  const auto pair_first = [&](RecordPair& pair, const auto& fits) {
    if (pair.bench) return;
    for (const Record& b : bench.records) {
      if (b.part != pair.npu->part || taken.contains(&b) || !fits(*pair.npu, b)) continue;
      pair.bench = &b;
      taken.insert(&b);
      return;
    }
  };
  for (const Record& r : npu.records) pairs.push_back({&r, nullptr});
  for (RecordPair& p : pairs)  // what has the same place, and may be the same there
    pair_first(p, [](const Record& n, const Record& b) {
      if (is_named(n.part)) return plain_parameter(n.own) == plain_parameter(b.own);
      return n.own == b.own && n.is_tensor == b.is_tensor &&
             (!n.is_tensor || (n.elements() == b.elements() && is_float(n) == is_float(b)));
    });
  for (RecordPair& p : pairs)  // tensors elsewhere in the list
    pair_first(p, [](const Record& n, const Record& b) {
      return !is_named(n.part) && n.is_tensor && b.is_tensor && is_float(n) == is_float(b) &&
             n.elements() == b.elements();
    });
  for (RecordPair& p : pairs)  // of another size, at the same place
    pair_first(p, [](const Record& n, const Record& b) {
      return !is_named(n.part) && n.own == b.own && n.is_tensor == b.is_tensor &&
             is_float(n) == is_float(b);
    });
  for (const Record& b : bench.records)
    if (!taken.contains(&b)) pairs.push_back({nullptr, &b});
  return pairs;
}

using CallKey = std::tuple<std::string_view, Direction, std::int64_t>;

std::map<CallKey, const Entry*> calls_of(const std::vector<const Entry*>& entries) {
  std::map<CallKey, const Entry*> calls;
  for (const Entry* e : entries)
    if (e->is_module) calls.emplace(CallKey(e->path, e->direction, e->call), e);
  return calls;
}

std::map<std::string_view, std::int64_t> numbers_of_calls(const DumpFile& dump) {
  std::map<std::string_view, std::int64_t> numbers;
  for (const Entry& e : dump.entries)
    if (e.is_module && e.direction == Direction::Forward)
      numbers[e.path] = std::max(numbers[e.path], e.call + 1);
  return numbers;
}

// Which call of the second run a call of the first is, of paths that are paired.
class CallNumbers {
 public:
  CallNumbers(const DumpFile& npu, const DumpFile& bench)
      : parts_(std::max(npu.training.micro_batches, bench.training.micro_batches)),
        npu_(numbers_of_calls(npu)),
        bench_(numbers_of_calls(bench)) {}

  std::int64_t other(const Entry& npu, std::string_view bench_path) const {
    const bool is_call =
        npu.direction == Direction::Forward || npu.direction == Direction::Backward;
    const auto ours = npu_.find(npu.path), theirs = bench_.find(bench_path);
    if (!is_call || parts_ == 1 || ours == npu_.end() || theirs == bench_.end()) return npu.call;
    const bool is_multiple =
        ours->second * parts_ == theirs->second || theirs->second * parts_ == ours->second;
    return is_multiple ? npu.call + theirs->second - ours->second : npu.call;
  }

 private:
  std::int64_t parts_;
  std::map<std::string_view, std::int64_t> npu_, bench_;
};

// Pairs of calls of one module of a run and several of the other.
void add_fused(const DumpFile& npu, const DumpFile& bench, const ModuleNode& ours,
               const ModuleNode& theirs, const std::map<std::string, std::string>& modules,
               Pairs& pairs) {
  for (const bool one_in_npu : {true, false}) {
    const DumpFile &one = one_in_npu ? npu : bench, &many = one_in_npu ? bench : npu;
    for (const auto& [path, paths] : fused_modules(ours, theirs, modules, one_in_npu)) {
      const auto joined = calls_as_one(many, paths, pairs.made);
      const std::map<CallKey, const Entry*> calls = calls_of(joined);
      for (const Entry& e : one.entries) {
        if (!e.is_module || e.path != path) continue;
        const auto it = calls.find(CallKey(paths[0], e.direction, e.call));
        if (it == calls.end()) continue;
        EntryPair pair{one_in_npu ? &e : it->second, one_in_npu ? it->second : &e, {}};
        pair.records = pair_records(*pair.npu, *pair.bench);
        // Behind what it is made of, in place of what has no partner.
        const auto at = std::ranges::find_if(pairs.entries, [&](const EntryPair& p) {
          return one_in_npu ? p.npu == &e
                            : p.npu->path == paths.back() && p.npu->direction == e.direction &&
                                  p.npu->call == e.call;
        });
        if (one_in_npu && at != pairs.entries.end())
          *at = std::move(pair);
        else
          pairs.entries.insert(at == pairs.entries.end() ? at : std::next(at), std::move(pair));
      }
      // What is a part of a pair has its partner.
      std::erase_if(pairs.only_bench, [&](const Entry* b) {
        return one_in_npu ? b->is_module && std::ranges::find(paths, b->path) != paths.end()
                          : b->path == path;
      });
    }
  }
}

}  // namespace

bool RecordPair::has_same_size() const {
  return npu && bench && npu->elements() == bench->elements();
}

Pairs pair_dumps(const DumpFile& npu, const DumpFile& bench, const NameMap& map) {
  const auto ours = module_tree(npu), theirs = module_tree(bench);
  const auto modules = pair_modules(*ours, *theirs, map);
  const FunctionPairs functions(npu, bench);
  const CallNumbers numbers(npu, bench);
  std::map<CallKey, const Entry*> called;
  std::map<std::string_view, const Entry*> named;
  for (const Entry& b : bench.entries) {
    if (b.is_module) called.emplace(CallKey(b.path, b.direction, b.call), &b);
    named.emplace(b.name, &b);
  }
  Pairs pairs;
  std::set<const Entry*> taken;
  for (const Entry& n : npu.entries) {
    const Entry* partner = nullptr;
    if (n.is_module) {
      const auto path = modules.find(n.path);
      const std::string_view other = path == modules.end() ? std::string_view() : path->second;
      const auto it = called.find(CallKey(other, n.direction, numbers.other(n, other)));
      const bool is_root = n.path.empty();  // parameters of the model itself
      if ((path != modules.end() || is_root) && it != called.end()) partner = it->second;
    } else if (n.direction != Direction::Other) {
      partner = functions.partner_of(n);
    } else if (const auto it = named.find(n.name); it != named.end()) {
      partner = it->second;
    }
    if (partner && !taken.insert(partner).second) partner = nullptr;
    EntryPair pair{&n, partner, {}};
    if (partner)
      pair.records = pair_records(n, *partner);
    else
      for (const Record& r : n.records) pair.records.push_back({&r, nullptr});
    pairs.entries.push_back(std::move(pair));
  }
  for (const Entry& b : bench.entries)
    if (!taken.contains(&b)) pairs.only_bench.push_back(&b);
  add_fused(npu, bench, *ours, *theirs, modules, pairs);
  return pairs;
}

}  // namespace aloft::compare
