#include "graph/graph.h"

#include <algorithm>

#include "base/error.h"

namespace aloft {

namespace {
const Name kInputOp = "input", kStateOp = "state", kNameKey = "name", kIdKey = "id";
}  // namespace

std::string Node::identity() const {
  std::string s = where.path.str() + "/" + op.str();
  if (where.phase != Phase::Forward) s += "." + std::string(name_of(where.phase));
  return s + "#" + std::to_string(occurrence);
}

std::uint64_t identity_hash(std::string_view identity) {
  std::uint64_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : identity) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

ValueId Graph::add_input(Name input, const TensorType& type) {
  Attrs a;
  a.set("name", input.str());
  return {add(kInputOp, std::move(a), {}, {type}, current_where()), 0};
}

Name state_id(const Node& node) {
  for (Name key : {kIdKey, kNameKey})
    if (const AttrValue* value = node.attrs.find(key))
      if (const auto* text = std::get_if<std::string>(value)) return *text;
  return {};  // of a graph from text that does not verify
}

ValueId Graph::add_state(const Variable& v, Name id) {
  Attrs a;
  a.set("name", v.name.str());
  if (id && id != v.name) a.set("id", id.str());
  a.set("class", std::string(name_of(v.cls)));
  if (v.cls == StateClass::Parameter) {
    a.set("requires_grad", v.requires_grad);
    a.set("is_norm", v.is_norm);
  }
  if (v.layout != Layout::Dense) a.set("layout", std::string(name_of(v.layout)));
  if (v.home.space != Space::Device) a.set("space", std::string(name_of(v.home.space)));
  if (v.home.shards.size() > 1) a.set("shards", static_cast<std::int64_t>(v.home.shards.size()));
  return {add(kStateOp, std::move(a), {}, {v.type}, current_where()), 0};
}

std::uint32_t Graph::add(Name op, Attrs attrs, std::vector<ValueId> in, std::vector<TensorType> out,
                         const Where& where, std::optional<std::uint32_t> before) {
  const auto n = capacity();
  Node& node = nodes_.emplace_back();
  node.op = op;
  node.attrs = std::move(attrs);
  node.in = std::move(in);
  node.out = std::move(out);
  node.where = where;
  node.occurrence = occurrences_[{where.path, op, where.phase}]++;
  uses_.emplace_back(node.out.size());
  for (std::uint32_t i = 0; i < node.in.size(); ++i) {
    const ValueId v = node.in[i];
    ensure(v.node < n && v.index < nodes_[v.node].out.size(), "operands exist before their user");
    note_use(v, {Use::By::Node, n, i});
  }
  if (before) {
    ensure(!nodes_[*before].erased, "a node is inserted before one that is alive");
    order_.insert(n, *before);
  } else {
    order_.append(n);
  }
  if (op == kStateOp) states_.emplace(state_id(node), n);
  return n;
}

void Graph::set_occurrence(std::uint32_t n, int occurrence) {
  ensure(n + 1 == capacity(), "an occurrence is set when its node is added");
  Node& node = nodes_[n];
  int& next = occurrences_[{node.where.path, node.op, node.where.phase}];
  next = std::max(next - 1, occurrence + 1);
  node.occurrence = occurrence;
}

int Graph::next_occurrence(const Where& where, Name op) const {
  const auto it = occurrences_.find({where.path, op, where.phase});
  return it == occurrences_.end() ? 0 : it->second;
}

void Graph::set_output(Name output, ValueId value, OutputKind kind) {
  const auto next = static_cast<std::uint32_t>(outputs_.size());
  const auto [known, is_new] = output_of_.emplace(output, next);
  const std::uint32_t at = known->second;
  if (is_new)
    outputs_.emplace_back();
  else
    forget_use(outputs_[at].value, use_of_output(at));
  outputs_[at] = {output, value, kind};
  note_use(value, use_of_output(at));
  std::erase(lost_taps_, output);  // a value was found again
}

Use Graph::use_of_output(std::uint32_t at) const {
  return {outputs_[at].kind == OutputKind::Tap ? Use::By::Tap : Use::By::Output, 0, at};
}

// Those behind it move up.
void Graph::drop_tap(std::uint32_t at) {
  for (std::uint32_t i = at; i < outputs_.size(); ++i)
    forget_use(outputs_[i].value, use_of_output(i));
  output_of_.erase(outputs_[at].name);
  lose_tap(outputs_[at].name);
  outputs_.erase(outputs_.begin() + at);
  for (std::uint32_t i = at; i < outputs_.size(); ++i) {
    output_of_[outputs_[i].name] = i;
    note_use(outputs_[i].value, use_of_output(i));
  }
}

namespace {
void add_once(std::vector<Name>& names, Name name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}
}  // namespace

void Graph::ask_tap(Name pattern) { add_once(tap_patterns_, pattern); }
void Graph::measure(Policy policy) {
  if (std::find(measured_.begin(), measured_.end(), policy) == measured_.end())
    measured_.push_back(policy);
}
void Graph::lose_tap(Name tap) { add_once(lost_taps_, tap); }

void Graph::set_update(Name id, ValueId value) {
  const auto next = static_cast<std::uint32_t>(updates_.size());
  const auto [known, is_new] = update_of_.emplace(id, next);
  const Use use{Use::By::Update, 0, known->second};
  if (is_new)
    updates_.emplace_back();
  else
    forget_use(read_by(use), use);
  updates_[use.at] = {id, value};
  note_use(value, use);
}

namespace {
std::vector<std::uint32_t> all_of(const Graph& g, Name op) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t n : g.order())
    if (g.node(n).op == op) found.push_back(n);
  return found;
}
}  // namespace

