#include "observe/compare/remarks.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "observe/compare/noise.h"

namespace aloft::compare {

namespace {

const Record& record_of(const Compared& c) {
  return c.records.npu ? *c.records.npu : *c.records.bench;
}
bool is_matrix(const Compared& c) { return record_of(c).shape.size() > 1; }

double median(std::vector<double> sizes) {
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  return *middle;
}

// Whether those that agree do so, and are not off as the others are with wider limits.
bool are_told_apart(const std::vector<const Compared*>& off,
                    const std::vector<const Compared*>& right) {
  const auto sizes = [](const std::vector<const Compared*>& of) {
    std::vector<double> all;
    for (const Compared* c : of) all.push_back(c->difference.size);
    return all;
  };
  return right.size() >= 2 && !off.empty() && median(sizes(right)) <= 0.05 * median(sizes(off));
}

bool has_part(const Compared& c, Part part) { return c.records.npu && c.records.npu->part == part; }

// A table that agrees as far as statistics see it, in what it gives too: a call of a module that
// takes no floats, and has a matrix.
bool is_table_alike(const std::vector<Compared>& all, const Compared& c) {
  const Entry& e = *c.moment.entry->npu;
  if (!e.is_module || e.direction != Direction::Forward || !has_part(c, Part::Output)) return false;
  if (!is_by_statistics(c) || c.difference.is_more()) return false;
  const auto takes_floats = [](const RecordPair& r) {
    return r.npu && r.npu->part == Part::Input && unit_of(r.npu->type) > 0;
  };
  return std::ranges::none_of(c.moment.entry->records, takes_floats) &&
         std::ranges::any_of(all, [&](const Compared& other) {
           return other.moment.entry == c.moment.entry && has_part(other, Part::Parameter) &&
                  is_matrix(other);
         });
}

// Whether what two tables give was added up, and the sum agreed: tokens in another order would have
// met other positions, which changes its norm by more than the rounding of float32.
bool has_agreed_behind_two_tables(const std::vector<Compared>& all, const Compared& first) {
  constexpr double kTight = 1e-4;
  int tables = 0;
  for (const Compared& c : all) {
    if (&c == &first) break;
    if (is_table_alike(all, c))
      ++tables;
    else if (tables > 1 && c.moment.entry->npu->is_module && is_by_statistics(c) &&
             c.difference.allowed < kTight && !has_part(c, Part::Parameter))
      return true;
  }
  return false;
}

// Whether the module of the same name in another layer took the same: rows in another order would
// have made that something else, too.
bool has_agreed_in_another_layer(const std::vector<Compared>& all, const Compared& first) {
  const auto name_of = [](const Entry& e) {
    std::string name = e.path;
    std::erase_if(name, [](char c) { return c >= '0' && c <= '9'; });
    return name;
  };
  const Entry& own = *first.moment.entry->npu;
  for (const Compared& c : all) {
    if (&c == &first) break;  // what comes behind it does not show anything
    const Entry& e = *c.moment.entry->npu;
    if (e.is_module && e.direction == own.direction && has_part(c, Part::Input) &&
        !c.difference.is_more() && e.path != own.path && name_of(e) == name_of(own))
      return true;
  }
  return false;
}

}  // namespace

bool is_by_statistics(const Compared& c) {
  constexpr std::string_view kFigures[] = {"Norm", "Max", "Min", "Mean", "nan", "inf", "-inf"};
  return std::ranges::find(kFigures, c.difference.of) != std::end(kFigures);
}

std::optional<double> common_ratio(const Compared& c) {
  if (!c.records.npu || !c.records.bench) return std::nullopt;
  const Record &n = *c.records.npu, &b = *c.records.bench;
  for (const Record* const r : {&n, &b})
    for (const Figure* const f : {&r->norm, &r->max, &r->min, &r->mean})
      if (!f->number || !std::isfinite(*f->number)) return std::nullopt;
  if (!(*n.norm.number > 0) || !(*b.norm.number > 0)) return std::nullopt;
  const double ratio = *n.norm.number / *b.norm.number;
  const double near = std::max(c.difference.allowed, 1e-4);
  if (std::abs(ratio - 1) <= 4 * near) return std::nullopt;
  const double largest = std::max(std::abs(*b.max.number), std::abs(*b.min.number));
  const double typical = *b.norm.number / std::sqrt(std::max(1.0, b.elements()));
  const auto is_same = [&](const Figure& ours, const Figure& theirs, double size) {
    return std::abs(*ours.number / ratio - *theirs.number) <= near * size;
  };
  const bool are_same = is_same(n.max, b.max, largest) && is_same(n.min, b.min, largest) &&
                        is_same(n.mean, b.mean, typical);
  return are_same ? std::optional(ratio) : std::nullopt;
}

std::string data_remark(const std::vector<Compared>& all, const Compared& first) {
  const bool is_seen_by_statistics = std::ranges::any_of(all, [&](const Compared& c) {
    return c.moment.entry == first.moment.entry && has_part(c, Part::Parameter) &&
           is_by_statistics(c);
  });
  if (!is_seen_by_statistics) return "; its parameters are the same: it reads other data";
  return "; its parameters have the same statistics: it reads other data, or their rows lie in "
         "another order, which statistics do not see: dumps of `--task tensor` say";
}

std::string layout_remark(const std::vector<Compared>& all, const Compared& first) {
  if (!has_part(first, Part::Output)) return "";
  for (const Compared& c : all)
    if (c.moment.entry == first.moment.entry && c.is_turned)
      return "; its " + c.records.npu->own +
             " is that of the other run with rows as columns: where both runs lay it out alike, it "
             "was loaded transposed";
  return "";
}

std::string group_remark(const std::vector<Compared>& all, const Compared& first,
                         const Training& training) {
  const Part part = record_of(first).part;
  if (part != Part::Update && part != Part::Parameter) return "";
  std::vector<const Compared*> off, right;
  for (const Compared& c : all)
    if (record_of(c).part == part) (c.difference.is_more() ? off : right).push_back(&c);
  if (!are_told_apart(off, right)) return "";
  std::set<std::string_view> kinds;
  for (const Compared* c : off) kinds.insert(c->moment.entry->npu->kind);
  const bool is_one_kind =
      kinds.size() == 1 && off.size() >= 2 && std::ranges::none_of(right, [&](const Compared* c) {
        return kinds.contains(c->moment.entry->npu->kind);
      });
  if (is_one_kind) return "; only parameters of " + std::string(*kinds.begin()) + " are off";
  const auto decay = training.settings.find("weight_decay");
  // What is left out of the update says nothing of what decays.
  const bool are_both = first.records.npu && first.records.bench;
  const bool may_decay = part == Part::Update && are_both && decay != training.settings.end();
  const auto all_are = [](const std::vector<const Compared*>& of, bool matrices) {
    return std::ranges::all_of(of, [&](const Compared* c) { return is_matrix(*c) == matrices; });
  };
  if (all_are(off, true) && all_are(right, false))
    return std::string("; only matrices are off") +
           (may_decay ? ", the parameters that decay by the usual rule" : "");
  if (all_are(off, false) && std::ranges::any_of(right, [](auto* c) { return is_matrix(*c); }) &&
      may_decay)
    return "; only parameters that are no matrices are off, which do not decay by the usual rule";
  return "";
}

std::string order_remark(const std::vector<Compared>& all, const Compared& first) {
  const Entry& e = *first.moment.entry->npu;
  if (!e.is_module || e.direction != Direction::Forward || !is_by_statistics(first)) return "";
  if (record_of(first).part == Part::Input && !has_agreed_in_another_layer(all, first) &&
      !has_agreed_behind_two_tables(all, first) &&
      std::ranges::any_of(all, [&](const Compared& c) { return is_table_alike(all, c); }))
    return "; statistics see no order: whether a table before it was read in the same one, by the "
           "same tokens, dumps of `--task tensor` say";
  if (record_of(first).part != Part::Output) return "";
  bool takes_floats = false, has_matrix = false;
  for (const Compared& c : all) {
    if (c.moment.entry != first.moment.entry || !is_by_statistics(c)) continue;
    const Record& r = record_of(c);
    takes_floats = takes_floats || (r.part == Part::Input && unit_of(r.type) > 0);
    has_matrix = has_matrix || (r.part == Part::Parameter && is_matrix(c));
  }
  if (!takes_floats || !has_matrix) return "";
  return "; statistics see no order: whether what it takes, or its weight, is laid out otherwise, "
         "dumps of `--task tensor` say";
}

}  // namespace aloft::compare
