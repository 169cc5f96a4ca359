#include "frontend/averaged_weights.h"

#include "base/error.h"
#include "frontend/eager_emitter.h"
#include "runtime/buffer.h"
#include "scalar/float_formats.h"

namespace aloft {
namespace {

void write_rounded(Variable& to, const std::vector<float>& values) {
  const auto write = [&]<class T>(const auto& rounded) {
    const HostWrite<T> out = to.buffer->write<T>();
    for (std::size_t i = 0; i < values.size(); ++i) out[i] = rounded(values[i]);
  };
  switch (to.type.dtype) {
    case DType::BF16:
      return write.operator()<scalar::Bf16>([](float x) { return scalar::bf16_of(x); });
    case DType::F16:
      return write.operator()<scalar::F16>([](float x) { return scalar::f16_of(x); });
    default:
      return write.operator()<float>([](float x) { return x; });
  }
}

}  // namespace

AveragedWeights::AveragedWeights(const Optimizer& optimizer) {
  if (!optimizer.spec().average)
    throw UserError("E0830", "the optimizer keeps no means of its weights")
        .saw("OptimizerSpec::average.kind = None")
        .advice(".average = {.kind = AverageKind::Ema}, before the first step");
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    const VariablePtr& p = optimizer.parameters()[i];
    if (optimizer.applied_to(i)->buffer->read_one<std::int64_t>() == 0) continue;
    eager().let_go_of(*p);
    kept_.push_back({p, p->bytes()});
    write_rounded(*p, optimizer.average(i)->to_floats());
  }
}

AveragedWeights::~AveragedWeights() {
  for (const Kept& k : kept_) {
    eager().let_go_of(*k.parameter);
    k.parameter->buffer->write_from(std::as_bytes(std::span(k.value)));
  }
}

}  // namespace aloft
