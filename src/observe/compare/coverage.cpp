#include "observe/compare/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "observe/compare/lone_modules.h"

namespace aloft::compare {

namespace {

constexpr std::size_t kModules = 0, kFunctions = 1, kBackwardFunctions = 2, kKinds = 3;

std::size_t kind_of(const Entry& e) {
  if (e.is_module) return kModules;
  return e.direction == Direction::Forward ? kFunctions : kBackwardFunctions;
}

bool is_counted(const Entry& e) {
  return e.direction == Direction::Forward || e.direction == Direction::Backward ||
         e.direction == Direction::ParametersGrad;
}

bool has_values(const Record& r) { return r.is_tensor && r.elements() > 0; }

std::size_t values_of(const Entry& e) {
  return static_cast<std::size_t>(std::ranges::count_if(e.records, has_values));
}

// The calls of a run that have no partner.
class Alone {
 public:
  Alone(const DumpFile& dump, bool are_calls_one) : dump_(dump), are_calls_one_(are_calls_one) {}

  // Several modules that are taken as one have the names of all.
  void pair(const Entry& e) {
    for (const std::string_view name : names_in(e)) paired_.insert(key(parse_entry_name(name)));
  }
  // Each once, however many calls it is.
  std::vector<const Entry*> entries() const {
    std::vector<const Entry*> found;
    std::set<Key> seen = paired_;
    for (const Entry& e : dump_.entries)
      if (is_counted(e) && values_of(e) > 0 && seen.insert(key(e)).second) found.push_back(&e);
    return found;
  }

 private:
  // A function's call is known by its whole name.
  using Key = std::tuple<std::string, Direction, std::int64_t>;
  Key key(const Entry& e) const {
    return {e.is_module ? e.path : e.name, e.direction,
            e.is_module && !are_calls_one_ ? e.call : 0};
  }

  const DumpFile& dump_;
  const bool are_calls_one_;
  std::set<Key> paired_;
};

bool has(const DumpFile& dump, Direction d) {
  return std::ranges::any_of(dump.entries,
                             [&](const Entry& e) { return e.direction == d && values_of(e) > 0; });
}

// Whether both runs have a parameter: of functions dumps have none, nor their gradients.
bool have_parameters(const std::vector<Compared>& compared) {
  return std::ranges::any_of(compared, [](const Compared& c) {
    return c.records.npu && c.records.npu->part == Part::Parameter;
  });
}

// A pass that one of the two alone has.
std::string lacking_pass(const DumpFile& npu, const DumpFile& bench,
                         const std::vector<Compared>& compared) {
  const auto lacking = [&](Direction d) -> const char* {
    const bool ours = has(npu, d), theirs = has(bench, d);
    return ours == theirs ? nullptr : ours ? "second" : "first";
  };
  if (const char* const run = lacking(Direction::Backward))
    return fmt::format("the {} run has no backward pass", run);
  if (const char* const run = lacking(Direction::ParametersGrad); run && have_parameters(compared))
    return fmt::format("the {} run has no gradient of any parameter", run);
  return "";
}

// What most lies in: a whole module, where one is missing, else a call.
std::string example_of(const std::vector<const Entry*>& calls, std::size_t kind,
                       const std::vector<LoneModule>& lone, bool is_npu) {
  const LoneModule* most = nullptr;
  for (const LoneModule& m : lone)
    if (m.is_in_first == is_npu && m.has_parameters && (!most || m.tensors > most->tensors))
      most = &m;
  if (most && kind == kModules)
    return fmt::format(", such as those of {} ({})", most->path, most->kind);
  const auto first =
      std::ranges::find_if(calls, [&](const Entry* e) { return kind_of(*e) == kind; });
  return first == calls.end() ? "" : ", such as those of " + (*first)->name;
}

}  // namespace

Coverage coverage_of(const DumpFile& npu, const DumpFile& bench, const Pairs& pairs,
                     const std::vector<Compared>& compared) {
  const bool are_calls_one = npu.training.micro_batches > 1 || bench.training.micro_batches > 1;
  Alone ours(npu, are_calls_one), theirs(bench, are_calls_one);
  std::size_t both[kKinds] = {}, npu_alone[kKinds] = {}, bench_alone[kKinds] = {};
  for (const Compared& c : compared)
    both[kind_of(*c.moment.entry->npu)] += c.records.npu && c.records.bench;
  std::size_t functions = 0, of_one_name = 0;
  for (const EntryPair& p : pairs.entries) {
    if (!p.bench) continue;
    ours.pair(*p.npu), theirs.pair(*p.bench);
    if (!p.npu->is_module) ++functions, of_one_name += p.npu->name == p.bench->name;
    if (!is_counted(*p.npu) && p.npu->direction != Direction::ParametersUpdate) continue;
    for (const RecordPair& r : p.records) {
      // A gradient, or an update, may be none in the one run: its name is there, and no tensor.
      if (r.npu && !(r.bench && r.bench->is_tensor))
        npu_alone[kind_of(*p.npu)] += has_values(*r.npu);
      if (r.bench && !(r.npu && r.npu->is_tensor))
        bench_alone[kind_of(*p.npu)] += has_values(*r.bench);
    }
  }
  const std::vector<const Entry*> npu_calls = ours.entries(), bench_calls = theirs.entries();
  for (const Entry* e : npu_calls) npu_alone[kind_of(*e)] += values_of(*e);
  for (const Entry* e : bench_calls) bench_alone[kind_of(*e)] += values_of(*e);

  Coverage c;
  c.lacks = lacking_pass(npu, bench, compared);
  for (const std::size_t count : both) c.compared += count;
  const std::size_t kind = both[kModules] > 0 ? kModules : kFunctions;
  const std::size_t alone = std::max(npu_alone[kind], bench_alone[kind]);
  c.all = c.compared + alone;
  // Where both runs have functions of their own, or other names for the same, as frameworks have,
  // they are other programs.
  const std::size_t other = std::min(npu_alone[kind], bench_alone[kind]);
  const bool is_one_program = other < both[kind] && 2 * of_one_name > functions;
  const bool is_gap = both[kind] < alone && (kind == kModules || is_one_program);
  if (!is_gap || !c.lacks.empty()) return c;
  const bool is_npu = npu_alone[kind] > bench_alone[kind];
  const auto& calls = is_npu ? npu_calls : bench_calls;
  c.lacks = fmt::format("most tensors are in the {} run alone", is_npu ? "first" : "second");
  c.lacks += example_of(calls, kind, lone_modules(npu, bench, pairs), is_npu);
  return c;
}

}  // namespace aloft::compare
