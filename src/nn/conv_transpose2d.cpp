#include "nn/conv_transpose2d.h"

#include "nn/channel_groups.h"
#include "ops/conv_transpose2d.h"
#include "ops/extents.h"

namespace aloft::nn {

ConvTranspose2d::ConvTranspose2d(Module& parent, std::string_view name, std::int64_t in,
                                 std::int64_t out, std::int64_t kernel,
                                 const ConvTranspose2dOptions& options)
    : Layer(parent, name), options_(options) {
  need_positive(in, label("in"));
  need_positive(out, label("out"));
  need_positive(kernel, label("kernel"));
  need_positive(options.groups, label("groups"));
  need_groups(in, out, options.groups, label("the groups do not divide the channels"));
  const std::int64_t fan_in = extent_product(out / options.groups, extent_product(kernel, kernel));
  const Init standard = Init::kaiming_uniform(fan_in);
  weight = new_parameter("weight", {in, out / options.groups, kernel, kernel},
                         options.weight_init.value_or(standard));
  if (options.bias) bias = new_parameter("bias", {out}, options.bias_init.value_or(standard));
}

Tensor ConvTranspose2d::operator()(Operand x) const {
  const auto both = [](std::int64_t n) { return Ints{n, n}; };
  return call(x, [&](const Tensor& t) {
    return conv_transpose2d(
        t, use(weight), use_if(bias),
        {both(options_.stride), both(options_.padding), both(options_.output_padding),
         both(options_.dilation), options_.groups});
  });
}

}  // namespace aloft::nn
