// How eager mode executes: a call looks up the kernel that a one-op Plan would use (the same
// prepared kernel, the same tiling, hence the same bits as compiled), runs it, and records itself
// on a tape, which is an ordinary Graph, so that gradients are the same `differentiate`.
//
// What is recorded lives as long as a tensor that was computed from it is held (eager_tape.cpp). A
// tensor never changes: where a variable is updated, values of it that are still needed are copied.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "frontend/draws.h"
#include "frontend/lost.h"
#include "graph/graph.h"
#include "graph/value_notes.h"
#include "passes/casting_emitter.h"
#include "runtime/device.h"

namespace aloft {

class EagerTaps;
class History;
struct Lookout;

// Inside: a value that exists: its memory and, while the tape that recorded it lives, its place
// there.
struct EagerCell {
  TensorType type;
  Buffer buffer = {};
  ValueId id = {};
  std::uint64_t generation = 0;               // of the tape that `id` belongs to; 0: not recorded
  std::map<Name, std::int64_t> lengths = {};  // actual values of the symbols in `type`
  VariablePtr variable = nullptr;             // whose value this is, as it was when it was read
  std::uint64_t version = 0;                  // the variable's, then
  bool is_borrowed = false;  // its owner (the variable, a program) will write the memory again
  Lost lost = Lost::Nothing;
  ValueNotes notes = {};
  std::uint64_t born = 0;  // counts cells: what is older cannot depend on it
  // Of a compiled program's result: when its youngest argument was born. It depends on no younger.
  std::optional<std::uint64_t> youngest_argument = std::nullopt;
  std::uint64_t passed = 0;     // the youngest cell when a step's backward passed it on the tape
  std::int64_t first_use = -1;  // of a gradient: Emitter::first_use
  // Of a gradient: those that its loss is multiplied with (frontend/loss_scale_uses.h).
  std::vector<VariablePtr> loss_scales = {};
};

// Inside: executes ops as they are called and records them on a tape.
class EagerEmitter : public Emitter {
 public:
  explicit EagerEmitter(Device& device);
  Device& device() const { return device_; }
  // This thread uses it from here on; its thread ends: what it holds goes, tensors of it can be
  // read still and are refused by ops (E0304).
  void begin();
  void end();

  std::vector<Tensor> emit(const OpCall& call, std::span<const Tensor> in,
                           const Where& where) override;
  void lend_lengths(const Tensor* like) override { lends_lengths_ = like ? &cell(*like) : nullptr; }
  TensorType type_of(const Tensor& t) const override;
  bool is_recording() const override { return recording_ && grad_enabled(); }
  Tensor handle(ValueId v) override;
  ValueNotes& notes(const Tensor& t) override;
  Tensor current(const Tensor& t) override;
  Tensor state(const VariablePtr& variable) override;
  void update(const VariablePtr& variable, const Tensor& value) override;
  std::int64_t random_key(Name op, const Tensor& rng) override;
  std::vector<Tensor> gradients(const Tensor& target, const Tensor& seed,
                                std::span<const Tensor> wrt, const Where& where) override;
  std::vector<Tensor> variable_gradients(const Tensor& target, const Tensor& seed,
                                         std::span<const VariablePtr> variables,
                                         const Where& where) override;
  std::int64_t first_use(const Tensor& gradient) const override { return cell(gradient).first_use; }
  void watch(const Tensor& value, std::function<void(std::int32_t)> look) override;
  std::vector<double> read(const Tensor& t) const override;
  std::vector<std::int64_t> read_integers(const Tensor& t) const override;
  void backward(const Tensor& loss) override;

