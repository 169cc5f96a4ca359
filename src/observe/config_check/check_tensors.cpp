// What two runs learn from and begin with: batches and weights, by their hashes, or where a side
// has none by the figures that msprobe keeps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "observe/config_check/checks.h"
#include "observe/config_check/setting_values.h"

namespace aloft::config_check {

namespace {

// Figures of msprobe are sums in f32, in another order.
constexpr double kRounding = 1e-5;

std::string shape_text(const TensorFacts& f) {
  std::string text;
  for (const std::int64_t n : f.shape) text += (text.empty() ? "" : ",") + std::to_string(n);
  return "[" + text + "]";
}

std::string value_text(const TensorFacts& f) {
  std::string text =
      fmt::format("norm {:.6g}, max {:.6g}, min {:.6g}, mean {:.6g}", f.norm, f.max, f.min, f.mean);
  constexpr std::size_t kShown = 8;  // digits: they tell two tensors apart, and fit a column
  if (f.hashes)
    text = shape_text(f) + " " + hex16(f.hashes->ordered).substr(0, kShown) + ", " + text;
  return text;
}

bool is_near(double x, double y, double size) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (std::isinf(x) || std::isinf(y)) return x == y;
  // A tensor that has infinities has no size that what is finite could be held to.
  return std::abs(x - y) <= kRounding * (std::isinf(size) ? std::abs(x) : size);
}

bool same_figures(const TensorFacts& a, const TensorFacts& b) {
  double size = 0;  // of what is a number
  for (const double v : {a.max, a.min, b.max, b.min}) size = std::fmax(size, std::abs(v));
  return is_near(a.max, b.max, size) && is_near(a.min, b.min, size) &&
         is_near(a.mean, b.mean, size) && is_near(a.norm, b.norm, std::abs(a.norm));
}

// Whether the one is the other's transpose as both are known to lie: transformers' GPT-2 has its
// projections as [in, out].
bool same_but_turned(const NamedTensor& a, const NamedTensor& b) {
  return a.is_turned && b.is_turned && a.is_turned != b.is_turned && a.facts.hashes &&
         b.facts.hashes && likeness(a.facts, b.facts) == Likeness::Transposed;
}

std::string what_differs(const NamedTensor& of_a, const NamedTensor& of_b) {
  if (same_but_turned(of_a, of_b)) return "";
  const TensorFacts &a = of_a.facts, &b = of_b.facts;
  if (a.hashes && b.hashes) switch (likeness(a, b)) {
      case Likeness::Same:
        // A square one that was not turned with the others.
        if (a.hashes->ordered != a.hashes->transposed && of_a.is_turned && of_b.is_turned &&
            of_a.is_turned != of_b.is_turned)
          return "B's lies as A's does, and should be its transpose";
        return "";
      case Likeness::Transposed:
        return "B's is A's transposed";
      case Likeness::RowsMoved:
        return "the same rows in another order";
      case Likeness::Permuted:
        return a.shape == b.shape ? "the same values in another order"
                                  : "the same values in another shape";
      case Likeness::Other:
        break;
    }
  else if (same_figures(a, b))
    return "";
  if (const auto scale = scale_between(a, b)) return fmt::format("B's is A's times {:.6g}", *scale);
  if (a.hashes && b.hashes && a.shape != b.shape) return "another shape";
  return "other values";
}

// Tensors of a step by what they are called.
using Named = std::map<std::string, const TensorFacts*>;
using Places = std::map<std::pair<std::int64_t, std::int64_t>, const StepTensors*>;

Places places_of(const std::vector<StepTensors>& all) {
  Places places;
  for (const StepTensors& s : all) places[{s.step, s.rank}] = &s;
  return places;
}

// What wrappers put in front of the names of a model's weights.
std::string_view without_wrappers(std::string_view name) {
  constexpr std::string_view kWrappers[] = {"module.", "model.", "transformer.", "_orig_mod.",
                                            "backbone."};
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view w : kWrappers)
      if (name.starts_with(w)) name.remove_prefix(w.size()), again = true;
  }
  return name;
}

struct TensorPair {
  const NamedTensor *a = nullptr, *b = nullptr;
  const char* matched = "";
};

