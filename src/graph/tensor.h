// Tensor: the one handle that user code, op bodies, gradients and passes compute with. What an op
// call on it does is decided by its Emitter: record a node (tracing), execute at once (eager), or
// insert casts first and pass on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/name.h"
#include "base/source_location.h"
#include "graph/scope.h"
#include "types/shape.h"
#include "types/variable.h"

namespace aloft {

// Inside: a value of a graph.
struct ValueId {
  std::uint32_t node = UINT32_MAX;
  std::uint32_t index = 0;  // which output of the node
  bool is_valid() const { return node != UINT32_MAX; }
  friend bool operator==(ValueId, ValueId) = default;
  friend auto operator<=>(ValueId, ValueId) = default;  // NOLINT(modernize-use-nullptr)
};

class Emitter;
struct OpCall;  // types/call.h
struct ValueNotes;

// A value of ops, of any shape and element type; copies are the same value, which never changes.
// Default-constructed it is undefined: whatever is asked of it is UserError E0302 then, but for
// is_defined().
class Tensor {
 public:
  Tensor() = default;
  // Inside: as emitters make it.
  Tensor(Emitter* emitter, ValueId id, std::shared_ptr<void> held)
      : emitter_(emitter), id_(id), held_(std::move(held)) {}

  // Whether there is a value, or will be when the traced function runs.
  bool is_defined() const { return emitter_ != nullptr; }
  explicit operator bool() const = delete;  // use item(), which explains itself while tracing

  // Element type and shape, known while tracing too; there a dimension may be a symbol
  // (types/shape.h).
  TensorType type() const;
  DType dtype() const { return type().dtype; }
  Shape shape() const { return type().shape; }
  int rank() const { return shape().rank(); }
  // Negative indices count from the back. UserError E0107 where there is no such axis.
  Dim dim(int i) const;

  // The values, converted to double, in row-major order; waits for nothing: an eager op has
  // executed when its call returns. UserError E0301 while tracing, where no value exists yet.
  std::vector<double> to_vector() const;
  std::vector<float> to_floats() const;  // the same, rounded to float
  // The same as integers, every i64 exactly; fractions are cut off.
  std::vector<std::int64_t> to_ints() const;
  // The value of a tensor with one element. UserError E0303 where it has more or none, E0301 while
  // tracing.
  double item() const;
  // Gradients of this scalar with respect to every recorded parameter that requires one, added to
  // those that backward() left before: until an optimizer's step, or zero_grad(). Eager only;
  // results are read with grad_of(parameter). UserError E0803 where it is not one floating-point
  // number, E0321 where its history is not recorded (any more), E0322 where it depends on no
  // parameter.
  void backward() const;

  // Inside: where the value lives.
  Emitter* emitter() const { return emitter_; }
  ValueId id() const { return id_; }
  const std::shared_ptr<void>& held() const { return held_; }

