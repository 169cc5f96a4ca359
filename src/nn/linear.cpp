#include "nn/linear.h"

#include "ops/linear.h"

namespace aloft::nn {

Linear::Linear(Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
               const LinearOptions& options)
    : Layer(parent, name) {
  need_positive(in, label("in"));
  need_positive(out, label("out"));
  const Init standard = Init::kaiming_uniform(in);
  weight = new_parameter("weight", {out, in}, options.weight_init.value_or(standard));
  if (options.bias) bias = new_parameter("bias", {out}, options.bias_init.value_or(standard));
}

Tensor Linear::operator()(Operand x) const {
  return call(x, [&](const Tensor& t) { return linear(t, use(weight), use_if(bias)); });
}

}  // namespace aloft::nn