// By name, by name without wrappers, where both have hashes by the values, and if asked for by the
// order in which they come: programs name what a step is given as they like.
std::vector<TensorPair> pair_tensors(const std::vector<NamedTensor>& a,
                                     const std::vector<NamedTensor>& b, bool by_place) {
  std::vector<TensorPair> pairs;
  for (const NamedTensor& t : a) pairs.push_back({&t});
  std::set<const NamedTensor*> taken;
  const auto by = [&](const char* how, const auto& key_of) {
    std::multimap<std::string, const NamedTensor*> left;
    for (const NamedTensor& t : b)
      if (const std::string key = key_of(t); !key.empty() && !taken.contains(&t))
        left.emplace(key, &t);
    for (TensorPair& p : pairs) {
      const auto it = p.b ? left.end() : left.find(key_of(*p.a));
      if (it == left.end()) continue;
      p.b = it->second, p.matched = how;
      taken.insert(it->second);
      left.erase(it);
    }
  };
  by("name", [](const NamedTensor& t) { return t.name; });
  by("name", [](const NamedTensor& t) { return std::string(without_wrappers(t.name)); });
  by("values", [](const NamedTensor& t) {
    // A tensor of one value, such as the ones of a norm, is like any other such.
    return t.facts.hashes && t.facts.max != t.facts.min ? hex16(t.facts.hashes->any_order)
                                                        : std::string();
  });
  auto next = b.begin();
  for (TensorPair& p : pairs) {
    if (!by_place || p.b) continue;
    while (next != b.end() && taken.contains(&*next)) ++next;
    if (next == b.end()) break;
    p.b = &*next, p.matched = "place";
    taken.insert(&*next);
  }
  for (const NamedTensor& t : b)
    if (!taken.contains(&t)) pairs.push_back({nullptr, &t});
  return pairs;
}

// |x - y| of |x|; "" where there is nothing to divide by.
std::string relative(double x, double y) {
  const double share = std::abs(x - y) / std::abs(x);
  return x == 0 || std::isnan(share) ? "" : shortest(share);
}

// `tag`: what msprobe calls it.
std::vector<std::string> msprobe_row(const StepTensors& s, const TensorPair& p,
                                     const std::string& tag, bool is_equal) {
  const char* const equal = !p.a       ? "only cmp have"
                            : !p.b     ? "only bench have"
                            : is_equal ? "True"
                                       : "False";
  std::vector<std::string> row = {std::to_string(s.step), std::to_string(s.rank), tag, equal};
  for (const auto figure :
       {&TensorFacts::max, &TensorFacts::min, &TensorFacts::mean, &TensorFacts::norm})
    row.push_back(p.a && p.b ? relative(p.a->facts.*figure, p.b->facts.*figure) : "");
  return row;
}

// msprobe names what a step is given by its place among the arguments.
std::string tag_of(const StepTensors& s, const TensorPair& p, bool by_place) {
  const std::string& name = p.a ? p.a->name : p.b->name;
  if (!by_place || !p.a || name.starts_with("args.") || name.starts_with("kwargs.")) return name;
  return "args." + std::to_string(p.a - s.tensors.data());
}

// "step 2, weight": of the first step alone the name stands for itself.
std::string place_text(const StepTensors& s, const std::string& name) {
  std::string text = s.rank > 0 ? fmt::format("rank {}, ", s.rank) : "";
  return fmt::format("step {}, {}{}", s.step, text, name);
}

// Of a folder is known which projections lie as [in, out], of a file that torch has saved it is
// not. Where all of them that are no square are turned, the file lies the other way as a whole.
void settle_how_they_lie(std::vector<NamedTensor>& open, const std::vector<NamedTensor>& known) {
  std::vector<std::size_t> others;  // in `open`, what is turned in `known`
  bool is_turned = false;
  for (const TensorPair& p : pair_tensors(open, known, false)) {
    if (!p.a || !p.b || p.b->is_turned != true || p.a->is_turned) continue;
    others.push_back(static_cast<std::size_t>(p.a - open.data()));
    const std::vector<std::int64_t>& shape = p.b->facts.shape;
    if (shape.size() != 2 || shape[0] == shape[1]) continue;
    if (p.a->facts.shape != std::vector{shape[1], shape[0]}) return;
    is_turned = true;
  }
  if (!is_turned) return;
  for (const std::size_t i : others) open[i].is_turned = false;
}

