#include "passes/taken_in.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/text.h"
#include "ops/graph_emitter.h"
#include "ops/op.h"
#include "passes/tap_pattern.h"

namespace aloft {
namespace {

constexpr std::string_view kNote = "taken-in:", kOf = " of ", kAs = " as ";

std::optional<std::uint32_t> number_of(std::string_view text) {
  std::uint32_t n = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, n);
  return error == std::errc() && rest == end ? std::optional(n) : std::nullopt;
}

struct Note {
  std::string node;         // the identity of the one that was taken in
  std::uint32_t index = 0;  // of its result
  std::vector<std::uint32_t> operands;
  std::string tap;
};

std::string text_of(const Node& node, std::uint32_t index,
                    const std::vector<std::uint32_t>& operands, const std::string& tap) {
  std::vector<std::string> places;
  for (const std::uint32_t at : operands) places.push_back(std::to_string(at));
  return std::string(kNote) + tap_name(node, index) + std::string(kOf) + join(places, " ") +
         std::string(kAs) + tap;
}

// Nothing where the text is no note, or names stand in the way of reading it.
std::optional<Note> note_of(std::string_view text) {
  if (!is_note_of_fusion(text)) return std::nullopt;
  text.remove_prefix(kNote.size());
  const std::size_t of = text.find(kOf), as = text.find(kAs, of);
  if (as == std::string_view::npos) return std::nullopt;
  Note note;
  const std::string_view value = text.substr(0, of);
  note.node = node_of_tap(value);
  if (note.node.size() < value.size()) {
    const auto index = number_of(value.substr(note.node.size() + 1));
    if (!index) return std::nullopt;
    note.index = *index;
  }
  for (const std::string_view word :
       split(text.substr(of + kOf.size(), as - of - kOf.size()), ' ')) {
    const auto at = number_of(word);
    if (!at) return std::nullopt;
    note.operands.push_back(*at);
  }
  note.tap = text.substr(as + kAs.size());
  return note;
}

std::vector<Note> notes_of(const Graph& graph) {
  std::vector<Note> notes;
  for (const Name p : graph.tap_patterns())
    if (auto note = note_of(p.str())) notes.push_back(std::move(*note));
  return notes;
}

// Which node computes what another did, by the other's identity, through all that were fused again;
// and that other node.
class Fusions {
 public:
  explicit Fusions(const Graph& graph) : graph_(graph) {
    for (std::uint32_t n = 0; n < graph.capacity(); ++n) {
      const Node& node = graph.node(n);
      if (node.erased) taken_.emplace(node.identity(), n);
      for (const std::string_view member : split(node.members, ','))
        if (!trim(member).empty()) holders_[std::string(trim(member))] = n;
    }
  }
  std::optional<std::uint32_t> holder_of(std::string identity) const {
    for (auto at = holders_.find(identity); at != holders_.end(); at = holders_.find(identity)) {
      if (!graph_.node(at->second).erased) return at->second;
      identity = graph_.node(at->second).identity();
    }
    return std::nullopt;
  }
  const Node* taken(const std::string& identity) const {
    const auto at = taken_.find(identity);
    return at == taken_.end() ? nullptr : &graph_.node(at->second);
  }

 private:
  const Graph& graph_;
  std::map<std::string, std::uint32_t> holders_, taken_;
};

bool is_product(const Node& taken) {
  const OpDef* op = find_op(taken.op);
  return op && op->products != nullptr;
}

class Showing {
 public:
  Showing(Graph& graph, const PassContext& context)
      : graph_(graph), context_(context), fusions_(graph) {
    for (const Name p : graph.tap_patterns()) {
      TapPattern pattern(p.str());
      if (!is_note_of_fusion(p.str()) && !pattern.word().empty())
        by_name_.push_back(std::move(pattern));
    }
    for (const GraphOutput& o : graph.outputs()) known_.emplace(o.name, true);
  }

  bool show(const Note& note) {
    if (known_.contains(Name(note.tap))) return false;
    const Node* taken = fusions_.taken(note.node);
    const auto holder = fusions_.holder_of(note.node);
    if (!taken || !holder || (is_product(*taken) && !is_named(note.tap))) return false;
    if (!again_.contains(note.node))
      again_[note.node] = compute(Node(*taken), *holder, note.operands);
    const auto n = again_.at(note.node);
    if (!n) return false;
    graph_.set_output(Name(note.tap), {*n, note.index}, OutputKind::Tap);
    return true;
  }

 private:
  bool is_named(const std::string& tap) const {
    return std::ranges::any_of(by_name_, [&](const TapPattern& p) { return p.matches(tap); });
  }

  // In front of the fused op, while its operands are there. Nothing where no kernel computes it.
  std::optional<std::uint32_t> compute(const Node& taken, std::uint32_t holder,
                                       const std::vector<std::uint32_t>& operands) {
    const Node fused = graph_.node(holder);
    CallSpec call{taken.op, taken.attrs, {}, taken.out, context_.threads, taken.form};
    std::vector<ValueId> in;
    for (const std::uint32_t at : operands) {
      if (at >= fused.in.size()) return std::nullopt;
      in.push_back(fused.in[at]);
      call.in.push_back(graph_.type(in.back()));
    }
    if (context_.choose && context_.choose(call).kernel.empty()) return std::nullopt;
    Where where = taken.where;
    where.pass = "take-statistics";
    where.path = fused.where.path.str() + "/" + fused.op.str();
    where.reason = "what is taken in is asked for";
    where.policy = {};
    const std::uint32_t n =
        graph_.add(taken.op, taken.attrs, std::move(in), taken.out, where, holder);
    graph_.set_form(n, taken.form);
    return n;
  }

  Graph& graph_;
  const PassContext& context_;
  const Fusions fusions_;
  std::vector<TapPattern> by_name_;
  std::map<Name, bool> known_;
  std::map<std::string, std::optional<std::uint32_t>> again_;  // by what was taken in
};

}  // namespace

bool is_note_of_fusion(std::string_view pattern) { return pattern.starts_with(kNote); }

void note_taken_in(Graph& graph, std::uint32_t n, std::uint32_t fused) {
  const Node &node = graph.node(n), &whole = graph.node(fused);
  std::vector<std::uint32_t> operands;
  for (const ValueId v : node.in) {
    const auto at = std::ranges::find(whole.in, v);
    if (at == whole.in.end()) return;
    operands.push_back(static_cast<std::uint32_t>(at - whole.in.begin()));
  }
  for (std::uint32_t i = 0; i < node.out.size(); ++i)
    for (const Use& use : graph.uses({n, i}))
      if (use.by == Use::By::Tap)
        graph.ask_tap(Name(text_of(node, i, operands, graph.outputs()[use.at].name.str())));
}

bool show_taken_in(Graph& graph, const PassContext& context) {
  const std::vector<Note> notes = notes_of(graph);
  if (notes.empty()) return false;
  Showing showing(graph, context);
  bool is_changed = false;
  for (const Note& note : notes) is_changed |= showing.show(note);
  return is_changed;
}

bool is_shown_by_name(const Graph& graph, std::string_view tap) {
  return std::ranges::any_of(notes_of(graph), [&](const Note& note) { return note.tap == tap; });
}

}  // namespace aloft
