#include "passes/lower_to_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/text.h"
#include "ops/graph_emitter.h"
#include "ops/identity.h"
#include "ops/op.h"
#include "passes/insert_copies.h"

namespace aloft {
namespace {

ValueId seen_through_reshapes(const Graph& graph, ValueId v) {
  while (graph.node(v.node).op == Name("reshape")) v = graph.node(v.node).in[0];
  return v;
}

std::string name_attr(const Node& node) { return std::get<std::string>(*node.attrs.find("name")); }

bool is_source(const Graph& graph, ValueId v) {
  const Name op = graph.node(v.node).op;
  return op == Name("state") || op == Name("input");
}

// Copies every returned value or update that is still a variable's or an input's own memory, or
// that serves two purposes, be it in another shape: afterwards each such value has a buffer of its
// own.
void separate_results(Graph& graph) {
  GraphEmitter emitter(graph);
  std::map<ValueId, int> claimed;
  const auto is_taken = [&](ValueId v) {
    v = seen_through_reshapes(graph, v);
    return is_source(graph, v) || claimed[v]++ > 0;
  };
  const auto copy = [&](ValueId v) {
    Where where = graph.node(v.node).where;
    where.pass = "lower-to-plan";
    where.reason = "a result of its own";
    Scope scope(where);
    return identity(emitter.handle(v)).id();
  };
  for (const StateUpdate& u : std::vector(graph.updates()))
    if (is_taken(u.value)) graph.set_update(u.id, copy(u.value));
  for (const GraphOutput& o : std::vector(graph.outputs()))
    if (o.kind != OutputKind::Tap && is_taken(o.value))
      graph.set_output(o.name, copy(o.value), o.kind);
}

std::set<ValueId> updates_of(const Graph& graph) {
  std::set<ValueId> values;
  for (const StateUpdate& u : graph.updates()) values.insert(seen_through_reshapes(graph, u.value));
  return values;
}

// A tap shares the buffer of the value that it shows, which lives to the end for it. What lies in a
// variable's or an input's own memory is copied, and at once: the program, or who comes behind it,
// writes there as if nobody looked on.
void separate_taps(Graph& graph) {
  GraphEmitter emitter(graph);
  const std::set<ValueId> updates = updates_of(graph);
  for (const GraphOutput& o : std::vector(graph.outputs())) {
    if (o.kind != OutputKind::Tap) continue;
    const ValueId source = seen_through_reshapes(graph, o.value);
    if (!is_source(graph, source) && !updates.contains(source)) continue;
    const auto& order = graph.order();
    const auto next = std::find(order.begin(), order.end(), source.node) + 1;
    emitter.insert_before(next == order.end() ? std::nullopt : std::optional(*next));
    const Node tapped = graph.node(o.value.node);
    Where where = tapped.where;
    where.pass = "lower-to-plan";
    where.reason = "a tap of what is written later";
    Scope scope(where);
    const Tensor copy = identity(emitter.handle(source));
    const Tensor shown =
        o.value == source ? copy : emitter.emit({tapped.op, tapped.attrs}, {&copy, 1}, where)[0];
    graph.set_output(o.name, shown.id(), o.kind);
  }
}

class Lowering {
 public:
  Lowering(const Graph& graph, const PassContext& context) : graph_(graph), context_(context) {}

  Lowered run() {
    result_.program.name = graph_.name.str();
    number_instructions();
    find_last_uses();
    for (const StateUpdate& u : graph_.updates()) update_of_[u.value] = u.id;
    for (std::uint32_t n : graph_.order()) lower(graph_.node(n), n);
    copy_updates();
    name_outputs();
    insert_copies(result_, context_);
    place_activations(program());
    return std::move(result_);
  }

 private:
  struct Slot {     // a buffer in the making
    int last = -1;  // instruction of the last read of the value it holds now
    bool is_state = false;
    bool may_overwrite = false;  // a state slot whose variable is updated in this program
  };

  // What an instruction reads, and which results may lie where an operand does: asked about each
  // result, and an update of all parameters has thousands of results and operands.
  struct Sharing {
    std::unordered_map<int, std::vector<int>> operands_in;  // by buffer
    std::vector<std::vector<int>> partners;                 // operands, by result
    std::unordered_set<int> taken;                          // buffers of the results so far
  };

  Program& program() { return result_.program; }

  void number_instructions() {
    for (std::uint32_t n : graph_.order()) {
      const Node& node = graph_.node(n);
      if (!find_op(node.op)) continue;
      CallSpec call = call_of(node);
      KernelChoice choice = context_.choose(call);
      if (choice.kernel.empty())
        throw InternalError("no kernel runs '" + node.op.str() + "'")
            .line("node", print_node(graph_, n));
      if (!choice.is_view) position_[n] = count_++;
      calls_.emplace(n, std::pair{std::move(call), std::move(choice)});
    }
  }

  CallSpec call_of(const Node& node) const {
    CallSpec call{node.op, node.attrs, {}, node.out, context_.threads, node.form};
    for (ValueId v : node.in) call.in.push_back(graph_.type(v));
    return call;
  }

