#include "graph/tensor.h"

#include <utility>

#include "base/error.h"
#include "base/library_files.h"
#include "graph/refuse.h"

namespace aloft {
namespace {
thread_local Emitter* current = nullptr;
Emitter& (*default_emitter)() = nullptr;
}  // namespace

Emitter& emitter_of(const Tensor& t) {
  if (!t.is_defined())
    throw UserError("E0302", "an empty tensor handle was used")
        .need("a tensor made by an op, by an input or from host memory")
        .advice(
            "assign it first; grad_of() gives an empty one where no backward() left a gradient");
  return *t.emitter();
}

Dim Tensor::dim(int i) const {
  const Shape of = shape();
  try {
    return of[i];
  } catch (UserError& e) {
    refuse(std::move(e), *this);
  }
}

TensorType Tensor::type() const { return emitter_of(*this).type_of(*this); }

std::vector<double> Tensor::to_vector() const { return emitter_of(*this).read(*this); }

std::vector<float> Tensor::to_floats() const {
  const std::vector<double> v = to_vector();
  return {v.begin(), v.end()};
}

std::vector<std::int64_t> Tensor::to_ints() const { return emitter_of(*this).read_integers(*this); }

double Tensor::item() const {
  const std::vector<double> v = to_vector();
  if (v.size() != 1)
    throw UserError("E0303", "item() needs a tensor with exactly one element").saw(type().str());
  return v[0];
}

void Tensor::backward() const {
  const TensorType t = type();
  if (t.shape.max_numel() != 1 || !is_float(t.dtype))
    throw UserError("E0803", "backward() needs one floating-point number to start from")
        .saw(t.str())
        .advice("take mean(loss) or sum(loss) first");
  emitter_of(*this).backward(*this);
}

Emitter& current_emitter() {
  if (current) return *current;
  if (default_emitter) return default_emitter();
  throw InternalError("no emitter is current and no eager session is registered");
}
void set_default_emitter(Emitter& (*get)()) { default_emitter = get; }
EmitterScope::EmitterScope(Emitter& emitter) : saved_(current) { current = &emitter; }
EmitterScope::~EmitterScope() { current = saved_; }

Where where_of(const SourceLocation& loc) {
  Where w = current_where();
  if (w.pass) return w;
  if (!location_is_pinned() || !is_of_library(loc.file_name())) {
    w.file = loc.file_name();
    w.line = static_cast<int>(loc.line());
  }
  return w;
}

}  // namespace aloft
