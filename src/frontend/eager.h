// Eager mode: an op has executed when its call returns. Not a second system: a call looks up the
// kernel that a one-op Plan would use (the same prepared kernel, the same tiling, hence the same
// bits as compiled), runs it, and records itself on a tape, which is an ordinary Graph, so that
// gradients are the same `differentiate`.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "graph/graph.h"
#include "passes/casting_emitter.h"
#include "runtime/kernel_cache.h"

namespace aloft {

// A value that exists: its memory and, while the tape that recorded it lives, its place there.
struct EagerCell {
  TensorType type;
  std::shared_ptr<void> memory;
  void* data = nullptr;
  ValueId id;
  std::uint64_t generation = 0;          // of the tape that `id` belongs to; 0: not recorded
  std::map<Name, std::int64_t> lengths;  // actual values of the symbols in `type`
  bool is_borrowed = false;              // its owner will write the memory again: settle()
};

class EagerEmitter : public Emitter {
 public:
  explicit EagerEmitter(KernelCache& kernels);

  std::vector<Tensor> emit(Name op, const Attrs& attrs, std::span<const Tensor> in,
                           const Where& where) override;
  TensorType type_of(const Tensor& t) const override;
  bool is_recording() const override { return recording_ && grad_enabled(); }
  Tensor handle(ValueId v) override;
  Tensor current(const Tensor& t) override;
  Tensor state(const VariablePtr& variable) override;
  void update(const VariablePtr& variable, const Tensor& value) override;
  std::int64_t random_key(Name op) override;
  // Ends the tape: what was recorded before is forgotten, its values stay.
  std::vector<Tensor> gradients(const Tensor& target, const Tensor& seed,
                                std::span<const Tensor> wrt, const Where& where) override;
  std::vector<double> read(const Tensor& t) const override;
  std::vector<std::int64_t> read_integers(const Tensor& t) const override;
  void backward(const Tensor& loss) override;

  // A tensor of host memory, copied. `lengths` where the type has symbols.
  Tensor from_host(const TensorType& type, const void* bytes,
                   const std::map<Name, std::int64_t>& lengths = {});
  // A tensor over memory that its owner will write again, and settles before it does.
  Tensor borrow(const TensorType& type, void* data, std::shared_ptr<void> memory);
  // Gives a borrowed value memory of its own; nothing else changes for who holds it.
  static void settle(const Tensor& t);
  const EagerCell& cell(const Tensor& t) const;
  // The gradient that the last backward() left for a parameter; undefined if none.
  Tensor gradient_of(Name variable) const;
  void forget_gradients() { gradients_.clear(); }
  void clear_tape();
  // Values that the tape holds now.
  std::size_t tape_size() const { return values_.size(); }
  // Gradients are emitted through the outer emitter, which inserts casts.
  void set_outer(CastingEmitter* outer) { outer_ = outer; }

 private:
  std::shared_ptr<EagerCell> new_cell(const TensorType& type,
                                      const std::map<Name, std::int64_t>& lengths);
  std::vector<std::shared_ptr<EagerCell>> execute(Name op, const Attrs& attrs,
                                                  std::span<const Tensor> in,
                                                  const std::vector<TensorType>& out);
  // Another value over the memory of `t`, not recorded yet.
  std::shared_ptr<EagerCell> view_of(const Tensor& t);
  Tensor wrap(const std::shared_ptr<EagerCell>& cell);
  ValueId unrecorded_id();
  // Only where no caller holds the number of a value: numbers change.
  void sweep_if_grown();
  void sweep();
  std::vector<bool> reachable_nodes() const;
  void record(std::uint32_t node, const std::vector<std::shared_ptr<EagerCell>>& cells);

  KernelCache& kernels_;
  CastingEmitter* outer_ = nullptr;
  Graph tape_;
  std::map<ValueId, std::shared_ptr<EagerCell>> values_;
  std::map<Name, std::shared_ptr<EagerCell>> states_;
  std::map<Name, VariablePtr> variables_;
  std::map<std::pair<Name, Name>, int> occurrences_;
  std::map<Name, Tensor> gradients_;
  std::uint64_t generation_ = 1;
  int leaves_ = 0;
  std::size_t tape_bytes_ = 0;  // of the recorded values
  std::size_t sweep_at_bytes_ = 0;
  std::uint32_t sweep_at_nodes_ = 0;
  std::uint32_t unrecorded_ = 0;
  bool recording_ = true;
};

// Makes `backend` the one that eager calls and compiled programs run on.
void use_backend(const Backend& backend);

// This thread's eager session: an EagerEmitter behind a CastingEmitter.
EagerEmitter& eager();
CastingEmitter& eager_session();

// Host memory to tensor: f32, f64 (for checks of gradients), i32, i64. UserError E0313 where the
// number of values is not the shape's.
Tensor from_floats(const std::vector<float>& values, const Shape& shape);
Tensor from_doubles(const std::vector<double>& values, const Shape& shape);
Tensor from_ints(const std::vector<std::int32_t>& values, const Shape& shape);
Tensor from_int64s(const std::vector<std::int64_t>& values, const Shape& shape);
// The gradient that the last backward() left for a parameter.
Tensor grad_of(const VariablePtr& parameter);

}  // namespace aloft
