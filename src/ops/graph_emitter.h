// An emitter that records nodes in a graph: what traces, bodies and passes build with.
#pragma once

#include <map>
#include <memory>

#include "graph/graph.h"
#include "graph/tensor.h"
#include "graph/value_notes.h"

namespace aloft {

// Of a `gradients` node whose results are of the operands' types for whoever reads them. Without it
// an update takes them as the backward phase has them.
inline constexpr const char* kExactAttr = "exact";

class GraphEmitter : public Emitter {
 public:
  explicit GraphEmitter(Graph& graph) : graph_(graph) {}

  std::vector<Tensor> emit(const OpCall& call, std::span<const Tensor> in,
                           const Where& where) override;
  TensorType type_of(const Tensor& t) const override { return graph_.type(t.id()); }
  // Variables are a trace's business (frontend/tracing.h): here these are InternalErrors.
  Tensor state(const VariablePtr& variable) override;
  void update(const VariablePtr& variable, const Tensor& value) override;
  std::vector<Tensor> variable_gradients(const Tensor& target, const Tensor& seed,
                                         std::span<const VariablePtr> variables,
                                         const Where& where) override;
  std::int64_t first_use(const Tensor& gradient) const override;
  void watch(const Tensor& value, std::function<void(std::int32_t)> look) override;

  // Counts every draw.
  std::int64_t random_key(Name op, const Tensor& rng) override;
  std::vector<Tensor> gradients(const Tensor& target, const Tensor& seed,
                                std::span<const Tensor> wrt, const Where& where) override;
  // Both are UserError E0301: while tracing there is no value to look at.
  std::vector<double> read(const Tensor& t) const override;
  std::vector<std::int64_t> read_integers(const Tensor& t) const override;
  void backward(const Tensor& loss) override;

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  Tensor handle(ValueId v) override { return Tensor(this, v, nullptr); }
  ValueNotes& notes(const Tensor& t) override { return notes_[t.id()]; }
  // New nodes are inserted before node `n`; nullopt appends.
  void insert_before(std::optional<std::uint32_t> n) { before_ = n; }

 protected:
  // A `gradients` node; `exact`: with kExactAttr.
  std::vector<Tensor> request(const Tensor& target, const Tensor& seed, std::span<const Tensor> wrt,
                              const Where& where, bool exact);

  const std::map<ValueId, ValueNotes>& all_notes() const { return notes_; }

 private:
  [[noreturn]] void no_value_yet(const Tensor& t) const;
  Graph& graph_;
  std::map<ValueId, ValueNotes> notes_;
  std::optional<std::uint32_t> before_;
};

// The key of the `occurrence`-th drawing op of that name at that place.
std::int64_t random_key_of(const Where& where, Name op, int occurrence);

// Replaces node `n` by its op's body. The new nodes take n's place in the user's program.
void inline_body(Graph& graph, std::uint32_t n);

}  // namespace aloft
