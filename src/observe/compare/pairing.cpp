#include "observe/compare/pairing.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "observe/compare/difference.h"
#include "observe/compare/function_names.h"
#include "observe/compare/function_pairs.h"
#include "observe/compare/fused_modules.h"
#include "observe/compare/mapped_modules.h"
#include "observe/compare/module_tree.h"
#include "observe/compare/operand_pairs.h"
#include "observe/compare/running_sums.h"

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

// Which values belong together because a map says so.
class MappedValues {
 public:
  MappedValues(const DumpFile& npu, const DumpFile& bench, const NameMap::Pairs& named) {
    if (named.empty()) return;
    const Known ours = known_in(npu), theirs = known_in(bench);
    for (const auto& [from, to] : named) {
      const auto a = ours.find(from), b = theirs.find(to);
      fits_.push_back({a != ours.end(), b != theirs.end()});
      if (a == ours.end() || b == theirs.end()) continue;
      partners_.emplace(a->second.second, b->second.second);
      targets_.insert(b->second.second);
      calls_.emplace(a->second.first, b->second.first);
    }
  }

  const Record* partner_of(const Record& npu) const {
    const auto it = partners_.find(&npu);
    return it == partners_.end() ? nullptr : it->second;
  }
  // The call in which the first of a call's values has its partner; null where none has one.
  const Entry* partner_of(const Entry& npu) const {
    const auto it = calls_.find(&npu);
    return it == calls_.end() ? nullptr : it->second;
  }
  const std::set<const Record*>& targets() const { return targets_; }
  const std::vector<LineFit>& fits() const { return fits_; }  // of each of the map's values
  std::set<const Entry*> calls() const {
    std::set<const Entry*> all;
    for (const auto& [a, b] : calls_) all.insert(b);
    return all;
  }

 private:
  using Known = std::map<std::string, std::pair<const Entry*, const Record*>>;

  // By all names that a value goes by: that of its file is the one of msprobe's tables, and
  // gradients of parameters are named without the number of the call, too.
  static Known known_in(const DumpFile& dump) {
    Known known;
    for (const Entry& e : dump.entries)
      for (const Record& r : e.records) {
        known.emplace(r.name, std::pair(&e, &r));
        if (!r.data_name.empty())
          known.emplace(r.data_name.substr(0, r.data_name.rfind('.')), std::pair(&e, &r));
        if (e.direction == Direction::ParametersGrad)
          known.emplace(e.name.substr(0, e.name.rfind('.') + 1) + r.own, std::pair(&e, &r));
      }
    return known;
  }

  std::vector<LineFit> fits_;
  std::map<const Record*, const Record*> partners_;
  std::set<const Record*> targets_;
  std::map<const Entry*, const Entry*> calls_;
};

// A name as the map would have it, of the first run: of a value, of a cell, or of a module.
std::string example_of(const NameMap& map, const DumpFile& npu) {
  for (const Entry& e : npu.entries) {
    if (!map.values().empty() && !e.records.empty()) return e.records[0].name;
    if (map.values().empty() && e.is_module && !e.path.empty())
      return map.cells().empty() ? e.path : e.path + "." + e.kind;
  }
  return map.values().empty() ? "none: that run has no modules"
                              : "Functional.linear.4.forward.input.0";
}

void refuse_if_useless(const NameMap& map, const std::vector<LineFit>& fits, const DumpFile& npu) {
  if (fits.empty() ||
      std::ranges::any_of(fits, [](const LineFit& f) { return f.in_npu && f.in_bench; }))
    return;
  throw UserError("E0728", "the mapping of names cannot be used")
      .at(map.name())
      .saw("no line with names of both dumps: " + without_effect(map, fits))
      .need("names of the first run, each with that of the second, as " + npu.file.string() +
            " has them: " + example_of(map, npu));
}

