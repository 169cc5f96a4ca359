// What a program begins with: a model of one's own, mixed precision, a compiled step.
#include <aloft/aloft.h>

#include <cstdio>

using namespace aloft;

struct Net : nn::Module {
  nn::Linear up{*this, "up", 2, 16}, down{*this, "down", 16, 2};
  Tensor operator()(Tensor x) const { return down(gelu(up(x))); }  // [B, 2] -> [B, 2]
};

int main() {
  Net model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O2:bf16");
  auto step = compile([&net = net, &opt = opt](Tensor x, Tensor label) {
    return minimize(cross_entropy(net(x), label), opt);
  });
  const Tensor x = from_floats({0, 0, 0, 1, 1, 0, 1, 1}, Shape{4, 2});
  const Tensor label = from_ints({0, 1, 1, 0}, Shape{4});
  for (int i = 0; i < 20; ++i) std::printf("%.4f\n", step(x, label).loss());
}
