// The whole of Aloft in twenty lines: a model, apex's initialize, one compiled training step.
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

struct Mlp : nn::Module {
  nn::Linear up{*this, "up", 784, 512}, down{*this, "down", 512, 10};
  Tensor operator()(Tensor x) { return down(gelu(up(x))); }  // x: [B, 784] -> [B, 10]
};

int main() {
  manual_seed(1);
  Loader loader(noisy_prototypes(2000), {.batch = 64});
  Mlp model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, "O2:fp16");
  // Traced once, one Plan: scale, gradients, check, clip, update. Take compile away and the same
  // lines run op by op. (The captures are spelt out for clang 14, which cannot take [&] here.)
  auto step = compile([&net = net, &opt = opt](Tensor x, Tensor label) {
    return minimize(cross_entropy(net(x), label), opt);
  });
  double last = 0;
  for (auto [x, label] : loader) {
    last = step(x, label).loss();
    fmt::print("{:.4f}\n", last);
  }
  return last < 0.5 ? 0 : 1;
}
