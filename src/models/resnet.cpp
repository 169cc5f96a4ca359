#include "models/resnet.h"

#include <string>

#include "ops/activation.h"
#include "ops/binary.h"
#include "ops/reduce.h"

namespace aloft::models {
namespace {

nn::Conv2dOptions convolution(std::int64_t stride, std::int64_t padding) {
  nn::Conv2dOptions o;
  o.stride = stride, o.padding = padding, o.bias = false;
  return o;
}

}  // namespace

ResNetBlock::ResNetBlock(nn::Module& parent, std::string_view name, std::int64_t in,
                         std::int64_t out, std::int64_t stride)
    : Layer(parent, name),
      conv1(*this, "conv1", in, out, 3, convolution(stride, 1)),
      bn1(*this, "bn1", out),
      conv2(*this, "conv2", out, out, 3, convolution(1, 1)),
      bn2(*this, "bn2", out) {
  if (stride == 1 && in == out) return;
  downsample = std::make_unique<nn::Sequential>(*this, "downsample");
  downsample->add<nn::Conv2d>(in, out, 1, convolution(stride, 0)).add<nn::BatchNorm2d>(out);
}

Tensor ResNetBlock::operator()(Operand x) const {
  return call(x, [&](const Tensor& t) {
    const Tensor inner = bn2(conv2(relu(bn1(conv1(t)))));
    return relu(inner + (downsample ? (*downsample)(t) : t));
  });
}

ResNet::ResNet(const ResNetConfig& c)
    : classes_(c.classes),
      conv1(*this, "conv1", c.channels, c.width, 3, convolution(1, 1)),
      bn1(*this, "bn1", c.width) {
  nn::need_positive(static_cast<std::int64_t>(c.blocks.size()), "ResNet: stages");
  std::int64_t in = c.width, out = c.width;
  for (std::size_t i = 0; i < c.blocks.size(); ++i, out *= 2) {
    nn::need_depth(c.blocks[i], "ResNet: blocks of a stage");
    stages.push_back(std::make_unique<nn::Sequential>(*this, "layer" + std::to_string(i + 1)));
    for (std::int64_t b = 0; b < c.blocks[i]; ++b) {
      stages[i]->add<ResNetBlock>(in, out, i > 0 && b == 0 ? 2 : 1);
      in = out;
    }
  }
  fc = std::make_unique<nn::Linear>(*this, "fc", in, c.classes);
}

Tensor ResNet::operator()(Operand x) const {
  return call(x, [&](Tensor t) {
    t = relu(bn1(conv1(t)));
    for (const auto& stage : stages) t = (*stage)(t);
    return (*fc)(mean(t, {2, 3}));
  });
}

ModelFamily resnet_family() {
  using I = std::int64_t;
  ModelFamily f = family_of<ResNetConfig, ResNet>(
      "resnet", "classifier: residual blocks, batch norms; for small images",
      {{"channels", I{0}}, {"classes", I{0}}});
  const auto size = [](std::string_view name, const std::vector<I>& blocks) {
    return ModelSize{{name}, {{"width", I{64}}, {"blocks", blocks}}};
  };
  f.sizes = {size("resnet18", {2, 2, 2, 2}), size("resnet34", {3, 4, 6, 3})};
  f.misfit = [](const SettingValues& v) -> std::optional<Misfit> {
    const auto stages = std::get<std::vector<I>>(v.find("blocks")->second).size();
    if (stages >= 1 && stages <= 16) return std::nullopt;
    return Misfit{"blocks", "{blocks}; need 1 to 16 stages"};
  };
  f.made_up = {{"channels", I{3}}, {"height", I{32}}, {"width", I{32}}, {"classes", I{10}}};
  return f;
}

}  // namespace aloft::models
