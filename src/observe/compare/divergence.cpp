#include "observe/compare/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/text.h"
#include "observe/compare/before_loss.h"
#include "observe/compare/noise.h"
#include "observe/compare/operand_pairs.h"
#include "observe/compare/remarks.h"

namespace aloft::compare {

namespace {

bool is_forward(const Entry& e) { return e.direction == Direction::Forward; }

enum class Pass { Forward, Backward, Update };

Pass pass_of(const Compared& c) {
  const Entry& e = *c.moment.entry->npu;
  const Record& r = c.records.npu ? *c.records.npu : *c.records.bench;
  if (r.part == Part::Update) return Pass::Update;
  return is_forward(e) && r.part != Part::Gradient ? Pass::Forward : Pass::Backward;
}

const char* word_of(Pass pass) {
  if (pass == Pass::Update) return "update";
  return pass == Pass::Forward ? "forward" : "backward";
}

// Whether it is what a call was given by others.
bool is_given_to(const Compared& c) { return c.records.npu && c.records.npu->part == Part::Input; }

const Entry* forward_of(const DumpFile& dump, std::string_view path) {
  for (const Entry& e : dump.entries)
    if (e.is_module && e.path == path && is_forward(e)) return &e;
  return nullptr;
}

// The nearest module around a path that is called; "" where that is the model itself.
std::string module_around(const DumpFile& dump, std::string_view path) {
  for (std::size_t dot = path.rfind('.'); dot != std::string_view::npos && dot > 0;
       dot = path.rfind('.', dot - 1))
    if (forward_of(dump, path.substr(0, dot))) return std::string(path.substr(0, dot));
  return "";
}

// Of a function in a dump that does not say who calls it, who does so in the other run.
std::string module_of(const EntryPair& pair) {
  const Entry& e = *pair.npu;
  if (e.is_module) return e.path;
  if (e.caller || !pair.bench) return e.caller.value_or("");
  return pair.bench->caller.value_or("");
}

// "File /a/gpt2.py, line 31, in forward, \n x = ..." as "gpt2.py:31".
std::string short_line(std::string_view text) {
  if (!text.starts_with("File ")) return "";
  text.remove_prefix(5);
  const std::size_t comma = text.find(", line ");
  if (comma == std::string_view::npos) return "";
  std::string_view file = text.substr(0, comma), rest = text.substr(comma + 7);
  file = file.substr(file.rfind('/') + 1);
  return std::string(file) + ":" +
         std::string(rest.substr(0, rest.find_first_not_of("0123456789")));
}

// In the second run: of the module, or of the call, which are the first's.
std::string other_line(const std::vector<Compared>& all, const DumpFile& bench,
                       const EntryPair& shows, const Entry* module) {
  std::vector<const Entry*> calls;
  for (const Compared& c : all)
    if (module && c.moment.entry->npu == module && c.moment.entry->bench)
      calls.push_back(c.moment.entry->bench);
  if (shows.bench) calls.insert(shows.npu->is_module ? calls.end() : calls.begin(), shows.bench);
  for (const Entry* call : calls)
    if (const auto it = bench.lines.find(call->name); it != bench.lines.end())
      if (std::string line = short_line(it->second); !line.empty()) return line;
  return "";
}

// Of the call: of a function its own, of what a module takes or gives that of the module.
std::string line_of(const DumpFile& dump, const Entry& e, std::string_view module) {
  const Entry* const forward = forward_of(dump, module);
  const std::string around = forward ? forward->name : e.name;
  for (const std::string& name : {e.is_module ? around : e.name, e.is_module ? e.name : around})
    if (const auto it = dump.lines.find(name); it != dump.lines.end())
      if (std::string line = short_line(it->second); !line.empty()) return line;
  return "";
}

// "h.0.mlp" of a module, "h.0.mlp/linear#0" of an op of Aloft's.
std::string call_text(const Entry& e) {
  if (!e.tap.empty()) return e.tap;
  return e.path.empty() ? e.name : e.path;
}

// What of the call is off: "what it takes (input 0)".
std::string subject_of(const Compared& c) {
  const Record& r = c.records.npu ? *c.records.npu : *c.records.bench;
  const Entry& e = *c.moment.entry->npu;
  const std::string call = call_text(e);
  if (r.part == Part::Parameter)
    return fmt::format("the parameter {} of {} is another one before the step", r.own, call);
  if (r.part == Part::Update) return fmt::format("what the update adds to {}.{}", call, r.own);
  if (r.part == Part::Gradient) return fmt::format("the gradient of {}.{}", call, r.own);
  // Aloft's ops of the backward pass give what they give, be it a gradient or not.
  if (!e.tap.empty())
    return fmt::format("what {} {} ({})", call, r.part == Part::Input ? "takes" : "gives", r.own);
  const bool is_taken = (r.part == Part::Input) == is_forward(e);
  return fmt::format("{}what {} {} ({})", is_forward(e) ? "" : "the gradient of ", call,
                     is_taken ? "takes" : "gives", r.own);
}

const Figure& figure_named(const Record& r, std::string_view name) {
  if (name == "Max") return r.max;
  if (name == "Min") return r.min;
  if (name == "nan") return r.nan;
  if (name == "inf") return r.inf;
  if (name == "-inf") return r.minus_inf;
  return name == "Mean" ? r.mean : r.norm;
}

// With as many digits as differences are seen in: of float64 all, of whole numbers as they stand
// in the dump.
std::string figure_text(const Record& r, std::string_view name) {
  const Figure& f = figure_named(r, name);
  if (!f.number || unit_of(r.type) == 0) return f.text;
  return number_text(*f.number, r.type);
}

std::string shape_text(const Record& r) {
  std::string text = "[";
  for (const std::int64_t n : r.shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

std::string size_of(const Compared& c) {
  const Difference& d = c.difference;
  if (!c.records.npu) return "is missing";
  if (!c.records.bench) return "is there in the first run alone";
  const Record &n = *c.records.npu, &b = *c.records.bench;
  if (d.of == "the shape")
    return fmt::format("has the shape {} against {}", shape_text(n), shape_text(b));
  if (d.of == "the type") return fmt::format("has the type {} against {}", n.type, b.type);
  if (!d.seen.empty()) return "has " + d.seen;
  const bool is_figure = is_by_statistics(c);
  if (is_figure && !std::isfinite(d.size))
    return fmt::format("has the {} {} against {}", d.of, figure_text(n, d.of),
                       figure_text(b, d.of));
  if (d.of == "the hash of the bytes") return "has other bytes";
  const bool is_count = d.of == "nan" || d.of == "inf" || d.of == "-inf";
  std::string text = fmt::format("is off by {} in {}{}", in_words(d.size),
                                 is_count ? "the number of elements that are " : "", d.of);
  if (is_figure)
    text += fmt::format(" ({}{} against {})", figure_text(n, d.of),
                        c.factor == 1 || is_count ? "" : fmt::format(" times {:g}", c.factor),
                        figure_text(b, d.of));
  if (is_figure && !c.records.has_same_size())
    text += fmt::format(" of {} against {}, the smaller one taken once for each row", shape_text(n),
                        shape_text(b));
  return text + fmt::format(", where rounding explains {}", in_words(d.allowed));
}

// Where nearly all gradients are the same times those of the other run, that is said.
std::string common_factor(const std::vector<Compared>& all) {
  std::vector<double> factors;
  for (const Compared& c : all) {
    if (!c.records.npu || !c.records.bench || pass_of(c) != Pass::Backward) continue;
    const Figure &n = c.records.npu->norm, &b = c.records.bench->norm;
    if (n.number && b.number && *b.number > 0 && std::isfinite(*n.number / *b.number))
      factors.push_back(c.factor * *n.number / *b.number);
  }
  if (factors.size() < 4) return "";
  std::ranges::sort(factors);
  const double middle = factors[factors.size() / 2];
  const auto same = std::ranges::count_if(
      factors, [&](double f) { return std::abs(f - middle) <= 0.01 * middle; });
  if (std::abs(middle - 1) < 0.01 || 10 * same < 9 * static_cast<std::ptrdiff_t>(factors.size()))
    return "";
  return fmt::format(
      "; all gradients are {:.4g} times those of the second run: another loss scale, or a loss "
      "that "
      "is averaged otherwise",
      middle);
}

}  // namespace

std::string in_words(double relative) {
  return std::isfinite(relative) ? fmt::format("{:.2g}", relative) : "more than any number";
}

namespace {

// A call that takes nothing but whole numbers, and whose parameters are the same in both runs, as
// far as they were compared, such as an embedding: what it reads is other, unless all it gives is
// that of the other run times a constant.
bool reads_other_data(const std::vector<Compared>& all, const Compared& c) {
  const Entry& e = *c.moment.entry->npu;
  if (!e.is_module || !is_forward(e) || !c.records.npu || c.records.npu->part != Part::Output)
    return false;
  const auto takes_floats = [](const RecordPair& r) {
    return r.npu && r.npu->part == Part::Input && unit_of(r.npu->type) > 0;
  };
  bool has_table = false;
  for (const Compared& other : all)
    if (other.moment.entry == c.moment.entry && other.records.npu &&
        other.records.npu->part == Part::Parameter)
      has_table = true;
  return has_table && !common_ratio(c) &&
         std::ranges::none_of(c.moment.entry->records, takes_floats);
}

// Whole numbers that a call is given: tokens, and behind other calls what the model makes of them.
bool is_data(const Compared& c) {
  const RecordPair& r = c.records;
  return is_forward(*c.moment.entry->npu) && r.npu && r.bench && r.npu->part == Part::Input &&
         unit_of(r.npu->type) == 0;
}

std::string data_sentence(const Compared& c) {
  const Record &n = *c.records.npu, &b = *c.records.bench;
  const std::string& of = c.difference.of;
  if (of == "the shape")
    return fmt::format(
        "data: {} has the shape {} against {}: batches of another "
        "size",
        subject_of(c), shape_text(n), shape_text(b));
  std::string text = fmt::format("data: {} is other", subject_of(c));
  if (!c.difference.seen.empty())
    text += " (" + c.difference.seen + ")";
  else if (is_by_statistics(c))
    text += fmt::format(" ({} {} against {})", of, figure_text(n, of), figure_text(b, of));
  return text + ": other examples, or in another order";
}

// Whether a gradient is not finite because of the loss scale of the run that skipped its update: it
// is finite in the other one, and under that scale it would come near to where f16 ends.
bool is_overflow_of_scale(const Compared& c) {
  if (!c.records.npu || !c.records.bench || pass_of(c) != Pass::Backward) return false;
  const auto largest = [](const Record& r) {
    double most = 0;
    for (const Figure* f : {&r.max, &r.min, &r.norm}) {
      if (!f->number || !std::isfinite(*f->number)) return std::numeric_limits<double>::infinity();
      if (f != &r.norm) most = std::max(most, std::abs(*f->number));
    }
    return most;
  };
  const double n = largest(*c.records.npu), b = largest(*c.records.bench);
  if (std::isfinite(n) == std::isfinite(b)) return false;
  // What is added up within a call may be that much larger than what it gives.
  constexpr double kWithin = 16, kLargestF16 = 65504;
  return kWithin * (std::isfinite(b) ? b / c.factor : n * c.factor) >= kLargestF16;
}

std::string place_of(const std::vector<Compared>& all, const Compared& c, bool is_loss) {
  const Record& r = c.records.npu ? *c.records.npu : *c.records.bench;
  if (r.part == Part::Update) return "update";
  if (r.part == Part::Gradient) return "gradient";
  if (r.part == Part::Parameter) return "parameter";
  if (is_loss) return "loss";
  if (reads_other_data(all, c)) return "data";
  return word_of(pass_of(c));
}

// Where the gradients of nearly all parameters differ, and what flows back does not. A micro-batch
// more or less changes many of them by far more than a low type rounds.
std::string only_sums(const std::vector<Compared>& all) {
  constexpr double kOfALowType = 0x1p-7;  // the distance of 1 to the next number of bfloat16
  std::ptrdiff_t flows = 0, gradients = 0, off = 0;
  double most = 0;
  for (const Compared& c : all) {
    if (!c.records.npu || !c.records.bench || pass_of(c) != Pass::Backward) continue;
    if (c.records.npu->part != Part::Gradient) {
      flows += c.difference.is_more();
      continue;
    }
    ++gradients;
    if (!c.difference.is_more()) continue;
    ++off, most = std::max(most, c.difference.size);
  }
  if (flows > 0 || gradients < 4 || 2 * off < gradients) return "";
  return std::string("; what flows back is the same, and gradients of most parameters are not") +
         (most < kOfALowType
              ? fmt::format(", by {} at most: they may be summed or kept in a low type",
                            in_words(most))
              : ": they are summed over other micro-batches, clipped between them, or were not set "
                "to zero");
}

Divergence of_records(const std::vector<Compared>& all, std::vector<Compared>::const_iterator it,
                      const DumpFile& npu, const DumpFile* bench) {
  const Entry& e = *it->moment.entry->npu;
  Divergence d;
  d.compared = &*it;
  d.module = module_of(*it->moment.entry);
  d.kind = e.kind;
  bool has_agreed = false;  // anything in this direction
  for (auto before = it; before != all.begin() && d.behind.empty();) {
    const Compared& c = *--before;
    const Entry& other = *c.moment.entry->npu;
    if (is_forward(other) != is_forward(e)) break;
    has_agreed = true;
    if (c.moment.gives && call_text(other) != call_text(e)) d.behind = call_text(other);
  }
  if (pass_of(*it) == Pass::Update) d.behind.clear();  // updates do not follow from one another
  // What a call takes is computed outside of it.
  bool is_loss = false;
  if (is_given_to(*it) && e.is_module) {
    // What reaches the first of a backward pass comes from the loss.
    is_loss = !is_forward(e) && !has_agreed;
    d.module = is_loss ? "" : module_around(npu, e.path);
    const Entry* const around = forward_of(npu, d.module);
    d.kind = around ? around->kind : "";
  }
  d.place = place_of(all, *it, is_loss);
  d.line = line_of(npu, e, d.module);
  if (d.line.empty() && bench)
    d.line = other_line(all, *bench, *it->moment.entry, forward_of(npu, d.module));
  if (is_data(*it) && !has_agreed) {
    d.place = "data";
    d.sentence = data_sentence(*it);
    if (!d.line.empty()) d.sentence += "; called at " + d.line;
    return d;
  }
  const std::string module = !d.module.empty() ? d.module
                             : is_forward(e)   ? "the model itself"
                                               : "the loss, or the model itself";
  d.sentence = fmt::format("{}, {}{}{}: {}", word_of(pass_of(*it)), module,
                           d.kind.empty() ? "" : " (" + d.kind + ")",
                           d.behind.empty() ? "" : ", behind " + d.behind, subject_of(*it));
  if (it->records.npu && it->records.npu->part == Part::Parameter)
    d.sentence += ": it " + size_of(*it);
  else
    d.sentence += " " + size_of(*it);
  if (d.place == "data") d.sentence += data_remark(all, *it);
  d.arguments = lone_arguments(all, *it, d.module);
  d.sentence += operand_remark(all, *it) + argument_remark(d.arguments);
  if (bench) d.functions = lone_functions(all, *it, npu, *bench);
  d.sentence += function_remark(d.functions, e.is_module);
  if (d.place == "forward" && it->records.npu->part == Part::Output)
    if (const auto ratio = common_ratio(*it))
      d.sentence += fmt::format(
          "; all of its figures are {:.4g} times those of the second run: another factor, or one "
          "that stands elsewhere",
          *ratio);
  if (!d.line.empty()) d.sentence += "; called at " + d.line;
  if (!is_forward(e)) d.sentence += common_factor(all);
  if (d.place == "gradient") d.sentence += only_sums(all);
  d.sentence +=
      group_remark(all, *it, npu.training) + order_remark(all, *it) + layout_remark(all, *it);
  return d;
}

void add_before_loss(const BeforeLoss& before, Divergence& d) {
  d.sentence += before.text;
  d.module = before.module, d.kind = before.kind, d.behind = before.behind;
}

Divergence of_loop(const TrainingDifference& t, const BeforeLoss& before) {
  Divergence d;
  d.place = t.place;
  d.sentence = t.place + ": " + t.text;
  if (t.place == "loss") add_before_loss(before, d);
  if (t.skipped_under > 1)
    d.sentence += fmt::format(
        "; its gradients are not finite under its loss scale of {:g}, which comes down so: it is "
        "an update behind from here on",
        t.skipped_under);
  if (t.place == "gradient norm")
    d.sentence += "; the gradients themselves are the same: clipped, unscaled or summed otherwise";
  return d;
}

// Of elements beside a NaN statistics say nothing.
std::string hidden_text(const std::vector<Compared>& all) {
  const auto holds_nan = [](const Record* r) {
    return r && r->norm.number && std::isnan(*r->norm.number);
  };
  const auto hidden = std::ranges::count_if(all, [&](const Compared& c) {
    return is_by_statistics(c) && holds_nan(c.records.npu) && holds_nan(c.records.bench);
  });
  if (hidden == 0) return "";
  return fmt::format("; of {} that hold NaN in both runs statistics see no other element", hidden);
}

// Of tensors that have checksums in both dumps, what these say beside the statistics.
std::string bytes_text(const std::vector<Compared>& all) {
  std::size_t hashed = 0, others = 0;
  for (const Compared& c : all) {
    const Record *const n = c.records.npu, *const b = c.records.bench;
    if (!n || !b || n->hash.empty() || b->hash.empty()) continue;
    ++hashed, others += n->hash != b->hash;
  }
  if (hashed == 0) return "";
  if (others == 0) return fmt::format("; {} have checksums, and the same bytes", hashed);
  return fmt::format("; of {} that have checksums {} are not the same to the byte", hashed, others);
}

}  // namespace

std::optional<Divergence> first_divergence(const std::vector<Compared>& all, const DumpFile& npu,
                                           const std::vector<TrainingDifference>& loop,
                                           const DumpFile* bench, const Pairs* pairs) {
  const auto off = [](const Compared& c) { return c.difference.is_more(); };
  const auto it = std::ranges::find_if(all, off);
  const bool lacks_updates = std::ranges::any_of(all, [](const Compared& c) {
    return (!c.records.npu || !c.records.bench) && pass_of(c) == Pass::Update;
  });
  const bool is_of_scale = it != all.end() && is_overflow_of_scale(*it);
  const auto in_loop = std::ranges::find_if(loop, [&](const TrainingDifference& t) {
    if (t.skipped_under > 1 && is_of_scale) return true;
    const Pass before = t.place == "loss" ? Pass::Forward : Pass::Backward;
    // Whose parameters are left out of the update takes fewer gradients.
    if (t.place == "gradient norm" && lacks_updates) return false;
    return it == all.end() || pass_of(*it) > before;
  });
  const bool has_pairs = bench && pairs;
  if (in_loop != loop.end())
    return of_loop(*in_loop, has_pairs ? before_loss(all, npu, *bench, *pairs) : BeforeLoss());
  if (it == all.end()) return std::nullopt;
  Divergence d = of_records(all, it, npu, bench);
  // The first gradient shows it where the dumps do not have the loss itself.
  if (has_pairs && d.place == "loss") add_before_loss(before_loss(all, npu, *bench, *pairs), d);
  if (has_pairs) d.sentence += module_remark(lone_modules(npu, *bench, *pairs), all, *it);
  return d;
}

std::string agreement(const std::vector<Compared>& all, std::size_t bare,
                      const Coverage& coverage) {
  std::set<const EntryPair*> calls;
  const Compared* nearest = nullptr;
  std::size_t by_statistics = 0;
  const auto share = [](const Compared& c) {
    return c.difference.allowed > 0 ? c.difference.size / c.difference.allowed : 0;
  };
  for (const Compared& c : all) {
    calls.insert(c.moment.entry);
    by_statistics += is_by_statistics(c);
    if (!nearest || share(c) > share(*nearest)) nearest = &c;
  }
  const bool is_part = coverage.compared < coverage.all;
  std::string text =
      is_part
          ? fmt::format("no divergence: {} of {} tensors were compared, of {} calls, and agree",
                        coverage.compared, coverage.all, calls.size())
          : fmt::format("no divergence: {} tensors of {} calls agree", all.size(), calls.size());
  if (by_statistics == all.size())
    text += " in their statistics";
  else if (by_statistics > 0)
    text += fmt::format(", {} of them in their statistics alone", by_statistics);
  text += hidden_text(all) + bytes_text(all);
  if (nearest && share(*nearest) > 0)
    text += fmt::format("; the nearest to its limit is off by {} of {}, {}",
                        in_words(nearest->difference.size), in_words(nearest->difference.allowed),
                        nearest->records.npu->name);
  if (!coverage.lacks.empty()) text += "; " + coverage.lacks;
  if (bare > 0)
    text += fmt::format("; of {} more tensors there is nothing in both dumps to compare", bare);
  return text;
}

}  // namespace aloft::compare