  bool is_view(std::uint32_t n) const {
    const auto it = calls_.find(n);
    return it != calls_.end() && it->second.second.is_view;
  }

  // The value whose buffer a view shares.
  ValueId root(ValueId v) const {
    while (is_view(v.node)) v = graph_.node(v.node).in[0];
    return v;
  }

  void find_last_uses() {
    for (const auto& [n, position] : position_) {
      for (ValueId v : graph_.node(n).in) {
        int& last = last_use_[root(v)];
        last = std::max(last, position);
      }
    }
    for (const GraphOutput& o : graph_.outputs()) last_use_[root(o.value)] = count_;
    for (const StateUpdate& u : graph_.updates()) last_use_[root(u.value)] = count_;
  }

  int last_use(ValueId v) const {
    const auto it = last_use_.find(v);
    return it == last_use_.end() ? -1 : it->second;
  }

  int new_buffer(std::string name, Arena arena, std::size_t bytes) {
    program().buffers.push_back({.name = std::move(name), .arena = arena, .bytes = bytes});
    slots_.emplace_back();
    return static_cast<int>(program().buffers.size()) - 1;
  }

  void lower(const Node& node, std::uint32_t n) {
    if (node.op == Name("input"))
      lower_input(node, n);
    else if (node.op == Name("state"))
      lower_state(node, n);
    else if (is_view(n))
      buffer_of_[{n, 0}] = buffer_of_.at(node.in[0]);
    else
      lower_instruction(node, n);
  }

  void lower_input(const Node& node, std::uint32_t n) {
    const std::string name = name_attr(node);
    const int homes = context_.input_homes;
    std::size_t bytes = node.out[0].max_bytes();
    if (homes > 1) bytes = aligned(bytes) * static_cast<std::size_t>(homes);
    const int b = new_buffer("input:" + name, Arena::Staging, bytes);
    program().buffers[b].homes = homes;
    buffer_of_[{n, 0}] = b;
    program().inputs.push_back({name, {b, node.out[0]}, false});
    note_symbols(node.out[0]);
  }

  void lower_state(const Node& node, std::uint32_t n) {
    StateSlot s = slot_of(node);
    s.parts = parts_of(node);
    const int b = new_buffer(s.id.str(), s.arena, s.type.max_bytes());
    program().buffers[b].placement.layout = s.parts[0].layout;
    Slot& slot = slots_[b];
    slot.is_state = true;
    slot.last = last_use({n, 0});
    slot.may_overwrite = graph_.is_updated(s.id);
    buffer_of_[{n, 0}] = b;
    state_buffer_[s.id] = b;
    result_.state.push_back(std::move(s));
  }

  // Where the variable says that programs keep it.
  std::vector<Placement> parts_of(const Node& node) const {
    Placement p;
    if (const auto* layout = node.attrs.find("layout"))
      for (Layout l : kAllLayouts)
        if (std::get<std::string>(*layout) == name_of(l)) p.layout = l;
    if (context_.has_host_space && node.attrs.find("space")) p.space = Space::Host;
    const auto* shards = node.attrs.find("shards");
    p.shard.count = shards ? static_cast<int>(std::get<std::int64_t>(*shards)) : 1;
    std::vector<Placement> parts(static_cast<std::size_t>(p.shard.count), p);
    for (std::size_t k = 0; k < parts.size(); ++k) parts[k].shard.index = static_cast<int>(k);
    return parts;
  }

  void note_symbols(const TensorType& t) {
    for (const Dim& d : t.shape) {
      if (d.is_constant()) continue;
      auto& symbols = program().symbols;
      if (std::find(symbols.begin(), symbols.end(), d.symbol()) != symbols.end()) continue;
      symbols.push_back(d.symbol());
      program().bounds.push_back(d.bound());
    }
  }

  void lower_instruction(const Node& node, std::uint32_t n) {
    const int at = position_.at(n);
    auto& [call, choice] = calls_.at(n);
    Instruction ins;
    for (std::size_t i = 0; i < node.in.size(); ++i) {
      const int b = buffer_of_.at(node.in[i]);
      ins.in.push_back({b, call.in[i]});
    }
    std::vector<int> outs;
    Sharing sharing = sharing_of(node, choice);
    for (std::uint32_t i = 0; i < node.out.size(); ++i) {
      outs.push_back(buffer_for(node, {n, i}, at, sharing));
      sharing.taken.insert(outs.back());
    }
    for (std::uint32_t i = 0; i < node.out.size(); ++i) {
      buffer_of_[{n, i}] = outs[i];
      slots_[outs[i]].last = std::max(last_use({n, i}), at);
      ins.out.push_back({outs[i], node.out[i]});
      note_symbols(node.out[i]);
    }
    if (choice.scratch_bytes > 0)
      ins.scratch =
          new_buffer("scratch of " + node.identity(), Arena::Activations, choice.scratch_bytes);
    ins.call = call;
    ins.kernel = choice.kernel;
    ins.form = choice.form;
    ins.refusals = choice.refusals;
    ins.identity = node.identity();
    if (!node.members.empty())
      for (std::string_view member : split(node.members, ','))
        ins.members.emplace_back(trim(member));
    ins.path = node.where.path.str();
    ins.file = node.where.file.str();
    ins.line = node.where.line;
    ins.phase = node.where.phase;
    program().instructions.push_back(std::move(ins));
  }

