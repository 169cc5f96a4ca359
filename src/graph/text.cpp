// The text form of a graph:
//
//   graph mlp {
//     %0 = input {name="x"} : f32[B<=8,16]
//     %1 = state {name="fc.w", class="parameter", requires_grad=true, is_norm=false} : f32[4,16]
//     %2 = linear(%0, %1) : f32[B<=8,4] @ "examples/mlp.cpp":31 path="fc" policy="O2:bf16"
//     %3 = split(%2) {axis=-1, parts=2} : f32[B<=8,2], f32[B<=8,2]
//     %4 = add(%3, %3.1) : f32[B<=8,2] phase="backward" pass="differentiate" reason="..."
//     %5 = add(%4, %4) : f32[B<=8,2] path="fc" occurrence=7
//     taps "op:linear" "backward:*"
//     return y=%4 watch:w=%1 tap:h=%2 "odd name"=%5 lost:i
//     update "fc.w"=%1
//   }
//
// A `state` whose name another variable has too says its `id`, which is what `update` names:
// `state {name="fc.w", id="fc.w#2", ...}`, `update "fc.w#2"=%5`.
//
// What is tapped is asked for in `taps`; a tap that is lost has no value any more.
//
// A call whose products may be computed in another form than the plain one (types/product_form.h)
// says so behind its attributes: `linear(%0, %1) as bf16x6 : f32[4,8]`.
//
// Values are numbered in execution order; `%3.1` is output 1 of node 3. `occurrence` stands only
// where it is not the number of nodes above with the same path, op and phase.
#include <algorithm>
#include <charconv>
#include <limits>
#include <tuple>

#include "base/error.h"
#include "graph/graph.h"
#include "precision/recipe.h"

namespace aloft {
namespace {

using Numbering = std::vector<std::uint32_t>;

std::string value_text(ValueId v, const Numbering& number) {
  std::string s = "%" + std::to_string(number[v.node]);
  if (v.index) s += "." + std::to_string(v.index);
  return s;
}

std::string quoted(const std::string& s) { return print_attr(AttrValue(s)); }

bool is_word_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         c == '.';
}

// A name, quoted where it is more than a word.
std::string name_text(const std::string& s) {
  return !s.empty() && std::all_of(s.begin(), s.end(), is_word_char) ? s : quoted(s);
}

// What Graph::add counts: the next occurrence of (path, op, phase).
class Occurrences {
 public:
  // Whether counting gives `node` its own occurrence.
  bool counts(const Node& node) {
    int& next = next_[{node.where.path, node.op, node.where.phase}];
    const bool as_counted = node.occurrence == next;
    next = std::max(next, node.occurrence + 1);
    return as_counted;
  }

 private:
  std::map<std::tuple<Name, Name, Phase>, int> next_;
};

std::string node_text(const Graph& g, std::uint32_t n, const Numbering& number) {
  const Node& node = g.node(n);
  std::string s = "%" + std::to_string(number[n]) + " = " + node.op.str();
  if (!node.in.empty()) {
    s += "(";
    for (std::size_t i = 0; i < node.in.size(); ++i)
      s += (i ? ", " : "") + value_text(node.in[i], number);
    s += ")";
  }
  if (!node.attrs.empty()) s += " " + node.attrs.str();
  if (node.form != ProductForm::Plain) s += " as " + std::string(name_of(node.form));
  s += " :";
  for (std::size_t i = 0; i < node.out.size(); ++i) s += (i ? ", " : " ") + node.out[i].str();
  const Where& w = node.where;
  if (w.file) s += " @ " + quoted(w.file.str()) + ":" + std::to_string(w.line);
  if (w.path) s += " path=" + quoted(w.path.str());
  if (w.policy) s += " policy=" + quoted(w.policy.str());
  if (w.listed) s += " listed=" + quoted(w.listed.str());
  if (w.phase != Phase::Forward) s += " phase=" + quoted(std::string(name_of(w.phase)));
  if (w.pass) s += " pass=" + quoted(w.pass.str());
  if (w.reason) s += " reason=" + quoted(w.reason.str());
  if (!node.members.empty()) s += " members=" + quoted(node.members);
  return s;
}

std::string kind_text(OutputKind kind) {
  return kind == OutputKind::Tap ? " tap:" : kind == OutputKind::Watch ? " watch:" : " ";
}

Numbering number_nodes(const Graph& g) {
  Numbering number(g.capacity(), 0);
  std::uint32_t next = 0;
  for (std::uint32_t n : g.order()) number[n] = next++;
  return number;
}

// A cursor over one line.
class Cursor {
 public:
  Cursor(std::string_view line, int number) : line_(line), number_(number) {}