  // A tensor of host memory, copied. `lengths` where the type has symbols.
  Tensor from_host(const TensorType& type, const void* bytes,
                   const std::map<Name, std::int64_t>& lengths = {});
  // A program's result: over a buffer that the program will write again, and settles before it
  // does. A gradient that would have to pass it to what it hides is refused; under NoGrad it hides
  // nothing.
  Tensor borrow(const TensorType& type, Buffer buffer, Lost hidden,
                std::uint64_t youngest_argument);
  // Gives a borrowed value memory of its own; nothing else changes for who holds it.
  static void settle(const Tensor& t);
  const EagerCell& cell(const Tensor& t) const;
  // The sum of the gradients that each backward() left for a parameter since they were last
  // forgotten; undefined if none.
  Tensor gradient_of(const VariablePtr& variable) const;
  // What a loop makes of it before its step, of losses that depend on what those did.
  void replace_gradient(const VariablePtr& variable, const Tensor& gradient);
  // Leaves one that was set aside, of a loss that was computed from `by`, which is no parameter,
  // and divided by it.
  void put_back_gradient(const VariablePtr& variable, const Tensor& gradient,
                         const VariablePtr& by);
  void forget_gradients() { gradients_.clear(); }
  void forget_gradients(std::span<const VariablePtr> variables);
  // Whether every loss whose gradient the parameter `of` holds was computed from `by`, which is no
  // parameter, such as a loss scale.
  bool gradient_comes_by(const VariablePtr& of, const VariablePtr& by) const;
  // Which version of `by` they were computed from; kDivided: the gradient is divided by it;
  // kNoVersion: not all from the same, or not from `by`.
  static constexpr std::uint64_t kNoVersion = UINT64_MAX, kDivided = UINT64_MAX - 1;
  std::uint64_t gradient_version(const VariablePtr& of, const VariablePtr& by) const;
  static void note_loss_scales(const Tensor& gradient, const std::vector<VariablePtr>& scales) {
    static_cast<EagerCell*>(gradient.held().get())->loss_scales = scales;
  }
  // The gradient that a parameter holds was divided by the loss scale that it comes by.
  void note_divided(const VariablePtr& parameter);
  // A loop has said what the gradient is: whether a loss scale is in it is its own to know.
  void forget_scales(const VariablePtr& parameter);
  // Whether one of those losses was multiplied with a loss scale that is none of `known`, and
  // nothing has divided the gradient since.
  bool gradient_has_scale_besides(const VariablePtr& of, std::span<const VariablePtr> known) const;
  // Whether one of those losses was multiplied twice with one loss scale.
  bool gradient_is_scaled_twice(const VariablePtr& of) const;
  // What has been drawn at each place since the random state last changed or was set: what comes
  // behind a step draws other numbers anyway, and a loop must not depend on what ran before it.
  DrawCounts& draws();
  // Drops the tape: a gradient that would pass what was recorded so far is refused (E0321).
  void clear_tape();
  // Somebody else is about to change or move variables: values of theirs that are still needed are
  // copied first, the others forgotten.
  void let_go_of_variables();
  // The same for one variable, whose values the caller is about to write; raises its version.
  void let_go_of(Variable& variable);
  // Values that the tape holds now.
  std::size_t tape_size() const { return values_.size(); }
  // What is computed from now on is shown to these; null: to nobody.
  void show_to(EagerTaps* taps) { taps_ = taps; }
  // Gradients are emitted through the outer emitter, which inserts casts.
  void set_outer(CastingEmitter* outer) { outer_ = outer; }

 private:
  using CellPtr = std::shared_ptr<EagerCell>;
  friend class EagerTaps;

  // emit(), state() and update() without anybody who looks on.
  std::vector<Tensor> run_op(const OpCall& call, std::span<const Tensor> in, const Where& where);
  Tensor value_of(const VariablePtr& variable);
  void write(const VariablePtr& variable, const EagerCell& value);
  void check_thread() const;
  bool is_recorded(const EagerCell& c) const { return c.generation == generation_; }
  CellPtr new_cell(const TensorType& type, const std::map<Name, std::int64_t>& lengths);
  // The same value in a cell of its own, which the tape does not know. It borrows nothing: an owner
  // knows of one value over its memory, not of others.
  CellPtr copy_of(const EagerCell& c);
  // Those of loss_scales_on() (frontend/loss_scale_uses.h).
  std::vector<VariablePtr> loss_scales_of(const Tensor& loss, const History& history) const;
  // Memory of its own instead of borrowed memory.
  static void own(EagerCell& c);
  std::vector<CellPtr> execute(const OpCall& asked, std::span<const Tensor> in,
                               const std::vector<TensorType>& out);
  Tensor wrap(const CellPtr& cell);
  void record(std::uint32_t node, const std::vector<CellPtr>& cells);
  void join(const CellPtr& cell);
  void leave_unrecorded(EagerCell& c);
  void let_go(const CellPtr& cell);

