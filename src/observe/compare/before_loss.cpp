#include "observe/compare/before_loss.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string_view>

#include "observe/compare/lone_modules.h"
#include "observe/compare/noise.h"
#include "observe/compare/remarks.h"

namespace aloft::compare {

namespace {

bool is_forward(const Entry& e) { return e.direction == Direction::Forward; }

bool is_float(const Record& r) { return r.is_tensor && unit_of(r.type) > 0 && r.elements() > 0; }

// A call behind the last that agrees, which the other run does not have.
struct Between {
  const Entry* call;
  bool is_in_first;
  bool is_head;         // multiplies what agrees with a parameter that agrees
  bool has_parameters;  // that were not compared
  std::string text() const {
    const std::string& name = call->path.empty() ? call->name : call->path;
    return call->is_module ? fmt::format("{} ({})", name, call->kind) : name;
  }
};

// One of the two runs.
class Side {
 public:
  Side(const DumpFile& dump, bool is_in_first) : dump_(dump), is_in_first_(is_in_first) {}

  void add_pair(const Entry& own) {
    for (const std::string_view name : names_in(own)) paired_.insert(std::string(name));
  }
  void add_agreed(const Entry& own, const Record& r, bool is_given) {
    known_.push_back(&r);
    const auto* const begin = dump_.entries.data();
    const std::less<const Entry*> before;
    // What was made of several modules stands in no dump.
    const bool is_in_dump = !before(&own, begin) && before(&own, begin + dump_.entries.size());
    if (is_given && is_in_dump && (!last_ || before(last_, &own))) last_ = &own;
  }
  const Entry* last() const { return last_; }

  std::vector<Between> between(bool are_modules) {
    std::vector<Between> found;
    for (const Entry& e : dump_.entries) {
      if (!is_forward(e) || e.is_module != are_modules || paired_.contains(e.name)) continue;
      if (last_ && !std::less<const Entry*>()(last_, &e)) continue;
      if (is_handed_on(e)) continue;
      Between b{&e, is_in_first_, is_head(e), has_unknown(e, Part::Parameter)};
      found.push_back(b);
      if (b.is_head)
        for (const Record& r : e.records)
          if (r.part == Part::Output) known_.push_back(&r);
    }
    return found;
  }

 private:
  bool is_known(const Record& r) const {
    return std::ranges::any_of(known_, [&](const Record* k) { return is_same_value(*k, r); });
  }
  bool has_unknown(const Entry& e, Part part) const {
    return std::ranges::any_of(
        e.records, [&](const Record& r) { return r.part == part && is_float(r) && !is_known(r); });
  }
  // Also what gives one number, as the loss itself, or none.
  bool is_handed_on(const Entry& e) const {
    return std::ranges::none_of(e.records, [&](const Record& r) {
      return r.part == Part::Output && is_float(r) && r.elements() > 1 && !is_known(r);
    });
  }
  bool is_head(const Entry& e) const {
    const auto is_matrix = [&](const Record& r) {
      const bool may_be = r.part == Part::Parameter || (!e.is_module && r.part == Part::Input);
      return may_be && r.shape.size() == 2 && is_float(r);
    };
    return std::ranges::any_of(e.records, is_matrix) && !has_unknown(e, Part::Input) &&
           !has_unknown(e, Part::Parameter);
  }

  const DumpFile& dump_;
  const bool is_in_first_;
  std::set<std::string> paired_;
  std::vector<const Record*> known_;  // those that were compared, and what heads make of them
  const Entry* last_ = nullptr;       // of the calls that agree
};

// "ln_f (LayerNorm) in the second run alone, lm_head (Linear) in the first run alone"
std::string listed(const std::vector<Between>& calls) {
  constexpr std::size_t kMost = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(calls.size(), kMost); ++i)
    text += fmt::format("{}{} in the {} run alone", i == 0 ? "" : ", ", calls[i].text(),
                        calls[i].is_in_first ? "first" : "second");
  if (calls.size() > kMost) text += fmt::format(" and {} more", calls.size() - kMost);
  return text;
}

}  // namespace

BeforeLoss before_loss(const std::vector<Compared>& all, const DumpFile& npu, const DumpFile& bench,
                       const Pairs& pairs) {
  Side sides[] = {Side(npu, true), Side(bench, false)};
  for (const EntryPair& p : pairs.entries)
    if (p.bench) sides[0].add_pair(*p.npu), sides[1].add_pair(*p.bench);
  std::size_t by_statistics = 0;
  const Entry* last = nullptr;
  const bool are_modules = std::ranges::any_of(all, [](const Compared& c) {
    return c.moment.entry->npu->is_module && is_forward(*c.moment.entry->npu);
  });
  for (const Compared& c : all) {
    const EntryPair& p = *c.moment.entry;
    if (!is_forward(*p.npu) || !c.records.npu || !c.records.bench) continue;
    by_statistics += is_by_statistics(c);
    sides[0].add_agreed(*p.npu, *c.records.npu, c.moment.gives);
    sides[1].add_agreed(*p.bench, *c.records.bench, c.moment.gives);
    if (c.moment.gives && p.npu->is_module == are_modules) last = p.npu;
  }
  BeforeLoss b;
  if (!last) return b;
  std::vector<Between> heads, others;
  for (Side& side : sides)
    for (const Between& call : side.between(are_modules))
      (call.is_head ? heads : others).push_back(call);
  // What has parameters of its own is more than a wrapping of other calls.
  std::ranges::stable_partition(others, &Between::has_parameters);
  const std::string behind = last->path.empty() ? last->name : last->path;
  if (!others.empty()) {
    b.text = fmt::format("; between {}, which agrees, and the loss was not compared: {}", behind,
                         listed(others));
    b.behind = behind;
    if (are_modules) b.module = others[0].call->path, b.kind = others[0].call->kind;
    return b;
  }
  const std::string what =
      heads.empty() ? "what comes before it" : "what goes into " + listed(heads);
  const char* const head = heads.empty() ? "" : "what that gives, ";
  if (by_statistics > 0)
    b.text = fmt::format(
        "; {} has the same statistics: {}other targets, another mean, or another order, which "
        "statistics do not see: dumps of `--task tensor` say",
        what, head);
  else
    b.text = fmt::format("; {} is the same: {}other targets, or another mean", what, head);
  return b;
}

}  // namespace aloft::compare
