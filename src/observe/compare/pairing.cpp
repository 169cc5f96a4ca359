#include "observe/compare/pairing.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/text.h"
#include "observe/compare/function_pairs.h"
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

bool is_named(Part part) { return part == Part::Parameter || part == Part::Gradient; }

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

}  // namespace

bool RecordPair::has_same_size() const {
  return npu && bench && npu->elements() == bench->elements();
}

Pairs pair_dumps(const DumpFile& npu, const DumpFile& bench, const NameMap& map) {
  const auto modules = pair_modules(*module_tree(npu), *module_tree(bench), map);
  const FunctionPairs functions(npu, bench);
  std::map<std::tuple<std::string_view, Direction, std::int64_t>, const Entry*> called;
  std::map<std::string_view, const Entry*> named;
  for (const Entry& b : bench.entries) {
    if (b.is_module) called.emplace(std::tuple(std::string_view(b.path), b.direction, b.call), &b);
    named.emplace(b.name, &b);
  }
  Pairs pairs;
  std::set<const Entry*> taken;
  for (const Entry& n : npu.entries) {
    const Entry* partner = nullptr;
    if (n.is_module) {
      const auto path = modules.find(n.path);
      const std::string_view other = path == modules.end() ? std::string_view() : path->second;
      const auto it = called.find(std::tuple(other, n.direction, n.call));
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
  return pairs;
}

}  // namespace aloft::compare
