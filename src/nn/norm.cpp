#include "nn/norm.h"

#include "base/error.h"
#include "frontend/autocast.h"
#include "ops/binary.h"
#include "ops/group_norm.h"
#include "ops/layer_norm.h"
#include "ops/rms_norm.h"

namespace aloft::nn {
namespace {

// In the type that the weight is kept in, f32 up to O2: near 1 a low type has few of the bits of a
// small weight.
Tensor plus_one(const Tensor& weight) {
  const amp::autocast off({.enabled = false});
  return weight + 1.0;
}

}  // namespace

LayerNorm::LayerNorm(Module& parent, std::string_view name, std::int64_t dim,
                     const LayerNormOptions& options)
    : Layer(parent, name), eps_(options.eps) {
  need_positive(dim, label("dim"));
  weight = new_parameter("weight", {dim}, Init::ones(), true);
  if (options.bias) bias = new_parameter("bias", {dim}, Init::zeros(), true);
}

Tensor LayerNorm::operator()(Operand x) const {
  return call(x, [&](const Tensor& t) { return layer_norm(t, use(weight), use_if(bias), eps_); });
}

RMSNorm::RMSNorm(Module& parent, std::string_view name, std::int64_t dim,
                 const RMSNormOptions& options)
    : Layer(parent, name), options_(options) {
  need_positive(dim, label("dim"));
  weight = new_parameter("weight", {dim}, options.plus_one ? Init::zeros() : Init::ones(), true);
}

Tensor RMSNorm::operator()(Operand x) const {
  return call(x, [&](const Tensor& t) {
    const Tensor scale = options_.plus_one ? plus_one(use(weight)) : use(weight);
    return rms_norm(t, scale, options_.eps);
  });
}

GroupNorm::GroupNorm(Module& parent, std::string_view name, std::int64_t groups,
                     std::int64_t channels, const GroupNormOptions& options)
    : Layer(parent, name), groups_(groups), eps_(options.eps) {
  need_positive(groups, label("groups"));
  need_positive(channels, label("channels"));
  if (channels % groups != 0)
    throw UserError("E0211", label("the groups do not divide the channels"))
        .saw(std::to_string(channels) + " channels in " + std::to_string(groups) + " groups")
        .need("groups that divide the channels");
  weight = new_parameter("weight", {channels}, Init::ones(), true);
  bias = new_parameter("bias", {channels}, Init::zeros(), true);
}

Tensor GroupNorm::operator()(Operand x) const {
  return call(
      x, [&](const Tensor& t) { return group_norm(t, groups_, use(weight), use(bias), eps_); });
}

}  // namespace aloft::nn
