#include "observe/compare/lone_arguments.h"

#include <algorithm>
#include <functional>

namespace aloft::compare {

namespace {

// Whether a module lies around another one, or is it.
bool is_around(const std::string& outer, const std::string& inner) {
  return outer.empty() || inner == outer || inner.starts_with(outer + ".");
}

bool is_named(const Record& r) {
  return r.own.find_first_not_of("0123456789.") != std::string::npos;
}

// Whether what one run alone has says something of it.
bool is_telling(const EntryPair& p, const RecordPair& r) {
  const Record* const own = r.npu && r.npu->is_tensor ? r.npu : r.bench;
  const Record* const other = own == r.npu ? r.bench : r.npu;
  if (!own || !own->is_tensor || own->part != Part::Input || (other && other->is_tensor))
    return false;
  if (other) return other->own == own->own;
  return p.npu->kind == p.bench->kind && is_named(*own);
}

}  // namespace

std::vector<LoneArgument> lone_arguments(const std::vector<Compared>& all, const Compared& first,
                                         const std::string& module) {
  std::vector<const EntryPair*> calls;
  const auto add = [&](const EntryPair* p) {
    if (p->bench && std::ranges::find(calls, p) == calls.end()) calls.push_back(p);
  };
  add(first.moment.entry);
  for (const Compared& c : all)
    if (const Entry& e = *c.moment.entry->npu;
        e.is_module && e.direction == Direction::Forward && is_around(e.path, module))
      add(c.moment.entry);
  std::ranges::stable_sort(calls, std::greater(),
                           [](const EntryPair* p) { return p->npu->path.size(); });
  std::vector<LoneArgument> found;
  for (const EntryPair* p : calls)
    for (const RecordPair& r : p->records) {
      if (!is_telling(*p, r)) continue;
      const bool is_in_first = r.npu && r.npu->is_tensor;
      const Record& own = is_in_first ? *r.npu : *r.bench;
      found.push_back(
          {(is_in_first ? p->npu : p->bench)->name, p->npu->path, own.own, own.type, is_in_first});
    }
  return found;
}

std::string argument_remark(const std::vector<LoneArgument>& arguments) {
  if (arguments.empty()) return "";
  const LoneArgument& a = arguments[0];
  std::string names = a.name;
  for (std::size_t i = 1; i < arguments.size(); ++i)
    if (arguments[i].call == a.call && arguments[i].is_in_first == a.is_in_first)
      names += ", " + arguments[i].name;
  return "; " + (a.path.empty() ? "the model" : a.path) + " takes " + names + " in the " +
         (a.is_in_first ? "first" : "second") + " run alone";
}

}  // namespace aloft::compare
