#include "graph/graph.h"

#include <algorithm>

#include "base/error.h"

namespace aloft {

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
  return {add("input", std::move(a), {}, {type}, current_where()), 0};
}

Name state_id(const Node& node) {
  for (const char* key : {"id", "name"})
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
  return {add("state", std::move(a), {}, {v.type}, current_where()), 0};
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
  users_.emplace_back();
  for (ValueId v : node.in) {
    ensure(v.node < n && v.index < nodes_[v.node].out.size(), "operands exist before their user");
    auto& u = users_[v.node];
    if (std::find(u.begin(), u.end(), n) == u.end()) u.push_back(n);
  }
  if (before) {
    auto at = std::find(order_.begin(), order_.end(), *before);
    order_.insert(at, n);
  } else {
    order_.push_back(n);
  }
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
  for (GraphOutput& o : outputs_)
    if (o.name == output) {
      o = {output, value, kind};
      return;
    }
  outputs_.push_back({output, value, kind});
}

namespace {
void add_once(std::vector<Name>& names, Name name) {
  if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}
}  // namespace

void Graph::ask_tap(Name pattern) { add_once(tap_patterns_, pattern); }
void Graph::lose_tap(Name tap) { add_once(lost_taps_, tap); }

void Graph::set_update(Name id, ValueId value) {
  for (StateUpdate& u : updates_)
    if (u.id == id) {
      u.value = value;
      return;
    }
  updates_.push_back({id, value});
}

void Graph::set_order(std::vector<std::uint32_t> order) {
  ensure(
      std::is_permutation(order.begin(), order.end(), Graph::order().begin(), Graph::order().end()),
      "an order holds the graph's nodes");
  order_ = std::move(order);
}

const std::vector<std::uint32_t>& Graph::order() const {
  if (order_has_erased_) {
    std::erase_if(order_, [&](std::uint32_t n) { return nodes_[n].erased; });
    order_has_erased_ = false;
  }
  return order_;
}

namespace {
std::vector<std::uint32_t> all_of(const Graph& g, Name op) {
  std::vector<std::uint32_t> found;
  for (std::uint32_t n : g.order())
    if (g.node(n).op == op) found.push_back(n);
  return found;
}
}  // namespace

std::optional<ValueId> Graph::find_input(Name wanted) const {
  for (std::uint32_t n : order())
    if (nodes_[n].op == Name("input"))
      if (const auto* name = nodes_[n].attrs.find("name"))
        if (std::get<std::string>(*name) == wanted.str()) return ValueId{n, 0};
  return std::nullopt;
}
std::optional<ValueId> Graph::find_state(Name id) const {
  for (std::uint32_t n : order())
    if (nodes_[n].op == Name("state") && state_id(nodes_[n]) == id) return ValueId{n, 0};
  return std::nullopt;
}
std::vector<std::uint32_t> Graph::inputs() const { return all_of(*this, "input"); }
std::vector<std::uint32_t> Graph::states() const { return all_of(*this, "state"); }

int Graph::use_count(ValueId v) const {
  int count = 0;
  for (std::uint32_t u : users_[v.node])
    count += static_cast<int>(std::count(nodes_[u].in.begin(), nodes_[u].in.end(), v));
  for (const GraphOutput& o : outputs_) count += o.value == v && o.kind != OutputKind::Tap;
  for (const StateUpdate& u : updates_) count += u.value == v;
  return count;
}

void Graph::set_input(std::uint32_t n, int i, ValueId v) {
  const ValueId old = nodes_[n].in[i];
  nodes_[n].in[i] = v;
  const auto reads_old_node = [&](ValueId x) { return x.node == old.node; };
  if (std::none_of(nodes_[n].in.begin(), nodes_[n].in.end(), reads_old_node))
    std::erase(users_[old.node], n);
  auto& u = users_[v.node];
  if (std::find(u.begin(), u.end(), n) == u.end()) u.push_back(n);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  const std::vector<std::uint32_t> readers = users_[from.node];
  for (std::uint32_t u : readers)
    for (std::size_t i = 0; i < nodes_[u].in.size(); ++i)
      if (nodes_[u].in[i] == from) set_input(u, static_cast<int>(i), to);
  for (GraphOutput& o : outputs_)
    if (o.value == from) o.value = to;
  for (StateUpdate& u : updates_)
    if (u.value == from) u.value = to;
}

void Graph::erase(std::uint32_t n) {
  for (std::uint32_t i = 0; i < nodes_[n].out.size(); ++i)
    ensure(use_count({n, i}) == 0, "an erased node is unused");
  for (const GraphOutput& o : outputs_)
    if (o.value.node == n) lose_tap(o.name);  // what else reads it was refused above
  std::erase_if(outputs_, [n](const GraphOutput& o) { return o.value.node == n; });
  for (ValueId v : nodes_[n].in) std::erase(users_[v.node], n);
  nodes_[n].in.clear();
  nodes_[n].erased = true;
  order_has_erased_ = true;
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
    if (node.op == Name("input") || node.op == Name("state")) {
      const auto* name = node.attrs.find("name");
      if (!name || !std::holds_alternative<std::string>(*name)) fail(n, "it has no name");
      const auto* id = node.attrs.find("id");
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