  void skip_spaces() {
    while (at_ < line_.size() && (line_[at_] == ' ' || line_[at_] == '\t')) ++at_;
  }
  bool done() {
    skip_spaces();
    return at_ >= line_.size();
  }
  bool take(std::string_view word) {
    skip_spaces();
    if (line_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word) {
    if (!take(word)) fail("'" + std::string(word) + "'");
  }
  std::string word() {
    skip_spaces();
    const auto start = at_;
    while (at_ < line_.size() && is_word_char(line_[at_])) ++at_;
    if (start == at_) fail("a name");
    return std::string(line_.substr(start, at_ - start));
  }
  // A word, or any text in quotes.
  std::string name() { return peek('"') ? string() : word(); }
  // From 0 to one less than an int's largest value.
  std::uint32_t number() {
    std::uint32_t v = 0;
    const char* begin = line_.data() + at_;
    auto [end, ec] = std::from_chars(begin, line_.data() + line_.size(), v);
    if (ec != std::errc{} || v >= std::numeric_limits<int>::max()) fail("a number");
    at_ += end - begin;
    return v;
  }
  // A quoted string, with its escapes resolved.
  std::string string() {
    skip_spaces();
    const auto start = at_;
    if (at_ >= line_.size() || line_[at_] != '"') fail("a quoted string");
    for (++at_; at_ < line_.size() && line_[at_] != '"'; ++at_)
      if (line_[at_] == '\\') ++at_;
    if (at_ >= line_.size()) fail("the closing quote");
    ++at_;
    return std::get<std::string>(parse_attr(line_.substr(start, at_ - start)));
  }
  // A balanced {...} block.
  std::string_view block() {
    skip_spaces();
    const auto start = at_;
    bool in_string = false;
    for (; at_ < line_.size(); ++at_) {
      const char c = line_[at_];
      if (in_string) {
        if (c == '\\')
          ++at_;
        else if (c == '"')
          in_string = false;
      } else if (c == '"') {
        in_string = true;
      } else if (c == '}') {
        return line_.substr(start, ++at_ - start);
      }
    }
    fail("'}'");
  }
  std::string_view type() {
    skip_spaces();
    const auto end = line_.find(']', at_);
    if (end == std::string_view::npos) fail("a tensor type");
    const auto text = line_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    return text;
  }
  bool peek(char c) {
    skip_spaces();
    return at_ < line_.size() && line_[at_] == c;
  }
  [[noreturn]] void fail(const std::string& needed) const {
    throw UserError("E0310", "the graph text is wrong at line " + std::to_string(number_))
        .saw(std::string(line_))
        .need(needed + " at column " + std::to_string(at_ + 1));
  }

 private:
  std::string_view line_;
  int number_;
  std::size_t at_ = 0;
};

ValueId parse_value(Cursor& c, const Graph& g) {
  c.expect("%");
  ValueId v{c.number(), 0};
  if (c.peek('.')) {
    c.expect(".");
    v.index = c.number();
  }
  if (v.node >= g.capacity() || v.index >= g.node(v.node).out.size())
    c.fail("a value that is defined above");
  return v;
}

ProductForm parse_form(Cursor& c) {
  if (!c.take("as ")) return ProductForm::Plain;
  const auto form = parse_product_form(c.word());
  if (!form || *form == ProductForm::Plain) c.fail("a form of products, such as bf16x6,");
  return *form;
}

Policy parse_policy(Cursor& c) {
  std::vector<RecipeMistake> mistakes;
  const PrecisionRecipe recipe = parse_precision(c.string(), mistakes);
  if (!mistakes.empty() || !recipe.is_resolved()) c.fail("a precision recipe without auto, behind");
  return Policy(recipe);
}

// Everything behind the types; `members` and `occurrence` are set where the text names them.
Where parse_where(Cursor& c, std::string& members, std::optional<int>& occurrence) {
  Where w;
  if (c.take("@")) {
    w.file = c.string();
    c.expect(":");
    w.line = static_cast<int>(c.number());
  }
  if (c.take("path=")) w.path = c.string();
  if (c.take("policy=")) w.policy = parse_policy(c);
  if (c.take("listed=")) w.listed = c.string();
  if (c.take("phase=")) {
    const auto phase = parse_phase(c.string());
    if (!phase) c.fail("forward, backward or update");
    w.phase = *phase;
  }
  if (c.take("pass=")) w.pass = c.string();
  if (c.take("reason=")) w.reason = c.string();
  if (c.take("members=")) members = c.string();
  if (c.take("occurrence=")) occurrence = static_cast<int>(c.number());
  return w;
}

void parse_node(Cursor& c, Graph& g) {
  if (c.number() != g.capacity()) c.fail("values numbered 0, 1, 2 ... in order");
  c.expect("=");
  const std::string op = c.word();
  std::vector<ValueId> in;
  if (c.take("(")) do
      in.push_back(parse_value(c, g));
    while (c.take(","));
  if (!in.empty()) c.expect(")");
  Attrs attrs;
  if (c.peek('{')) attrs = parse_attrs(c.block());
  const ProductForm form = parse_form(c);
  c.expect(":");
  std::vector<TensorType> out;
  const bool has_types =
      !c.done() && !c.peek('@') && !c.peek('p') && !c.peek('r') && !c.peek('m') && !c.peek('o');
  if (has_types) do
      out.push_back(parse_tensor_type(c.type()));
    while (c.take(","));
  std::string members;
  std::optional<int> occurrence;
  const Where where = parse_where(c, members, occurrence);
  const std::uint32_t n = g.add(op, std::move(attrs), std::move(in), std::move(out), where);
  g.set_form(n, form);
  g.set_members(n, std::move(members));
  if (occurrence) g.set_occurrence(n, *occurrence);
}

void parse_output(Cursor& c, Graph& g) {
  if (c.take("lost:")) return g.lose_tap(c.name());
  const OutputKind kind = c.take("tap:")     ? OutputKind::Tap
                          : c.take("watch:") ? OutputKind::Watch
                                             : OutputKind::Result;
  const std::string name = c.name();
  c.expect("=");
  g.set_output(name, parse_value(c, g), kind);
}

}  // namespace

std::string print(const Graph& g) {
  const Numbering number = number_nodes(g);
  Occurrences occurrences;
  std::string s = "graph " + name_text(g.name.str()) + " {\n";
  for (std::uint32_t n : g.order()) {
    s += "  " + node_text(g, n, number);
    const Node& node = g.node(n);
    if (!occurrences.counts(node)) s += " occurrence=" + std::to_string(node.occurrence);
    s += "\n";
  }
  if (!g.tap_patterns().empty()) {
    s += "  taps";
    for (Name pattern : g.tap_patterns()) s += " " + quoted(pattern.str());
    s += "\n";
  }
  if (!g.measured().empty()) {
    s += "  measure";
    for (const Policy& policy : g.measured()) s += " " + quoted(policy.str());
    s += "\n";
  }
  if (!g.outputs().empty() || !g.lost_taps().empty()) {
    s += "  return";
    for (const GraphOutput& o : g.outputs())
      s += kind_text(o.kind) + name_text(o.name.str()) + "=" + value_text(o.value, number);
    for (Name tap : g.lost_taps()) s += " lost:" + name_text(tap.str());
    s += "\n";
  }
  for (const StateUpdate& u : g.updates())
    s += "  update " + quoted(u.id.str()) + "=" + value_text(u.value, number) + "\n";
  return s + "}\n";
}

std::string print_node(const Graph& g, std::uint32_t n) { return node_text(g, n, number_nodes(g)); }

Graph parse_graph(std::string_view text) {
  Graph g;
  int line_number = 0;
  bool open = false, closed = false;
  while (!text.empty()) {
    const auto end = text.find('\n');
    Cursor c(text.substr(0, end), ++line_number);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    if (c.done() || c.peek('#')) continue;
    if (closed) c.fail("nothing after the closing brace");
    if (!open) {
      c.expect("graph");
      g.name = c.name();
      c.expect("{");
      open = true;
    } else if (c.take("%")) {
      parse_node(c, g);
    } else if (c.take("taps")) {
      while (!c.done()) g.ask_tap(c.string());
    } else if (c.take("measure")) {
      while (!c.done()) g.measure(parse_policy(c));
    } else if (c.take("return")) {
      while (!c.done()) parse_output(c, g);
    } else if (c.take("update")) {
      const std::string id = c.string();
      c.expect("=");
      g.set_update(id, parse_value(c, g));
    } else {
      c.expect("}");
      closed = true;
    }
    if (!c.done()) c.fail("the end of the line");
  }
  if (!closed) throw UserError("E0310", "the graph text ends before its closing brace");
  return g;
}

}  // namespace aloft
