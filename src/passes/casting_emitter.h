// An emitter that asks the precision decision before every op and inserts the casts it wants, then
// passes the op on. Eager execution runs through it, functions are traced through it, differentiate
// emits the backward nodes through it, the pass insert_casts replays a graph in logical types
// through it: the same decisions everywhere.
//
// What a cast to f32 in the model's own code asks for is kept: ops of the forward pass that work on
// its result, or on a loss, are governed by "O0" (wide_policy()) until a product takes them down. A
// number beside a tensor has no say in the types, and is not rounded to a low one: an op that would
// do that is computed in f32, and its result stored as decided. So is an op that the back end has
// no kernel for in the low type (passes/low_kernels.h).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/tensor.h"
#include "graph/value_notes.h"
#include "ops/op.h"
#include "passes/low_kernels.h"
#include "precision/decide.h"
#include "types/capability.h"

namespace aloft {

// One decision, for `explain precision`.
struct DecisionRecord {
  Name op, path;
  Phase phase = Phase::Forward;
  Decision decision;
  ProductForm form = ProductForm::Plain;  // how its products may be computed
};

class CastingEmitter : public Emitter {
 public:
  // `takes`: which calls the back end has kernels for; empty: for all.
  CastingEmitter(Emitter& inner, Capability capability, TakesCall takes = {})
      : inner_(&inner), capability_(capability), low_kernels_(std::move(takes)) {}

  std::vector<Tensor> emit(const OpCall& call, std::span<const Tensor> in,
                           const Where& where) override;
  TensorType type_of(const Tensor& t) const override { return inner_->type_of(t); }
  void lend_lengths(const Tensor* like) override { inner_->lend_lengths(like); }
  std::string origin_of(const Tensor& t) const override { return inner_->origin_of(t); }
  bool is_recording() const override { return inner_->is_recording(); }
  bool decides_types() const override { return true; }
  Tensor handle(ValueId v) override { return adopt(inner_->handle(v)); }
  ValueNotes& notes(const Tensor& t) override { return inner_->notes(t); }
  Tensor current(const Tensor& t) override { return adopt(inner_->current(t)); }
  Tensor state(const VariablePtr& variable) override;
  void update(const VariablePtr& variable, const Tensor& value) override;
  std::int64_t random_key(Name op, const Tensor& rng) override {
    return inner_->random_key(op, rng);
  }
  std::vector<Tensor> gradients(const Tensor& target, const Tensor& seed,
                                std::span<const Tensor> wrt, const Where& where) override;
  std::vector<Tensor> variable_gradients(const Tensor& target, const Tensor& seed,
                                         std::span<const VariablePtr> variables,
                                         const Where& where) override;
  std::int64_t first_use(const Tensor& gradient) const override {
    return inner_->first_use(gradient);
  }
  void watch(const Tensor& value, std::function<void(std::int32_t)> look) override {
    inner_->watch(value, std::move(look));
  }
  std::vector<double> read(const Tensor& t) const override { return inner_->read(t); }
  std::vector<std::int64_t> read_integers(const Tensor& t) const override {
    return inner_->read_integers(t);
  }
  void backward(const Tensor& loss) override { inner_->backward(loss); }

  // `value` is the parameter `name`: patterns of the recipe apply to ops that read it.
  void note_parameter(const Tensor& value, const std::string& name);
  // Takes note of a node that the trace of `graph` emitted through an emitter such as this: casts
  // that are there serve what follows. The cast that `n` repeats, if it does.
  std::optional<ValueId> learn(const Graph& graph, std::uint32_t n);
  // Appends every decision to `into` from now on; nullptr stops.
  void record_decisions(std::vector<DecisionRecord>* into) { decisions_ = into; }
  // Ops go to `inner` from here on. Casts of what the one before knew are forgotten.
  void pass_on_to(Emitter& inner);
  // Forgets casts of a tape that has been dropped.
  void forget_casts() { casts_.clear(); }
  // Values have new numbers; casts of those without one are forgotten.
  void rename_casts(const std::map<ValueId, ValueId>& renamed);
  // Adds, for what each kept cast holds, the references to it.
  void count_cached(std::map<const void*, long>& references) const;

 private:
  // Where::listed of an op that the forward pass begins to emit; the backward pass has it from
  // there.
  void list_parameter(std::span<const Tensor> in, Where& where);
  void note_moved(Name op, std::span<const Tensor> in, const Where& where, const Tensor& out);
  // Whether names of parameters matter there.
  static bool lists_parameters(const Where& where);
  void note_number(Name op, const Attrs& attrs, std::span<const Tensor> in, const Tensor& value,
                   const Where& where);
  // Has operands cast to f32 where a number among them would be rounded else.
  void keep_numbers(Decision& d, std::span<const Tensor> in) const;
  // The policy of an op there: that of its layer, where the recipe lists layers.
  Policy policy_at(const Where& where);
  Decision decide_for(const OpDef& op, std::span<const Tensor> in, const Where& where);
  // Casts the operands, which are `in` as they are now, as decided; to f32 where nothing computes
  // the op on them.
  void cast_for(const OpDef& op, const OpCall& call, Decision& d, const Where& where,
                std::span<const Tensor> in, std::vector<Tensor>& operands);
  ProductForm form_for(const OpDef& op, std::span<const Tensor> in,
                       const PrecisionRecipe& recipe) const;
  bool is_wide(const OpDef& op, std::span<const Tensor> in, const Where& where);
  bool moves_wide(const OpDef& op, std::span<const Tensor> in) const;
  void cast_operands(const OpDef& op, const Decision& d, const Where& where,
                     std::vector<Tensor>& operands);
  Tensor cast_to(const Tensor& t, DType to, const Where& where, Reason reason);
  Tensor adopt(const Tensor& t) { return Tensor(this, t.id(), t.held()); }

  Emitter* inner_;
  Capability capability_;
  LowKernels low_kernels_;
  std::map<std::pair<ValueId, DType>, Tensor> casts_;
  std::vector<DecisionRecord>* decisions_ = nullptr;
  std::map<std::pair<const std::string*, Name>, Policy> in_layers_;  // by the text of the model's
};

}  // namespace aloft
