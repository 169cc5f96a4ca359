// A function of the user's recorded as a graph: what compiled programs begin with.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "frontend/draws.h"
#include "frontend/host_count.h"
#include "frontend/lost.h"
#include "frontend/operand_origins.h"
#include "graph/graph.h"
#include "ops/graph_emitter.h"
#include "passes/casting_emitter.h"

namespace aloft {

// The variables that a set of programs works on. Each has an id of its own: its name, or where
// another variable has that already, the name and a number. Identity is the variable.
class StateTable {
 public:
  Name id_of(const VariablePtr& variable);
  const std::map<Name, VariablePtr>& by_id() const { return by_id_; }

 private:
  std::map<Name, VariablePtr> by_id_;
  std::map<VariablePtr, Name> ids_;
};

// Looks at an i32[] after each run of a program (Emitter::watch).
struct Watch {
  ValueId value;
  std::function<void(std::int32_t)> look;
};

// Records nodes. A variable that is read behind its update has the new value, as in eager mode.
class TraceEmitter : public GraphEmitter {
 public:
  // Draws from the random state take their states from inputs, and are listed in `draws`; null:
  // they read the variable. The tensors keep `front`, which is the emitter that the function meets:
  // it can say that the trace has ended as long as there is one of them.
  TraceEmitter(Graph& graph, StateTable& variables, std::shared_ptr<Emitter> front,
               std::vector<Draw>* draws = nullptr)
      : GraphEmitter(graph), front_(std::move(front)), variables_(variables), draws_(draws) {}

  // What messages call an input.
  void give_title(ValueId input, std::string title) { titles_[input.node] = std::move(title); }
  // UserError of the op's inference, with what its operands are to the caller.
  std::vector<Tensor> emit(const OpCall& call, std::span<const Tensor> in,
                           const Where& where) override;
  // UserError E0304 for a tensor of another trace, or of none.
  TensorType type_of(const Tensor& t) const override;
  std::string origin_of(const Tensor& t) const override {
    return aloft::origin_of(graph(), t.id(), titles_);
  }
  Tensor current(const Tensor& t) override;
  // It holds no value: null, but with an owner.
  Tensor handle(ValueId v) override {
    return Tensor(this, v, std::shared_ptr<void>(front_, nullptr));
  }
  bool is_recording() const override { return grad_enabled(); }
  Tensor state(const VariablePtr& variable) override;
  void update(const VariablePtr& variable, const Tensor& value) override;
  std::int64_t random_key(Name op, const Tensor& rng) override;
  std::vector<Tensor> gradients(const Tensor& target, const Tensor& seed,
                                std::span<const Tensor> wrt, const Where& where) override;
  std::vector<Tensor> variable_gradients(const Tensor& target, const Tensor& seed,
                                         std::span<const VariablePtr> variables,
                                         const Where& where) override;
  std::int64_t first_use(const Tensor& gradient) const override;
  void watch(const Tensor& value, std::function<void(std::int32_t)> look) override;

  // Whether the program itself reads the random state or gives it a value: draws that take their
  // states from inputs do not.
  bool uses_random_state();
  // What a gradient that ends at `t` would miss: whoever has the value alone sees neither the
  // trainable parameters nor the inputs that it was computed from.
  Lost behind(const Tensor& t);

  const std::vector<Watch>& watches() const { return watches_; }

 private:
  // What the program has read of a variable so far, and a value that it has now but nobody read.
  struct Values {
    std::vector<ValueId> read;
    ValueId updated = {};
  };
  Values& values_of(const VariablePtr& variable);
  void check_own(const Tensor& t) const;
  void check_target(const Tensor& target) const;
  // Gradients with hooks on their way are taken at once, so that the hooks are traced; none where
  // there are no hooks, and the pass differentiate takes them.
  std::optional<std::vector<Tensor>> hooked_gradients(const Tensor& target, const Tensor& seed,
                                                      std::span<const Tensor> wrt,
                                                      const Where& where);
  Tensor seen_by_hooks(const VariablePtr& variable, const Tensor& gradient);
  std::vector<Tensor> checked_emit(const OpCall& call, std::span<const Tensor> in,
                                   const Where& where);
  ValueId detached(ValueId v);
  void take_draw_state(Name op, std::vector<Tensor>& operands);

  std::shared_ptr<Emitter> front_;
  StateTable& variables_;
  InputTitles titles_;
  std::map<VariablePtr, Values> values_;
  std::map<ValueId, ValueId> detached_;  // of values computed under NoGrad, once they are used
  std::map<ValueId, std::int64_t> first_uses_;
  std::map<std::pair<Name, Name>, int> occurrences_;  // since the random state's last update
  std::vector<Watch> watches_;
  std::vector<Draw>* draws_;
};

struct InputSpec {
  std::string name;
  TensorType type;
  bool is_wide = false;    // of what will be given for it (ValueNotes)
  std::string title = {};  // in messages: "argument 1, [0].mask"; empty: its name
};

// What its reader must know of an output.
struct OutputNotes {
  Lost behind = Lost::Nothing;  // what a gradient would miss that ends there
  bool is_wide = false;         // ValueNotes
};

// A program as the user writes it: inputs in, named results out.
using Traceable =
    std::function<std::vector<std::pair<std::string, Tensor>>(const std::vector<Tensor>& inputs)>;

struct TracedProgram {
  Graph graph;
  std::map<std::string, OutputNotes> outputs;
  bool reads_bound = false;  // the function took a batch's bound for a number
  // What is looked at after a run, by the name of its output.
  std::vector<std::pair<std::string, std::function<void(std::int32_t)>>> watches;
  HostPart host;  // of each run
};

// Traces through a CastingEmitter, as eager calls go through one: the graph has the types that the
// precision policies decide. `variables` receives those that the function reads; the decisions are
// appended to `decisions`, its random draws to `draws`, where given (TraceEmitter).
TracedProgram trace(const std::string& name, const std::vector<InputSpec>& inputs,
                    const Traceable& function, StateTable& variables,
                    std::vector<DecisionRecord>* decisions = nullptr,
                    std::vector<Draw>* draws = nullptr);

}  // namespace aloft
