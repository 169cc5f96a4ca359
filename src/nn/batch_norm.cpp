#include "nn/batch_norm.h"

#include "nn/update_bn.h"
#include "ops/batch_norm.h"
#include "ops/constant.h"

namespace aloft::nn {

BatchNorm2d::BatchNorm2d(Module& parent, std::string_view name, std::int64_t channels,
                         const BatchNorm2dOptions& options)
    : Layer(parent, name), options_(options) {
  need_positive(channels, label("channels"));
  weight = new_parameter("weight", {channels}, Init::ones(), true);
  bias = new_parameter("bias", {channels}, Init::zeros(), true);
  running_mean = add_buffer("running_mean", {channels}, 0);
  running_var = add_buffer("running_var", {channels}, 1);
}

Tensor BatchNorm2d::operator()(Operand x) const {
  return call(x, [&](const Tensor& t) {
    if (StatisticsPass* pass = is_training() ? StatisticsPass::of(running_mean) : nullptr) {
      const Tensor none = full(running_mean->type.shape, 0);  // a momentum of 1 leaves none of it
      const BatchNormResult r =
          batch_norm(t, use(weight), use(bias), none, none, {true, 1, options_.eps});
      pass->add(running_mean, r.running_mean);
      pass->add(running_var, r.running_var);
      return r.y;
    }
    const BatchNormAttrs attrs{is_training(), options_.momentum, options_.eps};
    const BatchNormResult r =
        batch_norm(t, use(weight), use(bias), use(running_mean), use(running_var), attrs);
    if (is_training()) {
      current_emitter().update(running_mean, r.running_mean);
      current_emitter().update(running_var, r.running_var);
    }
    return r.y;
  });
}

}  // namespace aloft::nn
