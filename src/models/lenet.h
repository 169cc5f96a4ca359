// A small convolutional network in the manner of LeNet (LeCun et al. 1998) and of the tutorials:
// two times (3x3 convolution, relu, 2x2 max pooling), then two dense layers.
#pragma once

#include "models/family.h"
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
  friend bool operator==(const LeNetConfig&, const LeNetConfig&) = default;

  // Its settings: keys of a recipe.
  template <class C = LeNetConfig>
  static auto fields() {
    const SettingRole of_data{.is_of_data = true};
    return FieldList{
        setting("filters", &C::filters, {1, 4096}, "of the first convolution; the second: twice"),
        setting("hidden", &C::hidden, {1, 65536}, "features between the dense layers"),
        setting("channels", &C::channels, {1, 4096}, "of the images; 0: the data's", of_data),
        setting("height", &C::height, {4, 65536}, "of the images; 0: the data's", of_data),
        setting("width", &C::width, {4, 65536}, "of the images; 0: the data's", of_data),
        setting("classes", &C::classes, {1, 1 << 24}, "logits of an image; 0: the data's",
                {.is_of_data = true, .may_exceed = true})};
  }
};

// Twice convolution, relu and pooling, then fc2(relu(fc1(...))) of all that is left.
class LeNet : public Classifier {
 public:
  // UserError E0210: extents out of range.
  explicit LeNet(const LeNetConfig& config = {});

  std::int64_t classes() const override { return config_.classes; }
  // [B, channels, height, width] -> [B, classes]
  Tensor operator()(Operand x) const override;

 private:
  LeNetConfig config_;

 public:
  // Its layers, in the order of execution:
  nn::Conv2d conv1, conv2;
  nn::MaxPool2d pool;
  nn::Linear fc1, fc2;
};

}  // namespace aloft::models
