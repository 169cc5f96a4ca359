// MindSpore's template of a training in mixed precision, line for line: a small convolutional
// network, Momentum, level O2, batches of 32 images of 1 x 32 x 32.
//
//   network = LeNet()
//   loss = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
//   opt = nn.Momentum(network.trainable_params(), learning_rate=0.01, momentum=0.9)
//   model = Model(network, loss, opt, metrics={"accuracy"}, amp_level="O2")
//   model.train(2, train_dataset, callbacks=[LossMonitor(20), TimeMonitor()])
//   print(model.eval(test_dataset))
//
//   example_mindspore_lenet [images.idx labels.idx] [--pynative]
//
// The two files are MNIST's, unpacked. Without them images are made up.
#include <aloft/aloft.h>
#include <aloft/mindspore.h>
#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>
using namespace aloft;

namespace {

// class LeNet(nn.Cell):
//     def __init__(self):
//         self.conv = nn.Conv2d(1, 32, 3)
//         self.relu = nn.ReLU()
//         self.pool = nn.MaxPool2d(2, 2)
//         self.flatten = nn.Flatten()
//         self.dense = nn.Dense(32 * 16 * 16, 10)
//     def construct(self, x):
//         return self.dense(self.flatten(self.pool(self.relu(self.conv(x)))))
struct LeNet : nn::Layer {
  nn::Conv2d conv{*this, "conv", 1, 32, 3, {.padding = 1}};  // pad_mode "same"
  nn::MaxPool2d pool{*this, "pool", 2, {.stride = 2}};
  nn::Linear dense{*this, "dense", 32 * 16 * 16, 10};
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) { return dense(flatten(pool(relu(conv(t))), 1)); });
  }
};

constexpr int kSide = 32;

// Images of another size in the middle of ones of 32 x 32.
ArrayData in_the_middle(const ArrayData& from, int side) {
  ArrayData data;
  data.features = kSide * kSide;
  data.labels = from.labels;
  data.values.assign(from.labels.size() * kSide * kSide, 0);
  const int edge = (kSide - side) / 2;
  for (std::size_t i = 0; i < from.labels.size(); ++i)
    for (int row = 0; row < side; ++row)
      for (int column = 0; column < side; ++column)
        data.values[(i * kSide + row + edge) * kSide + column + edge] =
            from.values[(i * side + row) * side + column];
  return data;
}

// Ten pictures of strokes, and noisy copies of them that are moved by some pixels.
ArrayData made_up(int images) {
  std::mt19937 bits(1);
  constexpr int kClasses = 10, kDrawn = 28;
  std::vector<float> drawn(kClasses * kDrawn * kDrawn, 0);
  for (int c = 0; c < kClasses; ++c)
    for (int stroke = 0; stroke < 6; ++stroke) {
      const bool is_down = bits() % 2 == 0;
      const int row = static_cast<int>(4 + bits() % 20), column = static_cast<int>(4 + bits() % 20);
      for (int i = 0; i < 10; ++i) {
        const int r = std::min(kDrawn - 1, row + (is_down ? i : 0));
        const int k = std::min(kDrawn - 1, column + (is_down ? 0 : i));
        drawn[(c * kDrawn + r) * kDrawn + k] = 1;
      }
    }
  ArrayData data;
  for (int i = 0; i < images; ++i) {
    const int label = static_cast<int>(bits() % kClasses);
    const int down = static_cast<int>(bits() % 3) - 1, right = static_cast<int>(bits() % 3) - 1;
    for (int row = 0; row < kDrawn; ++row)
      for (int column = 0; column < kDrawn; ++column) {
        const int r = row - down, k = column - right;
        const bool inside = r >= 0 && r < kDrawn && k >= 0 && k < kDrawn;
        const float ink = inside ? drawn[(label * kDrawn + r) * kDrawn + k] : 0;
        data.values.push_back(ink + 0.25f * (static_cast<float>(bits() >> 8) * 0x1p-24f - 0.5f));
      }
    data.labels.push_back(label);
  }
  return in_the_middle(data, kDrawn);
}

int run(const std::vector<std::string>& files, ms::Mode mode) {
  ms::set_context({.mode = mode, .device_target = "CPU"});
  manual_seed(1);
  const ArrayData images = files.size() == 2
                               ? in_the_middle(read_idx(files[0], files[1], 1.0f / 255), 28)
                               : made_up(3000);
  const ArraySplit split = split_arrays(images, images.samples() / 6, 1);
  Loader train_dataset(split.train, {.batch = 32, .seed = 1, .last = LastBatch::Drop},
                       {1, kSide, kSide});
  Loader test_dataset(split.held_out, {.batch = 32, .shuffle = false}, {1, kSide, kSide});

  LeNet network;
  const ms::SoftmaxCrossEntropyWithLogits loss{.sparse = true, .reduction = "mean"};
  const optim::Momentum opt{.lr = 0.01, .momentum = 0.9};
  ms::Model model(network, loss, opt, {.metrics = {"accuracy"}, .amp_level = "O2"});
  model.train(2, train_dataset, {ms::LossMonitor(20), ms::TimeMonitor()});
  const double accuracy = model.eval(test_dataset).at("accuracy");
  fmt::print("accuracy {:.2f} %\n", 100 * accuracy);
  return accuracy > 0.9 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> files;
  ms::Mode mode = ms::GRAPH_MODE;
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--pynative")
      mode = ms::PYNATIVE_MODE;
    else
      files.emplace_back(argv[i]);
  }
  try {
    return run(files, mode);
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
