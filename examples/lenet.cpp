// A small convolutional network, or a ResNet-18 of 16 channels, on real handwritten digits (8x8;
// scikit-learn's digits as a CSV of 64 pixels and a label a line, which tools/digits.py writes), in
// mixed precision.
//
//   example_lenet digits.csv [--resnet] [--eager] [--precision O2:bf16] [--epochs 12]
//
// Exit status 77 where the file is missing, so that a test is skipped and not failed; what stands
// behind "skipped: " is listed by tools/run_tests.
#include <aloft/aloft.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <string>
using namespace aloft;

namespace {

struct Options {
  std::string file = "digits.csv", precision = "O2:bf16";
  bool resnet = false, eager = false;
  int epochs = 12;
};

Options parse(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--resnet")
      o.resnet = true;
    else if (word == "--eager")
      o.eager = true;
    else if (word == "--precision" && i + 1 < argc)
      o.precision = argv[++i];
    else if (word == "--epochs" && i + 1 < argc)
      o.epochs = std::atoi(argv[++i]);
    else
      o.file = word;
  }
  return o;
}

// Share of the samples whose largest logit is at the label.
template <class Net>
double accuracy(const Net& net, const ArrayData& data) {
  const NoGrad no_grad;
  net.model().eval();
  int right = 0;
  for (auto [x, label] : Loader(data, {.batch = 64, .shuffle = false}, {1, 8, 8})) {
    const std::vector<double> logits = net(x).to_vector(), labels = label.to_vector();
    const std::size_t classes = logits.size() / labels.size();
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(i * classes);
      const auto best = std::max_element(row, row + static_cast<std::ptrdiff_t>(classes)) - row;
      right += best == static_cast<std::ptrdiff_t>(labels[i]);
    }
  }
  net.model().train();
  return right / static_cast<double>(data.samples());
}

template <class Model>
int train(Model& model, const Options& o) {
  const ArraySplit split = split_arrays(read_labelled_csv(o.file, 1.0f / 16), 360, 1);
  auto [net, opt] =
      amp::initialize(model, optim::Momentum{.lr = 0.05, .weight_decay = 1e-4}, o.precision);
  auto eager_step = [&net = net, &opt = opt](Tensor x, Tensor label) {
    return minimize(cross_entropy(net(x), label), opt);
  };
  auto graph_step = compile(eager_step);
  Loader batches(split.train, {.batch = 32, .seed = 1}, {1, 8, 8});
  for (int epoch = 0; epoch < o.epochs; ++epoch) {
    double sum = 0;
    int steps = 0;
    for (auto [x, label] : batches) {
      sum += (o.eager ? eager_step(x, label) : graph_step(x, label)).loss();
      ++steps;
    }
    fmt::print("epoch {:2}  loss {:.4f}\n", epoch + 1, sum / steps);
  }
  const double share = accuracy(net, split.held_out);
  fmt::print("{} {}: {:.2f} % of {} held-out digits are right\n", o.precision,
             o.eager ? "eager" : "graph", 100 * share, split.held_out.samples());
  return share >= 0.97 ? 0 : 1;
}

int run(const Options& o) {
  if (!std::filesystem::exists(o.file)) {
    fmt::print(stderr, "skipped: {} is missing: tools/digits.py writes it\n", o.file);
    return 77;
  }
  manual_seed(1);
  if (o.resnet) {
    models::ResNet model({.channels = 1, .width = 16});
    return train(model, o);
  }
  models::LeNet model({.height = 8, .width = 8});
  return train(model, o);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.exit_code());
  }
}
