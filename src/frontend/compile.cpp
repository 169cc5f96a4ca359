#include "frontend/compile.h"

#include <cstring>

#include "base/error.h"
#include "frontend/eager.h"
#include "ops/evaluate.h"

namespace aloft {

namespace results {

Named flatten(const Tensor& t) { return {{"result", t}}; }

Named flatten(const StepResult& r) {
  return {{"loss", r.loss_tensor},      {"grad_norm", r.grad_norm}, {"lr", r.learning_rate},
          {"loss_scale", r.loss_scale}, {"finite", r.finite},       {"culprit", r.culprit}};
}

Named flatten(const std::vector<Tensor>& list) {
  Named named;
  for (const Tensor& t : list) named.emplace_back("result" + std::to_string(named.size()), t);
  return named;
}

void restore(const std::vector<Tensor>& flat, Tensor& t) { t = flat[0]; }
void restore(const std::vector<Tensor>& flat, StepResult& r) {
  r = {flat[0], flat[1], flat[2], flat[3], flat[4], flat[5]};
}
void restore(const std::vector<Tensor>& flat, std::vector<Tensor>& list) { list = flat; }

}  // namespace results

CompiledCall::CompiledCall(CompileOptions options, Traceable function)
    : options_(std::move(options)), function_(std::move(function)) {}

void CompiledCall::build(const std::vector<Tensor>& arguments) {
  inputs_.clear();
  std::int64_t rows = -1;
  has_batch_ = options_.partial_batches;
  for (const Tensor& t : arguments) {
    const Shape s = bind_lengths(t.shape(), eager().cell(t).lengths);
    if (s.rank() == 0) continue;
    if (rows >= 0 && rows != s[0].max()) has_batch_ = false;
    rows = s[0].max();
  }
  has_batch_ = has_batch_ && rows > 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    TensorType type{arguments[i].dtype(),
                    bind_lengths(arguments[i].shape(), eager().cell(arguments[i]).lengths)};
    if (has_batch_ && type.shape.rank() > 0) type.shape[0] = Dim::symbolic("B", rows);
    inputs_.push_back({"arg" + std::to_string(i), type});
  }
  programs_ = std::make_unique<Programs>(options_.threads, options_.passes);
  programs_->add(options_.name, inputs_, function_);
  programs_->finish();
  program_ = programs_->find(options_.name);
  homes_.clear();
  for (const InputSpec& i : inputs_)
    homes_.push_back(programs_->input<void>(options_.name, i.name));
}

void CompiledCall::check(const std::vector<Tensor>& arguments) const {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Shape s = bind_lengths(arguments[i].shape(), eager().cell(arguments[i]).lengths);
    const Shape& want = inputs_[i].type.shape;
    bool fits = arguments[i].dtype() == inputs_[i].type.dtype && s.rank() == want.rank();
    for (int d = 0; fits && d < s.rank(); ++d)
      fits = want[d].is_constant() ? s[d] == want[d] : s[d].max() <= want[d].max();
    if (!fits)
      throw UserError("E0315",
                      "argument " + std::to_string(i) + " does not fit the compiled program")
          .saw(TensorType{arguments[i].dtype(), s}.str())
          .need(inputs_[i].type.str())
          .advice("compile another function for the other shape");
  }
}

const std::vector<Tensor>& CompiledCall::operator()(const std::vector<Tensor>& arguments) {
  if (!programs_) build(arguments);
  check(arguments);
  std::map<Name, std::int64_t> lengths;
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const EagerCell& c = eager().cell(arguments[i]);
    const TensorType actual = bind_lengths(c.type, c.lengths);
    if (actual.shape.rank() > 0) rows = actual.shape[0].max();
    if (const auto bytes = actual.max_bytes()) std::memcpy(homes_[i], c.data, bytes);
  }
  if (has_batch_) lengths["B"] = rows;
  programs_->run(program_, has_batch_ ? std::span(&rows, 1) : std::span<const std::int64_t>{});
  outputs_.clear();
  const Program& p = *programs_->plan().find(options_.name);
  for (const NamedRef& r : p.outputs) {
    auto* data = const_cast<void*>(programs_->executor().output(options_.name, r.name));
    const Tensor t = eager().over(r.ref.type, data, nullptr, lengths);
    outputs_.push_back(Tensor(&eager_session(), t.id(), t.held()));
  }
  return outputs_;
}

}  // namespace aloft