 private:
  Emitter* emitter_ = nullptr;
  ValueId id_;
  std::shared_ptr<void> held_;  // keeps the emitter's record of this value alive
};

// Inside: the emitter of a tensor that a caller gave. UserError E0302 where it is an empty handle.
Emitter& emitter_of(const Tensor& t);

// Inside: where op calls go.
class Emitter {
 public:
  virtual ~Emitter() = default;
  // Infers types and emits one op. Throws UserError with op, place, types seen and needed.
  virtual std::vector<Tensor> emit(const OpCall& call, std::span<const Tensor> in,
                                   const Where& where) = 0;
  // What is emitted from here on has the lengths of `like` where no operand has them; null: none
  // again. Of consequence in eager mode, where a length has a value.
  virtual void lend_lengths(const Tensor* like) { static_cast<void>(like); }
  virtual TensorType type_of(const Tensor& t) const = 0;
  // Whether what is emitted now can be differentiated later.
  virtual bool is_recording() const { return true; }
  // Whether precision policies say here of what types operands and results are; elsewhere they are
  // of the types that are written.
  virtual bool decides_types() const { return false; }
  // A handle on a value that this emitter made before.
  virtual Tensor handle(ValueId v) = 0;
  // What a value is to whoever called the function that is traced: "argument 1, [0].mask",
  // "computed from argument 0", a variable's name; empty where nothing is traced.
  virtual std::string origin_of(const Tensor&) const { return {}; }
  // What is known of a value; whoever decides types writes it.
  virtual ValueNotes& notes(const Tensor& t) = 0;
  // `t` as this emitter knows it now (an eager tape may have been dropped since t was made).
  virtual Tensor current(const Tensor& t) { return t; }
  // The current value of a variable; the same Tensor for every use within one trace.
  virtual Tensor state(const VariablePtr& variable) = 0;
  // Declares `value` the variable's value from here on: what state() gives to calls that follow.
  virtual void update(const VariablePtr& variable, const Tensor& value) = 0;
  // A key for an op that draws random numbers from `rng`: hash of module path, op and, where it is
  // the random state that steps advance, occurrence. Equal for equal programs, in both modes.
  virtual std::int64_t random_key(Name op, const Tensor& rng) = 0;
  // Gradients of `target` times `seed` (a float scalar or target's shape) with respect to `wrt`,
  // of its type, zero where target does not depend on it. While tracing this records a `gradients`
  // node, which the pass `differentiate` expands. The gradients can be differentiated again.
  // UserError E0321 where the history of `target`, or of one of `wrt`, is not recorded (eager).
  virtual std::vector<Tensor> gradients(const Tensor& target, const Tensor& seed,
                                        std::span<const Tensor> wrt, const Where& where) = 0;
  // The same with respect to variables, for an update of them: each gradient is the sum over all
  // values that the variable had while `target` was computed. In eager mode this is the last use of
  // what `target` was computed from: it is forgotten, but for what another tensor, held and itself
  // not used so, was computed from. UserError E0321 as above, E0322 where target depends on none.
  virtual std::vector<Tensor> variable_gradients(const Tensor& target, const Tensor& seed,
                                                 std::span<const VariablePtr> variables,
                                                 const Where& where) = 0;
  // When the variable of a gradient, which variable_gradients() gave, was first used on the way to
  // the target: gradients are complete in the reverse of this order. -1 for any other tensor.
  virtual std::int64_t first_use(const Tensor& gradient) const = 0;
  // Has the host look at `value` (i32[]): at once in eager mode, behind every run of a compiled
  // program. `look` may throw.
  virtual void watch(const Tensor& value, std::function<void(std::int32_t)> look) = 0;
  virtual std::vector<double> read(const Tensor& t) const = 0;
  virtual std::vector<std::int64_t> read_integers(const Tensor& t) const = 0;
  virtual void backward(const Tensor& loss) = 0;
};

// Inside: the emitter that calls without any tensor argument go to (constants, random tensors): the
// innermost trace's, or this thread's eager session.
Emitter& current_emitter();
class EmitterScope {
 public:
  explicit EmitterScope(Emitter& emitter);
  ~EmitterScope();
  EmitterScope(const EmitterScope&) = delete;
  EmitterScope& operator=(const EmitterScope&) = delete;

 private:
  Emitter* saved_;
};
// Gives the eager session to current_emitter() without this folder knowing it.
void set_default_emitter(Emitter& (*get)());

// A tensor argument together with the line of the call: the implicit conversion is what records
// the user's source line, also for operators. A function of your own that takes tensors may take
// Tensor as well.
struct Operand {
  // The argument, and the line that passes it:
  Tensor tensor;
  SourceLocation loc;
  // From a tensor, without being asked for: ops are called with tensors.
  Operand(const Tensor& t, SourceLocation l = SourceLocation::current()) : tensor(t), loc(l) {}
};

// Inside: Where for a call at `loc`: the current scope with the user's line filled in.
Where where_of(const SourceLocation& loc);

}  // namespace aloft
