// Residual convolutional networks (He et al. 2015) of basic blocks, in the variant for small
// images: a 3x3 stem of stride 1 and no pooling before the first stage. ResNet-18 is {2, 2, 2, 2}
// blocks of 64, 128, 256 and 512 channels. Parameters and buffers have torchvision's names and
// shapes (conv1.weight, layer2.0.downsample.1.running_mean, fc.bias), without num_batches_tracked.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "models/family.h"
#include "nn/batch_norm.h"
#include "nn/conv2d.h"
#include "nn/linear.h"
#include "nn/sequential.h"

namespace aloft::models {

// The sizes of a ResNet; the defaults are ResNet-18.
struct ResNetConfig {
  std::int64_t channels = 3;  // of the images, which are square or not, of any extent
  std::int64_t classes = 10;  // logits of an image
  std::int64_t width = 64;    // channels of the first stage; each later one has twice as many
  std::vector<std::int64_t> blocks = {2, 2, 2, 2};  // a stage; all but the first halve the extents
  friend bool operator==(const ResNetConfig&, const ResNetConfig&) = default;

  // Its settings: keys of a recipe.
  template <class C = ResNetConfig>
  static auto fields() {
    return FieldList{setting("width", &C::width, {1, 65536},
                             "channels of the first stage; each later one: twice"),
                     setting("blocks", &C::blocks, {1, 1000}, "residual blocks, of each stage"),
                     setting("channels", &C::channels, {1, 4096}, "of the images; 0: the data's",
                             {.is_of_data = true}),
                     setting("classes", &C::classes, {1, 1 << 24},
                             "logits of an image; 0: the data's", {.is_of_data = true})};
  }
};

// x + norm(conv(relu(norm(conv(x))))), then relu; where channels or extents change, x goes through
// a 1x1 convolution and a norm (downsample.0 and .1).
class ResNetBlock : public nn::Layer {
 public:
  // `in`, `out`: channels. UserError E0210 unless they are positive.
  ResNetBlock(nn::Module& parent, std::string_view name, std::int64_t in, std::int64_t out,
              std::int64_t stride);
  Tensor operator()(Operand x) const;  // [B, in, H, W] -> [B, out, ceil(H / stride), ...]

  // Its layers, in the order of execution, named as torchvision names them:
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  std::unique_ptr<nn::Sequential> downsample;  // null where x fits as it is
};

// conv1, bn1, relu, the stages, the mean over the image, fc.
class ResNet : public Classifier {
 public:
  // UserError E0210: a size that is not positive, or no stage at all.
  explicit ResNet(const ResNetConfig& config = {});

  std::int64_t classes() const override { return classes_; }
  Tensor operator()(Operand x) const override;  // [B, channels, H, W] -> [B, classes]

 private:
  std::int64_t classes_;

 public:
  // Its layers, in the order of execution, named as torchvision names them:
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<std::unique_ptr<nn::Sequential>> stages;  // layer1, layer2 ...
  std::unique_ptr<nn::Linear> fc;
};

}  // namespace aloft::models
