#include "observe/compare/lone_functions.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "observe/compare/function_names.h"

namespace aloft::compare {

namespace {

bool is_function(const Entry& e) { return !e.is_module && e.direction == Direction::Forward; }

bool gives_floats(const Entry& e) {
  return std::ranges::any_of(e.records, [](const Record& r) {
    return r.part == Part::Output && r.is_tensor && r.elements() > 0 &&
           r.type.find("float") != std::string::npos;
  });
}

using Calls = std::vector<const Entry*>;
using IsThere = std::function<bool(const Entry&)>;

Calls calls_of(const DumpFile& dump, const IsThere& is_there) {
  Calls calls;
  for (const Entry& e : dump.entries)
    if (is_function(e) && !moves_values(e) && gives_floats(e) && is_there(e)) calls.push_back(&e);
  return calls;
}

// What of a run's calls has no partner, nor any of its name in the other's.
void add_lone(const Calls& own, const Calls& others, const std::set<const Entry*>& paired,
              bool is_in_first, std::vector<LoneFunction>& found) {
  for (const Entry* e : own) {
    const auto is_same = [&](const Entry* o) { return plain_function(*o) == plain_function(*e); };
    if (!paired.contains(e) && std::ranges::none_of(others, is_same))
      found.push_back({e->name, e->kind, e->caller.value_or(""), is_in_first});
  }
}

bool is_within(const std::string& module, const Entry& e) {
  return e.caller && (module.empty() || *e.caller == module || e.caller->starts_with(module + "."));
}

// Whether what the call takes was compared, and agreed.
bool takes_the_same(const std::vector<Compared>& all, const Compared& first) {
  if (first.records.npu && first.records.npu->part == Part::Input) return false;
  return std::ranges::any_of(all, [&](const Compared& c) {
    return c.moment.entry == first.moment.entry && c.records.npu &&
           c.records.npu->part == Part::Input;
  });
}

}  // namespace

std::vector<LoneFunction> lone_functions(const std::vector<Compared>& all, const Compared& first,
                                         const DumpFile& npu, const DumpFile& bench) {
  const EntryPair& pair = *first.moment.entry;
  if (!pair.bench || pair.npu->direction != Direction::Forward) return {};
  std::set<const Entry*> ours, theirs;
  std::map<const Entry*, const Entry*> agreed;  // before it
  bool is_before = true;
  for (const Compared& c : all) {
    is_before = is_before && &c != &first;
    if (!c.moment.entry->bench) continue;
    ours.insert(c.moment.entry->npu), theirs.insert(c.moment.entry->bench);
    if (is_before && is_function(*c.moment.entry->npu) && c.moment.entry != &pair)
      agreed.emplace(c.moment.entry->npu, c.moment.entry->bench);
  }
  IsThere in_npu, in_bench;
  if (pair.npu->is_module) {
    in_npu = [&](const Entry& e) { return is_within(pair.npu->path, e); };
    in_bench = [&](const Entry& e) { return is_within(pair.bench->path, e); };
  } else {
    if (takes_the_same(all, first)) return {};
    // Entries stand in the order of the dump's file, which is that of the calls.
    const auto is_between = [](const Entry* last, const Entry* end) {
      return [=](const Entry& e) { return (!last || &e > last) && &e < end; };
    };
    const Entry *npu_last = nullptr, *bench_last = nullptr;
    for (const auto& [n, b] : agreed)
      if (n < pair.npu && b < pair.bench) {
        if (!npu_last || n > npu_last) npu_last = n;
        if (!bench_last || b > bench_last) bench_last = b;
      }
    in_npu = is_between(npu_last, pair.npu), in_bench = is_between(bench_last, pair.bench);
  }
  const Calls npu_calls = calls_of(npu, in_npu), bench_calls = calls_of(bench, in_bench);
  std::vector<LoneFunction> found;
  add_lone(npu_calls, bench_calls, ours, true, found);
  add_lone(bench_calls, npu_calls, theirs, false, found);
  return found;
}

std::string function_remark(const std::vector<LoneFunction>& functions, bool is_within) {
  constexpr std::size_t kMost = 3;
  std::string text;
  for (const bool is_in_first : {true, false}) {
    std::vector<std::string> names;
    std::string module;
    for (const LoneFunction& f : functions) {
      if (f.is_in_first != is_in_first || std::ranges::find(names, f.function) != names.end())
        continue;
      if (names.empty()) module = f.module;
      if (f.module == module) names.push_back(f.function);
    }
    if (names.empty()) continue;
    text += (text.empty() ? is_within ? "; " : "; before it " : ", and ") +
            (module.empty() ? "the model" : module) + " calls ";
    for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i)
      text += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kMost) text += " and others";
    text += std::string(" in the ") + (is_in_first ? "first" : "second") + " run alone";
  }
  return text;
}

}  // namespace aloft::compare
