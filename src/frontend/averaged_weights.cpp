#include "frontend/averaged_weights.h"

#include <string>

#include "base/error.h"
#include "frontend/eager_emitter.h"
#include "frontend/module.h"
#include "frontend/variable_values.h"
#include "runtime/buffer.h"

namespace aloft {
AveragedWeights::AveragedWeights(const Optimizer& optimizer) {
  if (!optimizer.spec().average)
    throw UserError("E0830", "the optimizer keeps no means of its weights")
        .saw("OptimizerSpec::average.kind = None")
        .advice(".average = {.kind = AverageKind::Ema}, before the first step");
  need_own_values(optimizer.parameters(), "means are put in the weights' place once more");
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const VariablePtr& p = optimizer.parameters()[i];
    if (optimizer.applied_to(i)->buffer->read_one<std::int64_t>() == 0) continue;
    eager().let_go_of(*p);
    parameters_.push_back({p, p->bytes()});
    p->is_lent = true;
    write_floats(*p->buffer, p->type.dtype, optimizer.average(i)->to_floats());
  }
}

AveragedWeights::AveragedWeights(const Optimizer& optimizer, const nn::Module& model)
    : AveragedWeights(optimizer) {
  for (const VariablePtr& v : model.buffers()) buffers_.push_back({v, v->bytes()});
}

AveragedWeights::~AveragedWeights() {
  for (const auto& all : {&parameters_, &buffers_})
    for (const Kept& k : *all) {
      eager().let_go_of(*k.variable);
      k.variable->buffer->write_from(std::as_bytes(std::span(k.value)));
      k.variable->is_lent = false;
    }
}

void need_own_values(const std::vector<VariablePtr>& variables, const char* refused) {
  for (const VariablePtr& v : variables) need_own_value(*v, refused);
}

void need_own_value(const Variable& v, const char* refused) {
  if (!v.is_lent) return;
  throw UserError("E0836", std::string(refused) + " while the weights hold their means")
      .saw("'" + v.name.str() + "', whose mean is in its place (AveragedWeights)")
      .need("the weights themselves, which the training goes on from")
      .advice("end the block of AveragedWeights first: behind it the weights are what they were");
}

}  // namespace aloft