  // eager_tape.cpp, eager_backward.cpp
  std::vector<Tensor> differentiate_tape(const Tensor& target, const Tensor& seed,
                                         const std::vector<Tensor>& wrt, const Where& where);
  void check_target(const Tensor& target) const;
  Lookout lookout() const;
  static bool is_overwritten(const EagerCell& c);
  void check_history(const History& history, std::uint64_t oldest, bool through_parameters) const;
  // Only where no caller holds the number of a value: numbers change.
  void sweep_if_grown();
  static std::size_t kept_bytes(const EagerCell& c);
  void drop_dead_states();
  void sweep();
  std::map<const void*, long> own_references() const;
  std::vector<Lost> ways_back(std::vector<bool>& reaches_parameter) const;
  void forget_used(const History& used, const std::vector<Tensor>& wrt,
                   const std::set<const Variable*>& still_wanted);
  std::vector<bool> nodes_across_steps() const;
  std::vector<bool> nodes_behind(const std::set<const Variable*>& variables) const;
  std::set<const Variable*> trainable_behind(const History& history) const;
  void forget_earlier_step(const Tensor& target, std::span<const VariablePtr> variables);
  std::set<const Variable*> take_part(const Tensor& target, const History& history,
                                      std::span<const VariablePtr> variables);
  Tensor sum_of_gradients(const Tensor& a, const Tensor& b);
  void close_over_operands(std::vector<bool>& kept) const;
  void keep_only(const std::vector<bool>& kept);
  void rebuild(const std::vector<bool>& kept);
  void reset();

  Device& device_;
  const void* thread_ = nullptr;  // that uses it
  CastingEmitter* outer_ = nullptr;
  EagerTaps* taps_ = nullptr;
  const EagerCell* lends_lengths_ = nullptr;
  Graph tape_;
  std::map<ValueId, CellPtr> values_;
  std::map<const Variable*, CellPtr> states_;  // each variable's value as it is now
  std::size_t state_bytes_ = 0;                // that they keep
  std::size_t drop_states_at_bytes_ = 0;
  DrawCounts draws_;
  std::array<std::int64_t, 3> random_at_ = {};  // the random state that `draws_` counts under
  std::uint64_t draws_begun_ = 0;               // and since when
  // What backward() left for parameters. It keeps no variable: those of a model that is gone go.
  using VersionsRead = std::map<std::weak_ptr<Variable>, std::uint64_t, std::owner_less<>>;
  struct LeftGradient {
    Tensor sum;
    // Variables but parameters that all losses depend on, and the version of each that was read.
    VersionsRead by;
    // Loss scales that one of the losses was multiplied with, and nothing has divided by.
    std::set<std::weak_ptr<Variable>, std::owner_less<>> scales = {};
    bool is_scaled_twice = false;  // with one of them
  };
  std::map<std::weak_ptr<Variable>, LeftGradient, std::owner_less<>> gradients_;
  // Targets whose gradients were taken for some of the trainable parameters they depend on.
  struct Part {
    std::weak_ptr<EagerCell> target;
    std::set<const Variable*> taken;
  };
  std::vector<Part> parts_;
  std::uint64_t generation_ = 1;
  std::uint64_t born_ = 0;
  int leaves_ = 0;
  std::size_t tape_bytes_ = 0;  // of the recorded values
  std::size_t sweep_at_bytes_ = 0;
  std::uint32_t sweep_at_nodes_ = 0;
  std::uint32_t unrecorded_ = 0;
  bool recording_ = true;
  bool is_differentiating_ = false;  // the numbers of values stay what they are
};

// Inside: this thread's eager session on its current device, an EagerEmitter behind a
// CastingEmitter.
EagerEmitter& eager();
CastingEmitter& eager_session();

}  // namespace aloft