// The tensor of the same side that a matrix holds the values of, as a tied head does; null: none.
const NamedTensor* tied_to(const NamedTensor& t, const std::vector<NamedTensor>& side) {
  const TensorFacts& f = t.facts;
  if (!f.hashes || f.shape.size() != 2 || f.max == f.min) return nullptr;
  for (const NamedTensor& other : side)
    if (&other != &t && other.facts.hashes == f.hashes && other.facts.shape == f.shape)
      return &other;
  return nullptr;
}

struct Words {
  const char* differ;
  bool by_place;
};

Section check_tensors(const char* name, const std::vector<StepTensors>& a,
                      const std::vector<StepTensors>& b, const Words& words) {
  Section section{name, {}};
  const Places others = places_of(b), own = places_of(a);
  if (a.empty() || b.empty()) return section;
  const auto only = [&](const StepTensors& s, bool is_of_a) {
    Finding f;
    f.level = Level::Warning;
    (is_of_a ? f.a_name : f.b_name) = place_text(s, fmt::format("{} tensors", s.tensors.size()));
    f.advice =
        fmt::format("{} alone has this step or rank: give both the same ones", is_of_a ? "A" : "B");
    section.findings.push_back(std::move(f));
  };
  for (const StepTensors& s : b)
    if (!own.contains({s.step, s.rank})) only(s, false);
  for (const StepTensors& s : a) {
    const auto it = others.find({s.step, s.rank});
    if (it == others.end()) {
      only(s, true);
      continue;
    }
    const std::vector<NamedTensor>& theirs = it->second->tensors;
    for (const TensorPair& p : pair_tensors(s.tensors, theirs, words.by_place)) {
      Finding f;
      f.matched = p.matched;
      if (p.a) f.a_name = place_text(s, p.a->name), f.a_value = value_text(p.a->facts);
      if (p.b) f.b_name = place_text(s, p.b->name), f.b_value = value_text(p.b->facts);
      if (!p.a || !p.b) {
        const NamedTensor* const tied =
            words.by_place ? nullptr : tied_to(p.a ? *p.a : *p.b, p.a ? s.tensors : theirs);
        f.level = tied ? Level::Pass : Level::Warning;
        f.advice = fmt::format("side {} alone has it", p.a ? "A" : "B");
        if (tied) f.advice += ", with the values of " + tied->name + ": the two are tied";
      } else if (const std::string what = what_differs(*p.a, *p.b); !what.empty()) {
        f.level = Level::Error;
        f.advice = what + ": " + words.differ;
      }
      f.row = msprobe_row(s, p, tag_of(s, p, words.by_place), f.level == Level::Pass);
      section.findings.push_back(std::move(f));
    }
  }
  return section;
}

// How many examples of each hash there are, of a tensor in all steps.
std::map<std::uint64_t, std::int64_t> examples_of(const std::vector<StepTensors>& batches,
                                                  const std::string& name) {
  std::map<std::uint64_t, std::int64_t> all;
  for (const StepTensors& s : batches)
    for (const NamedTensor& t : s.tensors)
      if (t.name == name && t.facts.hashes)
        for (const std::uint64_t row : t.facts.hashes->rows) ++all[row];
  return all;
}

// The examples of a tensor, in the order in which the steps have them.
std::vector<std::uint64_t> sequence_of(const std::vector<StepTensors>& batches,
                                       const std::string& name) {
  std::vector<std::uint64_t> all;
  for (const StepTensors& s : batches)
    for (const NamedTensor& t : s.tensors)
      if (t.name == name && t.facts.hashes)
        all.insert(all.end(), t.facts.hashes->rows.begin(), t.facts.hashes->rows.end());
  return all;
}

// How many examples a step of a recipe has, over its micro-batches; nothing of other programs, or
// of batches that are not all alike.
std::optional<std::int64_t> examples_a_step(const Side& side, const std::string& name) {
  const auto settings = side.settings.find("static");
  if (settings == side.settings.end()) return std::nullopt;
  const auto accumulate = std::ranges::find(settings->second, "train.accumulate", &Setting::key);
  if (accumulate == settings->second.end()) return std::nullopt;
  const auto parts = parse_int(config_check::value_text(*accumulate));
  const auto of_all = static_cast<std::int64_t>(sequence_of(side.batches, name).size());
  std::int64_t batch = 0;
  for (const NamedTensor& t : side.batches[0].tensors)
    if (t.name == name && t.facts.hashes)
      batch = static_cast<std::int64_t>(t.facts.hashes->rows.size());
  if (!parts || batch * std::ssize(side.batches) != of_all) return std::nullopt;
  return batch * *parts;
}