// Of a sum or product whose operands stand the other way round in the other run: what it takes, and
// the gradients of that.
void exchange_operands(const Entry& npu, std::vector<RecordPair>& pairs) {
  constexpr double kMuchNearer = 0.1;
  const Part part = npu.direction == Direction::Forward ? Part::Input : Part::Output;
  std::vector<RecordPair*> operands;
  for (RecordPair& p : pairs)
    if (p.npu && p.npu->part == part && p.npu->is_tensor && is_float(*p.npu))
      operands.push_back(&p);
  if (operands.size() != 2 || !operands[0]->bench || !operands[1]->bench) return;
  RecordPair &x = *operands[0], &y = *operands[1];
  const auto apart = [](const RecordPair& a, const RecordPair& b) {
    const auto d = difference_of({a.npu, b.bench}, nullptr);
    return d ? d->size : 1;
  };
  if (apart(x, y) + apart(y, x) < kMuchNearer * (apart(x, x) + apart(y, y)))
    std::swap(x.bench, y.bench);
}

// Pairs the records of two calls: those of the map as it says, named ones by name, tensors of one
// kind in order, others by their place. `without_inputs`: what they take belongs together only
// where the map says so.
std::vector<RecordPair> pair_records(const Entry& npu, const Entry& bench,
                                     const MappedValues& mapped, std::string_view by,
                                     bool without_inputs = false) {
  std::vector<RecordPair> pairs;
  std::set<const Record*> taken = mapped.targets();
  const auto pair_first = [&](RecordPair& pair, std::string_view by, const auto& fits) {
    if (pair.bench) return;
    if (is_operand(npu, bench, *pair.npu)) return;
    if (without_inputs && pair.npu->part == Part::Input) return;
    for (const Record& b : bench.records) {
      if (b.part != pair.npu->part || taken.contains(&b) || !fits(*pair.npu, b)) continue;
      pair.bench = &b;
      pair.matched_by = is_named(b.part) && pair.npu->own != b.own ? "synonym" : by;
      taken.insert(&b);
      return;
    }
  };
  for (const Record& r : npu.records) {
    const Record* const said = mapped.partner_of(r);
    pairs.push_back({&r, said, said ? "map" : ""});
  }
  for (RecordPair& p : pairs)  // what has the same place, and may be the same there
    pair_first(p, by, [](const Record& n, const Record& b) {
      if (is_named(n.part)) return plain_parameter(n.own) == plain_parameter(b.own);
      return n.own == b.own && n.is_tensor == b.is_tensor &&
             (!n.is_tensor || (n.elements() == b.elements() && is_float(n) == is_float(b)));
    });
  // A program may lack a result of an op of Aloft's; another is no stand-in for it.
  const bool are_counted = !npu.tap.empty() && !bench.tap.empty();
  for (RecordPair& p : pairs)  // tensors elsewhere in the list
    pair_first(p, "size", [&](const Record& n, const Record& b) {
      return !are_counted && !is_named(n.part) && n.is_tensor && b.is_tensor &&
             is_float(n) == is_float(b) && n.elements() == b.elements();
    });
  for (RecordPair& p : pairs)  // of another size, at the same place
    pair_first(p, by, [](const Record& n, const Record& b) {
      return !is_named(n.part) && n.own == b.own && n.is_tensor == b.is_tensor &&
             is_float(n) == is_float(b);
    });
  // A result of whole numbers where the other run has floats, of one call. What a call takes may
  // be of either: a mask, say.
  const bool is_one_call = npu.is_module || npu.kind == bench.kind;
  for (RecordPair& p : pairs)
    pair_first(p, by, [&](const Record& n, const Record& b) {
      return is_one_call && n.part == Part::Output && n.own == b.own && n.is_tensor && b.is_tensor;
    });
  if (is_of_ops(npu, bench) && !without_inputs) pair_operands(npu, bench, pairs, taken);
  if (commutes(npu)) exchange_operands(npu, pairs);
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

// Where one run tells the sums of a module's gradients more often than the other, the last of each
// belong together, whole.
void take_sums(const RunningSums& ours, const RunningSums& theirs, EntryPair& pair) {
  const auto *const a = ours.of(pair.npu->path), *const b = theirs.of(pair.bench->path);
  if (!a || !b || a->count == b->count || pair.npu != a->last || pair.bench != b->last) return;
  pair.npu = a->whole, pair.bench = b->whole;
}

// By how many numbers the last gradients of several modules stand behind those of the one.
std::int64_t later_sums(const DumpFile& one, std::string_view path,
                        const std::vector<const Entry*>& joined) {
  std::int64_t ours = 0, theirs = 0;
  for (const Entry& e : one.entries)
    if (e.is_module && e.path == path && e.direction == Direction::ParametersGrad)
      ours = std::max(ours, e.call);
  for (const Entry* e : joined)
    if (e->direction == Direction::ParametersGrad) theirs = std::max(theirs, e->call);
  return theirs - ours;
}

// Pairs of calls of one module of a run and several of the other.
void add_fused(const DumpFile& npu, const DumpFile& bench, const ModuleNode& ours,
               const ModuleNode& theirs, const std::map<std::string, std::string>& modules,
               const MappedValues& mapped, Pairs& pairs) {
  for (const bool one_in_npu : {true, false}) {
    const DumpFile &one = one_in_npu ? npu : bench, &many = one_in_npu ? bench : npu;
    for (const auto& [path, paths] : fused_modules(ours, theirs, modules, one_in_npu)) {
      const auto joined = calls_as_one(many, paths, pairs.made);
      const std::map<CallKey, const Entry*> calls = calls_of(joined);
      const std::int64_t later = later_sums(one, path, joined);
      for (const Entry& e : one.entries) {
        if (!e.is_module || e.path != path) continue;
        const bool is_sum = e.direction == Direction::ParametersGrad;
        const auto it = calls.find(CallKey(paths[0], e.direction, e.call + (is_sum ? later : 0)));
        if (it == calls.end()) continue;
        EntryPair pair{one_in_npu ? &e : it->second, one_in_npu ? it->second : &e, {}};
        pair.records = pair_records(*pair.npu, *pair.bench, mapped, "fused");
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

// The modules of which the map says what they are in the other run.
std::set<std::string> modules_of_map(const ModuleNode& npu, const ModuleNode& bench,
                                     const NameMap& map) {
  std::set<std::string> said;
  const MappedModules mapped(npu, bench, map);
  for (const ModuleNode* n : all_below(npu))
    if (mapped.other_name_of(*n)) said.insert(n->path);
  return said;
}

// Whether two paths are one, up to what all paths of a run begin with.
bool is_same_path(std::string_view a, std::string_view b) {
  if (a.size() < b.size()) std::swap(a, b);
  if (b.empty() || !a.ends_with(b)) return a == b;
  return a.size() == b.size() || a[a.size() - b.size() - 1] == '.';
}

std::string_view how_matched(const Entry& npu, const Entry& bench, const MappedValues& mapped,
                             const std::set<std::string>& said) {
  if (mapped.partner_of(npu) || (npu.is_module && said.contains(npu.path))) return "map";
  const bool is_same = npu.is_module ? is_same_path(npu.path, bench.path) : npu.name == bench.name;
  return is_same ? "name" : "structure";
}

std::string_view last_part(std::string_view path) { return path.substr(path.rfind('.') + 1); }

// Not those that lie below one with another name, and have their own.
std::vector<Pairs::Renamed> renamed_modules(const std::map<std::string, std::string>& modules,
                                            const std::set<std::string>& said) {
  std::vector<Pairs::Renamed> all;
  for (const auto& [n, b] : modules) {
    if (is_same_path(n, b)) continue;
    const auto outer = modules.find(n.substr(0, std::min(n.rfind('.'), n.size())));
    const bool is_below = outer != modules.end() && last_part(n) == last_part(b) &&
                          b.starts_with(outer->second + ".");
    if (!is_below) all.push_back({n, b, said.contains(n) ? "map" : "structure"});
  }
  return all;
}

void add_renamed_parameters(Pairs& pairs) {
  for (const EntryPair& p : pairs.entries)
    for (const RecordPair& r : p.records)
      if (r.npu && r.bench && r.npu->part == Part::Parameter && r.npu->own != r.bench->own)
        pairs.renamed.push_back(
            {p.npu->path + "." + r.npu->own, p.bench->path + "." + r.bench->own, r.matched_by});
}

}  // namespace

bool RecordPair::has_same_size() const {
  return npu && bench && npu->elements() == bench->elements();
}

Pairs pair_dumps(const DumpFile& npu, const DumpFile& bench, const NameMap& map) {
  const auto ours = module_tree(npu), theirs = module_tree(bench);
  const auto modules = pair_modules(*ours, *theirs, map);
  const FunctionPairs functions(npu, bench, modules);
  const CallNumbers numbers(npu, bench);
  std::map<CallKey, const Entry*> called;
  std::map<std::string_view, const Entry*> named;
  for (const Entry& b : bench.entries) {
    if (b.is_module) called.emplace(CallKey(b.path, b.direction, b.call), &b);
    named.emplace(b.name, &b);
  }
  const MappedValues mapped(npu, bench, map.values());
  const std::set<std::string> said = modules_of_map(*ours, *theirs, map);
  Pairs pairs;
  pairs.fits = map.values().empty() ? MappedModules(*ours, *theirs, map).fits() : mapped.fits();
  refuse_if_useless(map, pairs.fits, npu);
  const RunningSums our_sums(npu, pairs.made), their_sums(bench, pairs.made);
  const auto found = [&](const Entry& n) -> const Entry* {
    if (!n.is_module && n.direction != Direction::Other) return functions.partner_of(n);
    if (!n.is_module) {
      const auto it = named.find(n.name);
      return it == named.end() ? nullptr : it->second;
    }
    const auto path = modules.find(n.path);
    const bool is_root = n.path.empty();  // parameters of the model itself
    if (path == modules.end() && !is_root) return nullptr;
    const std::string_view other = is_root ? std::string_view() : path->second;
    if (n.direction == Direction::ParametersGrad)
      if (const auto* const a = our_sums.of(n.path), * const b = their_sums.of(other);
          a && b && a->count != b->count)
        return &n == a->last ? b->last : nullptr;
    const auto it = called.find(CallKey(other, n.direction, numbers.other(n, other)));
    return it == called.end() ? nullptr : it->second;
  };
  std::set<const Entry*> taken = mapped.calls();
  for (const Entry& n : npu.entries) {
    // Several calls of this run may have their values in one of the other.
    const Entry* partner = mapped.partner_of(n);
    if (!partner) {
      partner = found(n);
      if (partner && !taken.insert(partner).second) partner = nullptr;
    }
    EntryPair pair{&n, partner, {}};
    if (partner && n.direction == Direction::ParametersGrad) take_sums(our_sums, their_sums, pair);
    if (partner)
      pair.records =
          pair_records(*pair.npu, *pair.bench, mapped, how_matched(n, *partner, mapped, said),
                       functions.takes_other_parts(n));
    else
      for (const Record& r : n.records) pair.records.push_back({&r, nullptr});
    pairs.entries.push_back(std::move(pair));
  }
  for (const Entry& b : bench.entries)
    if (!taken.contains(&b)) pairs.only_bench.push_back(&b);
  add_fused(npu, bench, *ours, *theirs, modules, mapped, pairs);
  pairs.renamed = renamed_modules(modules, said);
  add_renamed_parameters(pairs);
  return pairs;
}

}  // namespace aloft::compare
