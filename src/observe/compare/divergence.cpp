#include "observe/compare/divergence.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/text.h"

namespace aloft::compare {

namespace {

bool is_forward(const Entry& e) { return e.direction == Direction::Forward; }

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

std::string module_of(const DumpFile& dump, const Entry& e) {
  if (e.is_module) return e.path;
  const auto parent = dump.parents.find(e.name);
  return parent == dump.parents.end() ? "" : parse_entry_name(parent->second).path;
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

std::string line_of(const DumpFile& dump, const Entry& e, std::string_view module) {
  const Entry* const forward = forward_of(dump, module);
  const std::string own = std::string(e.name);
  for (const std::string& name : {forward ? forward->name : own, own})
    if (const auto it = dump.lines.find(name); it != dump.lines.end())
      if (std::string line = short_line(it->second); !line.empty()) return line;
  return "";
}

// What of the call is off: "what it takes (input 0)".
std::string subject_of(const Compared& c) {
  const Record& r = c.records.npu ? *c.records.npu : *c.records.bench;
  const Entry& e = *c.moment.entry->npu;
  const std::string call = e.path.empty() ? e.name : e.path;
  if (r.part == Part::Parameter)
    return fmt::format("the parameter {} of {} is another one before the step", r.own, call);
  if (r.part == Part::Gradient) return fmt::format("the gradient of {}.{}", call, r.own);
  const bool is_taken = (r.part == Part::Input) == is_forward(e);
  return fmt::format("{}what {} {} ({})", is_forward(e) ? "" : "the gradient of ", call,
                     is_taken ? "takes" : "gives", r.own);
}

const Figure& figure_named(const Record& r, std::string_view name) {
  if (name == "Max") return r.max;
  if (name == "Min") return r.min;
  return name == "Mean" ? r.mean : r.norm;
}

// With as many digits as differences are seen in.
std::string figure_text(const Record& r, std::string_view name) {
  const Figure& f = figure_named(r, name);
  return f.number ? fmt::format("{:.9g}", *f.number) : f.text;
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
  const bool is_figure = d.of == "Norm" || d.of == "Max" || d.of == "Min" || d.of == "Mean";
  std::string text = fmt::format("is off by {} in {}", in_words(d.size), d.of);
  if (is_figure)
    text += fmt::format(" ({} against {})", figure_text(n, d.of), figure_text(b, d.of));
  return text + fmt::format(", where rounding explains {}", in_words(d.allowed));
}

// Where nearly all gradients are the same times those of the other run, that is said.
std::string common_factor(const std::vector<Compared>& all) {
  std::vector<double> factors;
  for (const Compared& c : all) {
    if (!c.records.npu || !c.records.bench || is_forward(*c.moment.entry->npu)) continue;
    const Figure &n = c.records.npu->norm, &b = c.records.bench->norm;
    if (n.number && b.number && *b.number > 0 && std::isfinite(*n.number / *b.number))
      factors.push_back(*n.number / *b.number);
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

std::optional<Divergence> first_divergence(const std::vector<Compared>& all, const DumpFile& npu) {
  const auto it =
      std::ranges::find_if(all, [](const Compared& c) { return c.difference.is_more(); });
  if (it == all.end()) return std::nullopt;
  const Entry& e = *it->moment.entry->npu;
  Divergence d;
  d.compared = &*it;
  d.module = module_of(npu, e);
  d.kind = e.kind;
  bool has_agreed = false;  // anything in this direction
  for (auto before = it; before != all.begin() && d.behind.empty();) {
    const Compared& c = *--before;
    const Entry& other = *c.moment.entry->npu;
    if (is_forward(other) != is_forward(e)) break;
    has_agreed = true;
    if (c.moment.gives && other.path != e.path) d.behind = other.path;
  }
  // What a call takes is computed outside of it.
  if (is_given_to(*it) && e.is_module) {
    // What reaches the first of a backward pass comes from the loss.
    const bool is_loss = !is_forward(e) && !has_agreed;
    d.module = is_loss ? "" : module_around(npu, e.path);
    const Entry* const around = forward_of(npu, d.module);
    d.kind = around ? around->kind : "";
  }
  d.line = line_of(npu, e, d.module);
  const std::string module = !d.module.empty() ? d.module
                             : is_forward(e)   ? "the model itself"
                                               : "the loss, or the model itself";
  const bool is_in_forward = is_forward(e) && it->records.npu;  // gradients alone may be missing
  d.sentence =
      fmt::format("first divergence: {}, {}{}{}: {}", is_in_forward ? "forward" : "backward",
                  module, d.kind.empty() ? "" : " (" + d.kind + ")",
                  d.behind.empty() ? "" : ", behind " + d.behind, subject_of(*it));
  if (it->records.npu && it->records.npu->part == Part::Parameter)
    d.sentence += ": it " + size_of(*it);
  else
    d.sentence += " " + size_of(*it);
  if (!d.line.empty()) d.sentence += "; " + d.line;
  if (!is_forward(e)) d.sentence += common_factor(all);
  return d;
}

std::string agreement(const std::vector<Compared>& all) {
  std::set<const EntryPair*> calls;
  const Compared* nearest = nullptr;
  const auto share = [](const Compared& c) {
    return c.difference.allowed > 0 ? c.difference.size / c.difference.allowed : 0;
  };
  for (const Compared& c : all) {
    calls.insert(c.moment.entry);
    if (!nearest || share(c) > share(*nearest)) nearest = &c;
  }
  std::string text =
      fmt::format("no divergence: {} tensors of {} calls agree", all.size(), calls.size());
  if (nearest && share(*nearest) > 0)
    text += fmt::format("; the nearest to its limit is off by {} of {}, {}",
                        in_words(nearest->difference.size), in_words(nearest->difference.allowed),
                        nearest->records.npu->name);
  return text;
}

}  // namespace aloft::compare