std::optional<ValueId> Graph::find_state(Name id) const {
  const auto it = states_.find(id);
  return it == states_.end() ? std::nullopt : std::optional(ValueId{it->second, 0});
}
std::vector<std::uint32_t> Graph::inputs() const { return all_of(*this, kInputOp); }
std::vector<std::uint32_t> Graph::states() const { return all_of(*this, kStateOp); }

int Graph::use_count(ValueId v) const {
  const std::vector<Use>& all = uses(v);
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [](const Use& u) { return u.by != Use::By::Tap; }));
}

std::vector<std::uint32_t> Graph::readers(ValueId v) const {
  std::vector<std::uint32_t> nodes;
  for (const Use& use : uses(v))
    if (use.by == Use::By::Node && (nodes.empty() || nodes.back() != use.node))
      nodes.push_back(use.node);
  return nodes;
}

std::vector<std::uint32_t> Graph::users(std::uint32_t n) const {
  std::vector<std::uint32_t> nodes;
  for (std::uint32_t i = 0; i < nodes_[n].out.size(); ++i) {
    const std::vector<std::uint32_t> more = readers({n, i});
    nodes.insert(nodes.end(), more.begin(), more.end());
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

void Graph::note_use(ValueId v, const Use& use) {
  std::vector<Use>& uses = uses_[v.node][v.index];
  if (uses.empty() || uses.back() < use)
    uses.push_back(use);
  else
    uses.insert(std::lower_bound(uses.begin(), uses.end(), use), use);
}

void Graph::forget_use(ValueId v, const Use& use) {
  std::vector<Use>& uses = uses_[v.node][v.index];
  uses.erase(std::lower_bound(uses.begin(), uses.end(), use));
}

ValueId& Graph::read_by(const Use& use) {
  if (use.by == Use::By::Update) return updates_[use.at].value;
  if (use.by != Use::By::Node) return outputs_[use.at].value;
  return nodes_[use.node].in[use.at];
}

void Graph::set_input(std::uint32_t n, int i, ValueId v) {
  const Use use{Use::By::Node, n, static_cast<std::uint32_t>(i)};
  forget_use(read_by(use), use);
  read_by(use) = v;
  note_use(v, use);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  if (from == to) return;
  for (const Use& use : std::exchange(uses_[from.node][from.index], {})) {
    read_by(use) = to;
    note_use(to, use);
  }
}

void Graph::erase(std::uint32_t n) {
  for (std::uint32_t i = 0; i < nodes_[n].out.size(); ++i)
    ensure(use_count({n, i}) == 0, "an erased node is unused");
  for (std::uint32_t i = 0; i < nodes_[n].out.size(); ++i)
    while (!uses({n, i}).empty()) drop_tap(uses({n, i}).front().at);  // nothing else is left there
  for (std::uint32_t i = 0; i < nodes_[n].in.size(); ++i)
    forget_use(nodes_[n].in[i], {Use::By::Node, n, i});
  if (nodes_[n].op == kStateOp) states_.erase(state_id(nodes_[n]));
  nodes_[n].in.clear();
  nodes_[n].erased = true;
  order_.erase(n);
}

void verify_structure(const Graph& g) {
  std::vector<bool> defined(g.capacity(), false);
  const auto fail = [&](std::uint32_t n, const std::string& what) {
    throw InternalError("the graph is broken: " + what).line("node", print_node(g, n));
  };
  const auto usable = [&](ValueId v) {
    return v.node < g.capacity() && defined[v.node] && v.index < g.node(v.node).out.size();
  };
  std::map<std::string, int> seen;
  for (std::uint32_t n : g.order()) {
    const Node& node = g.node(n);
    for (ValueId v : node.in)
      if (!usable(v)) fail(n, "an operand is not defined before its use");
    if (node.op == kInputOp || node.op == kStateOp) {
      const auto* name = node.attrs.find(kNameKey);
      if (!name || !std::holds_alternative<std::string>(*name)) fail(n, "it has no name");
      const auto* id = node.attrs.find(kIdKey);
      if (id && !std::holds_alternative<std::string>(*id)) fail(n, "its id is no text");
      const std::string own = id ? std::get<std::string>(*id) : std::get<std::string>(*name);
      if (seen[node.op.str() + own]++)
        fail(n, "its name occurs twice, and it has no id of its own");
    }
    defined[n] = true;
  }
  for (const GraphOutput& o : g.outputs())
    if (!usable(o.value)) throw InternalError("output '" + o.name.str() + "' is not defined");
  for (const StateUpdate& u : g.updates()) {
    const auto state = g.find_state(u.id);
    if (!state || !usable(u.value))
      throw InternalError("the update of '" + u.id.str() + "' is not defined");
    if (g.type(*state) != g.type(u.value))
      throw InternalError("the update of '" + u.id.str() + "' changes its type")
          .saw(g.type(u.value).str())
          .need(g.type(*state).str());
  }
}

}  // namespace aloft
