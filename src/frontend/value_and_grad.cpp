#include "frontend/value_and_grad.h"

#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "frontend/hooks.h"
#include "frontend/keep_graph.h"
#include "frontend/loss_scale_uses.h"
#include "ops/constant.h"
#include "ops/identity.h"

namespace aloft {

void grads::Split::tensor(Tensor& t) {
  if (!first.is_defined()) {
    first = t;
    return;
  }
  has_more = true;
  if (is_float(t.dtype())) t = detach(t);
}

void grads::check(const Split& split, const ValueAndGradOptions& options) {
  const bool has_aux = options.has_aux;
  if (split.has_more == has_aux) return;
  throw UserError("E0803", "value_and_grad() is given another result than it is told of")
      .saw(has_aux ? "a loss alone, and has_aux" : "more than a loss, and not has_aux")
      .need(has_aux ? "the loss first, and something behind it" : "a loss, or {.has_aux = true}");
}

std::vector<Tensor> grads::own(const GradPosition& positions,
                               const std::vector<Tensor*>& arguments) {
  std::vector<Tensor> found;
  std::set<int> before;
  for (const int i : positions.at) {
    const auto refuse = [&](const std::string& saw) {
      throw UserError("E0803", "value_and_grad() cannot take gradients of an argument")
          .saw("position " + std::to_string(i) + ": " + saw)
          .need("arguments that are tensors of floating-point numbers, from 0 on, each once");
    };
    if (i < 0 || i >= static_cast<int>(arguments.size()))
      refuse("of " + std::to_string(arguments.size()) + " arguments");
    Tensor* const t = arguments[static_cast<std::size_t>(i)];
    if (!t || !t->is_defined()) refuse("no tensor");
    if (!is_float(t->dtype())) refuse(t->type().str());
    if (!before.insert(i).second) refuse("asked for twice");
    found.push_back(*t = identity(*t));
  }
  return found;
}

namespace {
void need_scalar(const Tensor& loss) {
  if (loss.rank() != 0)
    throw UserError("E0803", "gradients are taken of a scalar loss")
        .saw(loss.type().str())
        .advice("take the mean or the sum first");
}

Where where_of_request() {
  Where where = current_where();
  where.pass = "gradients_of";
  where.phase = Phase::Backward;
  return where;
}
}  // namespace

std::vector<Tensor> grads::of_inputs(const Tensor& loss, const std::vector<Tensor>& inputs) {
  need_scalar(loss);
  hooks::need_outside("value_and_grad()");
  Emitter& e = emitter_of(loss);
  EmitterScope scope(e);
  return e.gradients(loss, full({}, 1.0, DType::F32), inputs, where_of_request());
}

namespace {
thread_local bool keeps_graph = false;
}
KeepGraph::KeepGraph(bool keep) : saved_(std::exchange(keeps_graph, keep)) {}
KeepGraph::~KeepGraph() { keeps_graph = saved_; }
bool KeepGraph::is_asked() { return keeps_graph; }

std::vector<Tensor> gradients_of(const Tensor& loss, const std::vector<VariablePtr>& parameters,
                                 const GradientsOptions& options) {
  need_scalar(loss);
  hooks::need_outside("gradients_of()");
  Emitter& e = emitter_of(loss);
  EmitterScope scope(e);
  const Where where = where_of_request();
  const LossScalesMet asked;
  const KeepGraph keep(options.create_graph);
  std::vector<Tensor> gradients =
      e.variable_gradients(loss, full({}, 1.0, DType::F32), parameters, where);
  note_loss_scales(gradients, asked.met());
  return gradients;
}

}  // namespace aloft
