#include "nn/conv_transpose2d.h"

#include "base/error.h"
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
  if (in % options.groups != 0 || out % options.groups != 0)
    throw UserError("E0211", label("the groups do not divide the channels"))
        .saw(std::to_string(in) + " to " + std::to_string(out) + " channels in " +
             std::to_string(options.groups) + " groups")
        .need("groups that divide both numbers of channels");
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
