#include "frontend/ended_trace.h"

namespace aloft {
namespace {

UserError is_of_another_trace() {
  return UserError("E0304", "a tensor is used outside of the program that it belongs to")
      .saw("a tensor that a traced function kept from an earlier trace, or that was made outside")
      .need("tensors of the present call: arguments, variables, and what is computed from them")
      .advice(
          "compute in each call what the function keeps between calls; pass an outside tensor to "
          "the compiled function as an argument");
}

class EndedTrace : public Emitter {
  using Tensors = std::vector<Tensor>;
  using Span = std::span<const Tensor>;

 public:
  Tensors emit(const OpCall&, Span, const Where&) override { refuse(); }
  TensorType type_of(const Tensor&) const override { refuse(); }
  bool is_recording() const override { return false; }
  Tensor handle(ValueId) override { refuse(); }
  ValueNotes& notes(const Tensor&) override { refuse(); }
  Tensor current(const Tensor&) override { refuse(); }
  Tensor state(const VariablePtr&) override { refuse(); }
  void update(const VariablePtr&, const Tensor&) override { refuse(); }
  std::int64_t random_key(Name, const Tensor&) override { refuse(); }
  Tensors gradients(const Tensor&, const Tensor&, Span, const Where&) override { refuse(); }
  Tensors variable_gradients(const Tensor&, const Tensor&, std::span<const VariablePtr>,
                             const Where&) override {
    refuse();
  }
  std::int64_t first_use(const Tensor&) const override { refuse(); }
  void watch(const Tensor&, std::function<void(std::int32_t)>) override { refuse(); }
  std::vector<double> read(const Tensor&) const override { refuse(); }
  std::vector<std::int64_t> read_integers(const Tensor&) const override { refuse(); }
  void backward(const Tensor&) override { refuse(); }

 private:
  [[noreturn]] static void refuse() { throw is_of_another_trace(); }
};

}  // namespace

void refuse_foreign(const Tensor& t) {
  if (!t.is_defined()) static_cast<void>(t.type());  // E0302
  throw is_of_another_trace();
}

Emitter& ended_trace() {
  static EndedTrace refuses;
  return refuses;
}

}  // namespace aloft
