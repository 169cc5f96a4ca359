#include "nn/pool2d.h"

#include "graph/tensor.h"
#include "ops/pool2d.h"

namespace aloft::nn {
namespace {
template <class Attrs>
Attrs attrs_of(std::int64_t kernel, const Pool2dOptions& o) {
  Attrs a;
  a.kernel = {kernel, kernel};
  if (o.stride > 0) a.stride = {o.stride, o.stride};
  a.padding = {o.padding, o.padding};
  return a;
}

// The op looks at the rest, beside the image.
void check_options(std::int64_t kernel, const Pool2dOptions& o, const std::string& what) {
  need_positive(kernel, what + ": kernel");
  if (o.stride != 0) need_positive(o.stride, what + ": stride");
}
}  // namespace

MaxPool2d::MaxPool2d(Module& parent, std::string_view name, std::int64_t kernel,
                     const Pool2dOptions& options)
    : Layer(parent, name), kernel_(kernel), options_(options) {
  check_options(kernel, options, "MaxPool2d '" + path() + "'");
}

Tensor MaxPool2d::operator()(Operand x) const {
  const auto attrs = attrs_of<MaxPool2dAttrs>(kernel_, options_);
  return call(x, [&](const Tensor& t) { return max_pool2d(t, attrs); });
}

AvgPool2d::AvgPool2d(Module& parent, std::string_view name, std::int64_t kernel,
                     const Pool2dOptions& options)
    : Layer(parent, name), kernel_(kernel), options_(options) {
  check_options(kernel, options, "AvgPool2d '" + path() + "'");
}

Tensor AvgPool2d::operator()(Operand x) const {
  const auto attrs = attrs_of<AvgPool2dAttrs>(kernel_, options_);
  return call(x, [&](const Tensor& t) { return avg_pool2d(t, attrs); });
}

}  // namespace aloft::nn
