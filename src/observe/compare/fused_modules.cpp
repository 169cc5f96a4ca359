#include "observe/compare/fused_modules.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "base/text.h"

namespace aloft::compare {

namespace {

const ModuleNode* find(const ModuleNode& root, std::string_view path) {
  const ModuleNode* at = &root;
  if (path.empty()) return at;
  for (const std::string_view part : split(path, '.')) {
    const auto it =
        std::ranges::find_if(at->children, [&](const auto& c) { return c->name() == part; });
    if (it == at->children.end()) return nullptr;
    at = it->get();
  }
  return at;
}

// Children that are called, have weights and no partner.
std::vector<const ModuleNode*> single(const ModuleNode& node, const std::set<std::string>& taken) {
  std::vector<const ModuleNode*> found;
  for (const auto& c : node.children)
    if (c->children.empty() && c->weights > 0 && !taken.contains(c->path)) found.push_back(c.get());
  return found;
}

Figure figure(double v) { return {v, shortest(v)}; }

// The statistics of tensors that are laid side by side.
Record joined(const std::vector<const Record*>& parts) {
  Record r = *parts[0];
  r.data_name.clear(), r.hash.clear();
  double elements = 0, squares = 0, sum = 0;
  r.nan = r.inf = r.minus_inf = {};
  for (const Record* p : parts) elements += p->elements();
  r.shape = {static_cast<std::int64_t>(elements)};
  const auto is_known = [&](Figure Record::*f) {
    return std::ranges::all_of(parts, [&](const Record* p) { return (p->*f).number.has_value(); });
  };
  for (const Record* p : parts) {
    r.name += p == parts[0] ? "" : " + " + p->name;
    r.is_exact = r.is_exact && p->is_exact;
    if (p->norm.number) squares += *p->norm.number * *p->norm.number;
    if (p->mean.number) sum += *p->mean.number * p->elements();
    if (is_known(&Record::max)) r.max = figure(std::max(*r.max.number, *p->max.number));
    if (is_known(&Record::min)) r.min = figure(std::min(*r.min.number, *p->min.number));
  }
  for (Figure Record::*const count : {&Record::nan, &Record::inf, &Record::minus_inf})
    if (is_known(count)) {
      double all = 0;
      for (const Record* p : parts) all += *(p->*count).number;
      r.*count = figure(all);
    }
  if (is_known(&Record::norm)) r.norm = figure(std::sqrt(squares));
  if (is_known(&Record::mean)) r.mean = figure(elements > 0 ? sum / elements : 0);
  return r;
}

// Of a call the records that are laid side by side; of what it takes, the first module's.
Entry joined(const std::vector<const Entry*>& calls) {
  Entry e = *calls[0];
  const bool is_backward = e.direction == Direction::Backward;
  e.records.clear();
  for (std::size_t i = 1; i < calls.size(); ++i) e.name += " + " + calls[i]->name;
  for (const Record& r : calls[0]->records) {
    const bool is_shared = r.part == Part::Input && !is_backward;
    if (is_backward && r.part == Part::Output) continue;
    std::vector<const Record*> parts{&r};
    for (std::size_t i = 1; i < calls.size() && !is_shared; ++i)
      for (const Record& other : calls[i]->records)
        if (other.part == r.part && other.own == r.own && other.is_tensor && r.is_tensor)
          parts.push_back(&other);
    if (is_shared)
      e.records.push_back(r);
    else if (parts.size() == calls.size())
      e.records.push_back(joined(parts));
  }
  return e;
}

}  // namespace

FusedModules fused_modules(const ModuleNode& npu, const ModuleNode& bench,
                           const std::map<std::string, std::string>& paired, bool one_in_npu) {
  std::set<std::string> ours, theirs;
  for (const auto& [n, b] : paired) ours.insert(n), theirs.insert(b);
  FusedModules found;
  for (const auto& [n, b] : paired) {
    const ModuleNode *const a = find(npu, n), *const c = find(bench, b);
    if (!a || !c) continue;
    const auto ones = single(one_in_npu ? *a : *c, one_in_npu ? ours : theirs);
    const auto many = single(one_in_npu ? *c : *a, one_in_npu ? theirs : ours);
    std::size_t next = 0;
    for (const ModuleNode* one : ones) {
      double weights = 0;
      std::vector<std::string> paths;
      std::size_t i = next;
      for (; i < many.size() && weights < one->weights; ++i) {
        weights += many[i]->weights;
        paths.push_back(many[i]->path);
      }
      if (weights != one->weights || paths.size() < 2) continue;
      found[one->path] = std::move(paths);
      next = i;
    }
  }
  return found;
}

std::vector<const Entry*> calls_as_one(const DumpFile& dump, const std::vector<std::string>& paths,
                                       std::deque<Entry>& made) {
  std::map<std::tuple<std::string_view, Direction, std::int64_t>, const Entry*> calls;
  for (const Entry& e : dump.entries)
    if (e.is_module) calls.emplace(std::tuple(std::string_view(e.path), e.direction, e.call), &e);
  std::vector<const Entry*> found;
  for (const Entry& e : dump.entries) {
    if (!e.is_module || e.path != paths[0]) continue;
    std::vector<const Entry*> together;
    for (const std::string& path : paths)
      if (const auto it = calls.find({path, e.direction, e.call}); it != calls.end())
        together.push_back(it->second);
    if (together.size() != paths.size()) continue;
    made.push_back(joined(together));
    found.push_back(&made.back());
  }
  return found;
}

}  // namespace aloft::compare
