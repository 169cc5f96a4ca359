// A small convolutional network in the manner of LeNet (LeCun et al. 1998) and of the tutorials:
// two times (3x3 convolution, relu, 2x2 max pooling), then two dense layers.
#pragma once

#include "nn/conv2d.h"
#include "nn/linear.h"
#include "nn/pool2d.h"

namespace aloft::models {

// The sizes of a LeNet.
struct LeNetConfig {
  std::int64_t channels = 1, height = 32, width = 32;  // of the images; both extents at least 4
  std::int64_t classes = 10;                           // logits of an image
  std::int64_t filters = 32;  // of the first convolution; the second has twice as many
  std::int64_t hidden = 128;  // features between the dense layers
};

// Twice convolution, relu and pooling, then fc2(relu(fc1(...))) of all that is left.
class LeNet : public nn::Layer {
 public:
  // UserError E0210: extents out of range.
  explicit LeNet(const LeNetConfig& config = {});

  Tensor operator()(Operand x) const;  // [B, channels, height, width] -> [B, classes]

 private:
  LeNetConfig config_;

 public:
  // Its layers, in the order of execution:
  nn::Conv2d conv1, conv2;
  nn::MaxPool2d pool;
  nn::Linear fc1, fc2;
};

}  // namespace aloft::models
