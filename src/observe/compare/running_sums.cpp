#include "observe/compare/running_sums.h"

#include <algorithm>

namespace aloft::compare {

namespace {

// An entry with what a later one says in place of what an earlier one said. Of a parameter that a
// pass does not reach there is no tensor.
Entry joined(const Entry& before, const Entry& later) {
  Entry whole = later;
  for (const Record& r : before.records) {
    const auto same = std::ranges::find(whole.records, r.own, &Record::own);
    if (same == whole.records.end())
      whole.records.push_back(r);
    else if (!same->is_tensor)
      *same = r;
  }
  return whole;
}

bool says_all_of(const Entry& later, const Entry& before) {
  return std::ranges::all_of(before.records, [&](const Record& r) {
    return !r.is_tensor || std::ranges::any_of(later.records, [&](const Record& l) {
      return l.own == r.own && l.is_tensor;
    });
  });
}

}  // namespace

RunningSums::RunningSums(const DumpFile& dump, std::deque<Entry>& made) {
  std::map<std::string_view, std::map<std::int64_t, const Entry*>> entries;
  for (const Entry& e : dump.entries)
    if (e.is_module && e.direction == Direction::ParametersGrad)
      entries[e.path].emplace(e.call, &e);
  for (const auto& [path, calls] : entries) {
    OfModule& m = modules_[path];
    for (const auto& [call, e] : calls) {
      ++m.count, m.last = e;
      if (m.whole && !says_all_of(*e, *m.whole)) {
        made.push_back(joined(*m.whole, *e));
        m.whole = &made.back();
      } else {
        m.whole = e;
      }
    }
  }
}

const RunningSums::OfModule* RunningSums::of(std::string_view path) const {
  const auto it = modules_.find(path);
  return it == modules_.end() ? nullptr : &it->second;
}

}  // namespace aloft::compare