// Batches that are cut otherwise out of the same examples: what there is to say of that, of them
// all and of each. Where each step has the same ones, in as many micro-batches as a side likes,
// nothing differs.
std::optional<Finding> cut_otherwise(const Side& a, const Side& b, const std::string& name,
                                     std::vector<Finding>& findings) {
  const auto x = sequence_of(a.batches, name), y = sequence_of(b.batches, name);
  const std::size_t n = std::min(x.size(), y.size());
  if (n == 0 || !std::equal(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n), y.begin()))
    return std::nullopt;
  const auto of_a = examples_a_step(a, name), of_b = examples_a_step(b, name);
  const bool is_alike = of_a && of_a == of_b;
  std::string advice =
      is_alike ? fmt::format(
                     "the same examples in the same order, cut into other micro-batches: "
                     "{} a step on both sides",
                     *of_a)
               : fmt::format(
                     "the first {} examples are the same, in the same order: the batch "
                     "alone differs",
                     n);
  for (Finding& f : findings)
    if (f.is_of_both() && f.a_name.ends_with(", " + name)) {
      if (is_alike) f.level = Level::Pass;
      f.advice = is_alike ? "" : "the same examples in the same order, in batches of another size";
    }
  return Finding{is_alike ? Level::Pass : Level::Error,
                 "all steps, " + name,
                 "all steps, " + name,
                 fmt::format("{} examples", x.size()),
                 fmt::format("{} examples", y.size()),
                 "name",
                 advice};
}

}  // namespace

Section check_batches(const Side& a, const Side& b) {
  Section section =
      check_tensors("dataset", a.batches, b.batches,
                    {"compare data, tokenizer, batch, context, sampling and seed", true});
  if (section.level() != Level::Error || a.batches.empty()) return section;
  bool are_cut_otherwise = true;  // all that differ, and nothing else
  // Of all batches together: are these the same examples, elsewhere?
  for (const NamedTensor& t : a.batches[0].tensors) {
    const bool is_other = std::ranges::any_of(section.findings, [&](const Finding& f) {
      return f.level == Level::Error && f.a_name.ends_with(", " + t.name);
    });
    if (!is_other) continue;
    if (auto said = cut_otherwise(a, b, t.name, section.findings)) {
      are_cut_otherwise = are_cut_otherwise && said->level == Level::Pass;
      section.findings.push_back(std::move(*said));
      continue;
    }
    are_cut_otherwise = false;
    const auto x = examples_of(a.batches, t.name), y = examples_of(b.batches, t.name);
    std::int64_t common = 0, all = 0;
    for (const auto& [row, count] : x) {
      const auto it = y.find(row);
      all += count;
      common += it == y.end() ? 0 : std::min(count, it->second);
    }
    if (all == 0 || y.empty()) continue;
    std::string advice = fmt::format("{} of {} examples are in both", common, all);
    if (common == all) advice += ": the data is the same, its order is not: compare the seeds";
    section.findings.push_back({Level::Error, "all steps, " + t.name, "all steps, " + t.name,
                                fmt::format("{} examples", all),
                                fmt::format("{} in common", common), "name", advice});
  }
  // A side of smaller micro-batches has more of them.
  if (are_cut_otherwise && section.level() != Level::Error)
    for (Finding& f : section.findings)
      if (!f.is_of_both()) f.level = Level::Pass, f.advice.clear();
  return section;
}

Section check_weights(const Side& a, const Side& b) {
  std::vector<StepTensors> x = a.weights, y = b.weights;
  for (StepTensors& s : x)
    for (StepTensors& t : y) {
      if (s.step != t.step || s.rank != t.rank) continue;
      settle_how_they_lie(s.tensors, t.tensors);
      settle_how_they_lie(t.tensors, s.tensors);
    }
  return check_tensors("weights", x, y, {"load the same checkpoint on both sides", false});
}

}  // namespace aloft::config_check
