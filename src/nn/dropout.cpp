#include "nn/dropout.h"

#include "base/error.h"
#include "base/text.h"
#include "frontend/random.h"
#include "ops/dropout.h"

namespace aloft::nn {

Dropout::Dropout(Module& parent, std::string_view name, double p) : Layer(parent, name), p_(p) {
  if (!(p >= 0 && p < 1))
    throw UserError("E0210", label("p is out of range"))
        .saw(shortest(p))
        .need("0 or more and below 1");
}

Tensor Dropout::operator()(Operand x) const {
  return call(x, [&](const Tensor& t) {
    return is_training() && p_ > 0 ? dropout(t, use(random_state()), p_) : t;
  });
}

}  // namespace aloft::nn
