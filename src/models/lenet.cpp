#include "models/lenet.h"

#include "ops/activation.h"
#include "ops/extents.h"
#include "ops/reshape.h"

namespace aloft::models {
namespace {
LeNetConfig checked(const LeNetConfig& c) {
  nn::need_positive(c.height / 4, "LeNet: height / 4");
  nn::need_positive(c.width / 4, "LeNet: width / 4");
  return c;
}
}  // namespace

LeNet::LeNet(const LeNetConfig& c)
    : config_(checked(c)),
      conv1(*this, "conv1", c.channels, c.filters, 3, {.padding = 1}),
      conv2(*this, "conv2", c.filters, 2 * c.filters, 3, {.padding = 1}),
      pool(*this, "pool", 2),
      fc1(*this, "fc1", extent_product(2 * c.filters, extent_product(c.height / 4, c.width / 4)),
          c.hidden),
      fc2(*this, "fc2", c.hidden, c.classes) {}

Tensor LeNet::operator()(Operand x) const {
  return call(x, [&](const Tensor& t) {
    const Tensor a = pool(relu(conv1(t)));
    const Tensor b = pool(relu(conv2(a)));
    return fc2(relu(fc1(flatten(b, 1))));
  });
}

ModelFamily lenet_family() {
  using I = std::int64_t;
  ModelFamily f = family_of<LeNetConfig, LeNet>(
      "lenet", "classifier: two convolutions, two dense layers",
      {{"channels", I{0}}, {"height", I{0}}, {"width", I{0}}, {"classes", I{0}}});
  f.made_up = {{"channels", I{1}}, {"height", I{32}}, {"width", I{32}}, {"classes", I{10}}};
  return f;
}

}  // namespace aloft::models
