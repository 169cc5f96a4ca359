// What an outside project does first: a model, a compiled low-precision step, a caught error.
#include <aloft/aloft.h>

#include <cstdio>
#include <vector>

using namespace aloft;

struct Xor : nn::Module {
  nn::Linear up{*this, "up", 2, 16}, down{*this, "down", 16, 2};
  Tensor operator()(Tensor x) { return down(gelu(up(x))); }  // x: [B, 2] -> [B, 2]
};

int main() {
  manual_seed(1);
  Xor model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-2}, "O2:bf16");
  auto step = compile([&net = net, &opt = opt](Tensor x, Tensor label) {
    return minimize(cross_entropy(net(x), label), opt);
  });
  const Tensor x = from_floats({0, 0, 0, 1, 1, 0, 1, 1}, Shape{4, 2});
  const Tensor label = from_ints({0, 1, 1, 0}, Shape{4});
  double loss = 0;
  for (int i = 0; i < 200; ++i) loss = step(x, label).loss();
  std::printf("loss %.4f\n", loss);

  try {
    matmul(x, x);
    return 1;
  } catch (const UserError& error) {
    std::puts(error.what());
  }
  return loss < 0.1 ? 0 : 1;
}
