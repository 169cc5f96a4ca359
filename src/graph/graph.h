// A graph: typed SSA values in a list of nodes. It knows shapes and element types, never strides
// or memory; it knows ops by name only. It owns use-def: change it through the calls below.
//
// Three node names are the graph's own: `input` {name}; `state` {name, id, class, requires_grad,
// is_norm, stored}, the last only in a graph in logical types, where the variable is f32 until
// insert-casts gives it the type that it is stored in; `gradients` (target, seed, wrt...), which
// the pass `differentiate` expands. All others are ops of the table. Mutation is explicit: `state`
// reads a variable's value from before the run, `updates` declare its value after it.
//
// A tap counts as no use, and keeps nothing alive: passes do what they would do without it. It
// follows its value through replace_uses; where its node is erased, the tap is lost.
//
// A variable is known by its id; its name is a label, which several may share (two models). The id
// is the name wherever nobody else has it, and then stands nowhere else.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/name.h"
#include "graph/node_order.h"
#include "graph/scope.h"
#include "graph/tensor.h"
#include "types/attrs.h"
#include "types/product_form.h"
#include "types/shape.h"

namespace aloft {

struct Node {
  Name op;
  Attrs attrs;
  ProductForm form = ProductForm::Plain;  // how the products in it may be computed
  std::vector<ValueId> in;
  std::vector<TensorType> out;
  Where where;
  int occurrence = 0;  // counts nodes with equal (path, op, phase), in order of creation
  bool erased = false;
  // Identities of the nodes that a fused node stands for, ", " between them; mostly empty.
  std::string members = {};

  // Survives passes, cloning and recomputation: "h.3.attn.qkv/linear#0".
  std::string identity() const;
};

// Whom an output is for.
enum class OutputKind {
  Result,  // the program's caller
  Watch,   // the host, which looks at it behind each run: it is computed for that alone
  Tap,     // somebody who looks on: no reader, so that the program is what it would be without
};

struct GraphOutput {
  Name name;
  ValueId value;
  OutputKind kind = OutputKind::Result;
};

struct StateUpdate {
  Name id;  // the variable's
  ValueId value;
};

// A place where a value is read: operand number `at` of a node, or the graph's output or update of
// that number.
struct Use {
  enum class By : std::uint8_t { Node, Output, Update, Tap };  // Tap: an output that is no reader
  By by = By::Node;
  std::uint32_t node = 0;  // By::Node alone
  std::uint32_t at = 0;
  friend auto operator<=>(const Use&, const Use&) = default;  // NOLINT(modernize-use-nullptr)
};

// The id of the variable that a `state` node reads.
Name state_id(const Node& node);

class Graph {
 public:
  Name name = "main";

  // --- building
  ValueId add_input(Name name, const TensorType& type);
  // `id` where the variable's name is not its own.
  ValueId add_state(const Variable& variable, Name id = {});
  // Appends a node, or inserts it before `before`, which is alive. Output types are given:
  // inference is the ops' business. Returns its number.
  std::uint32_t add(Name op, Attrs attrs, std::vector<ValueId> in, std::vector<TensorType> out,
                    const Where& where, std::optional<std::uint32_t> before = std::nullopt);
  void set_output(Name name, ValueId value, OutputKind kind = OutputKind::Result);
  // A pattern by which `mark-taps` finds values to tap (passes/tap_pattern.h); a tap's name that
  // no value has any more. Each once.
  void ask_tap(Name pattern);
  void lose_tap(Name tap);
  // A policy in which `measure-layers` computes each layer once more. Each once.
  void measure(Policy policy);
  void set_update(Name id, ValueId value);  // the last one wins

  // --- reading
  const Node& node(std::uint32_t n) const { return nodes_[n]; }
  std::uint32_t capacity() const { return static_cast<std::uint32_t>(nodes_.size()); }
  // Live nodes in execution order; which of two comes first, without looking for them there.
  const std::vector<std::uint32_t>& order() const { return order_.list(); }
  bool comes_before(std::uint32_t a, std::uint32_t b) const { return order_.comes_before(a, b); }
  const TensorType& type(ValueId v) const { return nodes_[v.node].out[v.index]; }
  const std::vector<GraphOutput>& outputs() const { return outputs_; }
  const std::vector<StateUpdate>& updates() const { return updates_; }
  const std::vector<Name>& tap_patterns() const { return tap_patterns_; }
  const std::vector<Name>& lost_taps() const { return lost_taps_; }
  const std::vector<Policy>& measured() const { return measured_; }
  std::optional<ValueId> find_state(Name id) const;
  bool is_updated(Name id) const { return update_of_.contains(id); }
  std::vector<std::uint32_t> inputs() const;  // `input` nodes in order
  std::vector<std::uint32_t> states() const;
  // Where `v` is read: operands by node, then outputs, updates and taps.
  const std::vector<Use>& uses(ValueId v) const { return uses_[v.node][v.index]; }
  int use_count(ValueId v) const;  // of those but taps
  // Nodes that read `v`, and those that read any output of `n`: each once, by their numbers.
  std::vector<std::uint32_t> readers(ValueId v) const;
  std::vector<std::uint32_t> users(std::uint32_t n) const;

  // --- changing
  void replace_uses(ValueId from, ValueId to);  // operands, outputs and updates
  void erase(std::uint32_t n);                  // must be unused; taps of it are lost
  void set_input(std::uint32_t n, int i, ValueId v);
  Where& where(std::uint32_t n) { return nodes_[n].where; }
  // The same live nodes in another order, in which every operand still comes before its readers.
  void set_order(const std::vector<std::uint32_t>& order) { order_.rearrange(order); }
  // Of the node that was added last: the occurrence that it had in the graph that it comes from.
  void set_occurrence(std::uint32_t n, int occurrence);
  void set_form(std::uint32_t n, ProductForm form) { nodes_[n].form = form; }
  void set_members(std::uint32_t n, std::string members) { nodes_[n].members = std::move(members); }

  // The hash key of the next node (path, op, Forward) for random numbers.
  int next_occurrence(const Where& where, Name op) const;

 private:
  void note_use(ValueId v, const Use& use);
  void forget_use(ValueId v, const Use& use);
  // The value that `use` reads.
  ValueId& read_by(const Use& use);
  Use use_of_output(std::uint32_t at) const;
  void drop_tap(std::uint32_t at);

  // Each question that passes ask of every node is answered by looking in one place, whatever the
  // size of the graph: compile time grows with the number of layers, not with its square.
  std::vector<Node> nodes_;
  std::vector<std::vector<std::vector<Use>>> uses_;  // by node and output, in ascending order
  NodeOrder order_;
  std::vector<GraphOutput> outputs_;
  std::vector<StateUpdate> updates_;
  std::vector<Name> tap_patterns_, lost_taps_;
  std::vector<Policy> measured_;
  std::unordered_map<Name, std::uint32_t> output_of_, update_of_;  // where each lies above
  std::unordered_map<Name, std::uint32_t> states_;                 // nodes, by the variables' ids
  std::map<std::tuple<Name, Name, Phase>, int> occurrences_;
};

// Text form: parse(print(g)) prints the same again (graph/text.cpp shows it).
std::string print(const Graph& graph);
std::string print_node(const Graph& graph, std::uint32_t n);
Graph parse_graph(std::string_view text);  // UserError E0310 with the line

// Structure: operands defined before use, indices in range, one node per input and variable,
// updates of known variables with the variable's type. InternalError with the offending node.
void verify_structure(const Graph& graph);

// 64-bit FNV-1a of an identity: keys random numbers.
std::uint64_t identity_hash(std::string_view identity);

}  // namespace aloft