  Sharing sharing_of(const Node& node, const KernelChoice& choice) const {
    Sharing sharing;
    for (std::size_t k = 0; k < node.in.size(); ++k)
      sharing.operands_in[buffer_of_.at(node.in[k])].push_back(static_cast<int>(k));
    sharing.partners.resize(node.out.size());
    for (const auto& [from, to] : choice.in_place)
      if (to < static_cast<int>(node.out.size())) sharing.partners[to].push_back(from);
    return sharing;
  }

  // Where a result goes: its variable's buffer, a dying operand's, or a new one.
  int buffer_for(const Node& node, ValueId value, int at, const Sharing& sharing) {
    const std::size_t bytes = node.out[value.index].max_bytes();
    if (const auto it = update_of_.find(value); it != update_of_.end()) {
      const auto state = state_buffer_.find(it->second);
      if (state != state_buffer_.end() && is_free(state->second, value.index, at, sharing)) {
        in_place_updates_.insert({it->second, true});
        return state->second;
      }
    }
    for (const int from : sharing.partners[value.index]) {
      const int b = buffer_of_.at(node.in[from]);
      const Slot& slot = slots_[b];
      // A variable's memory is scratch only if its new value is still to come, and only for what
      // dies before the end of the program.
      if (slot.is_state && (!slot.may_overwrite || last_use(value) >= count_)) continue;
      if (program().buffers[b].arena == Arena::Staging) continue;
      // A gradient lies in the gradient arena from birth; nothing else moves in there.
      if (program().buffers[b].bytes != bytes) continue;
      if (is_free(b, value.index, at, sharing)) return b;
    }
    return new_buffer(node.identity(), Arena::Activations, bytes);
  }

  // Whether result `i` of the instruction at `at` may be written to buffer `b`: the value there is
  // not read later, and if it is read by this very instruction, then only by operands that the
  // kernel lets share this result's buffer.
  bool is_free(int b, std::uint32_t i, int at, const Sharing& sharing) const {
    if (slots_[b].last > at || sharing.taken.contains(b)) return false;
    const auto operands = sharing.operands_in.find(b);
    if (operands == sharing.operands_in.end()) return true;
    const std::vector<int>& partners = sharing.partners[i];
    return std::all_of(operands->second.begin(), operands->second.end(), [&](int k) {
      return std::find(partners.begin(), partners.end(), k) != partners.end();
    });
  }

  // Updates that could not be written in place are copied when everything else is done.
  void copy_updates() {
    for (const StateUpdate& u : graph_.updates()) {
      if (in_place_updates_.contains(u.id)) continue;
      const TensorType& type = graph_.type(u.value);
      CallSpec call{"identity", {}, {type}, {type}, context_.threads};
      const KernelChoice choice = context_.choose(call);
      ensure(!choice.kernel.empty(), "the back end can copy " + type.str());
      Instruction ins;
      const int from = buffer_of_.at(u.value);
      ins.in.push_back({from, type});
      ins.out.push_back({state_buffer_.at(u.id), type});
      ins.call = std::move(call);
      ins.kernel = choice.kernel;
      ins.identity = "update/" + u.id.str();
      ins.phase = Phase::Update;
      program().instructions.push_back(std::move(ins));
    }
  }

  void name_outputs() {
    for (const GraphOutput& o : graph_.outputs())
      program().outputs.push_back({o.name.str(),
                                   {buffer_of_.at(o.value), graph_.type(o.value)},
                                   o.kind != OutputKind::Result});
  }

  const Graph& graph_;
  const PassContext& context_;
  Lowered result_;
  int count_ = 0;
  std::map<std::uint32_t, int> position_;
  std::map<std::uint32_t, std::pair<CallSpec, KernelChoice>> calls_;
  std::map<ValueId, int> last_use_;
  std::map<ValueId, Name> update_of_;
  std::map<ValueId, int> buffer_of_;
  std::map<Name, int> state_buffer_;
  std::map<Name, bool> in_place_updates_;
  std::vector<Slot> slots_;
};

}  // namespace

StateSlot slot_of(const Node& state) {
  StateSlot s;
  s.id = state_id(state);
  s.name = name_attr(state);
  s.type = state.out[0];
  const std::string cls = std::get<std::string>(*state.attrs.find("class"));
  for (StateClass c : {StateClass::Parameter, StateClass::Optimizer, StateClass::Gradient,
                       StateClass::Buffer, StateClass::Control})
    if (name_of(c) == cls) s.cls = c;
  if (const auto* v = state.attrs.find("requires_grad")) s.requires_grad = std::get<bool>(*v);
  if (const auto* v = state.attrs.find("is_norm")) s.is_norm = std::get<bool>(*v);
  s.arena = arena_of(s.cls);
  return s;
}

Lowered lower_to_plan(const Graph& source, const PassContext& context) {
  Graph graph = source;
  separate_results(graph);
  separate_taps(graph);
  return Lowering(graph, context).run();
}

}  // namespace aloft
