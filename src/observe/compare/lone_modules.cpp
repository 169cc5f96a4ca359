#include "observe/compare/lone_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "base/text.h"

namespace aloft::compare {

namespace {

bool is_forward_module(const Entry& e) {
  return e.is_module && e.direction == Direction::Forward && !e.path.empty();
}

std::string around(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

bool is_numbered(const std::string& path) {
  const std::string_view last = std::string_view(path).substr(path.rfind('.') + 1);
  return !last.empty() && last.find_first_not_of("0123456789") == std::string_view::npos;
}

// Modules of a run that have a partner, and all around them.
class Partnered {
 public:
  void add(const Entry& e) {
    if (!e.is_module) return;
    for (const std::string_view name : names_in(e))
      for (std::string path = parse_entry_name(name).path; !path.empty(); path = around(path)) {
        paths_.insert(path);
        if (is_numbered(path)) rows_.insert(around(path));
      }
  }
  bool has(const std::string& path) const { return paths_.contains(path); }
  bool has_of_row(const std::string& path) const {
    return is_numbered(path) && rows_.contains(around(path));
  }

 private:
  std::set<std::string> paths_, rows_;
};

void add_lone(const DumpFile& dump, const Partnered& partnered, bool is_in_first,
              std::vector<LoneModule>& found) {
  std::map<std::string, const Entry*> calls;
  for (const Entry& e : dump.entries)
    if (is_forward_module(e)) calls.emplace(e.path, &e);
  std::map<std::string, std::size_t> at;  // of the outermost ones
  const auto outermost = [&](const std::string& path) {
    std::string found_at;
    for (std::string outer = path; !outer.empty() && !partnered.has(outer); outer = around(outer))
      if (calls.contains(outer)) found_at = outer;
    return found_at;
  };
  for (const Entry& e : dump.entries) {
    if (!e.is_module) continue;
    const std::string path = outermost(e.path);
    if (path.empty()) continue;
    const auto [it, is_new] = at.emplace(path, found.size());
    if (is_new) {
      const Entry* const call = calls.at(path);
      found.push_back({path, call->kind, is_in_first, false, partnered.has_of_row(path), 0, call});
    }
    LoneModule& lone = found[it->second];
    for (const Record& r : e.records) {
      lone.tensors += r.is_tensor && r.elements() > 0;
      lone.has_parameters = lone.has_parameters || r.part == Part::Parameter;
    }
  }
}

}  // namespace

std::vector<std::string_view> names_in(const Entry& e) {
  constexpr std::string_view kAnd = " + ";
  std::vector<std::string_view> names;
  for (std::string_view rest = e.name; !rest.empty();) {
    const std::size_t end = rest.find(kAnd);
    names.push_back(rest.substr(0, end));
    rest = end == std::string_view::npos ? "" : rest.substr(end + kAnd.size());
  }
  return names;
}

std::vector<LoneModule> lone_modules(const DumpFile& npu, const DumpFile& bench,
                                     const Pairs& pairs) {
  Partnered ours, theirs;
  for (const EntryPair& p : pairs.entries)
    if (p.bench) ours.add(*p.npu), theirs.add(*p.bench);
  std::vector<LoneModule> found;
  add_lone(npu, ours, true, found);
  add_lone(bench, theirs, false, found);
  return found;
}

std::string module_remark(const std::vector<LoneModule>& lone, const std::vector<Compared>& all,
                          const Compared& first) {
  if (first.moment.entry->npu->direction != Direction::Forward || !first.moment.entry->bench)
    return "";
  // Entries stand in the order of the dump's file, which is that of the calls; what was made of
  // several modules stands in none.
  const auto is_made = [](const Entry& e) { return names_in(e).size() > 1; };
  const Entry *npu_last = nullptr, *bench_last = nullptr;
  for (const Compared& c : all) {
    if (&c == &first) break;
    if (!c.moment.gives || !c.moment.entry->bench) continue;
    const EntryPair& p = *c.moment.entry;
    if (!is_made(*p.npu)) npu_last = std::max(npu_last, p.npu, std::less());
    if (!is_made(*p.bench)) bench_last = std::max(bench_last, p.bench, std::less());
  }
  constexpr std::size_t kMost = 3;
  std::string text;
  for (const bool is_in_first : {true, false}) {
    const Entry* const end = is_in_first ? first.moment.entry->npu : first.moment.entry->bench;
    const Entry* const last = is_in_first ? npu_last : bench_last;
    std::vector<std::string> names;
    for (const LoneModule& m : lone) {
      if (m.is_in_first != is_in_first || !m.has_parameters) continue;
      const std::less<const Entry*> before;
      const bool is_between =
          !is_made(*end) && before(m.forward, end) && (!last || before(last, m.forward));
      if (is_between || m.is_of_a_row) names.push_back(fmt::format("{} ({})", m.path, m.kind));
    }
    if (names.empty()) continue;
    const std::size_t shown = std::min(names.size(), kMost);
    text += "; ";
    for (std::size_t i = 0; i < shown; ++i) text += (i == 0 ? "" : ", ") + names[i];
    if (names.size() > kMost) text += fmt::format(" and {} more", names.size() - kMost);
    text += fmt::format(" {} in the {} run alone", names.size() == 1 ? "is" : "are",
                        is_in_first ? "first" : "second");
  }
  return text;
}

}  // namespace aloft::compare
