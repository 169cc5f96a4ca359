// What an outside project does first: a model, a compiled low-precision step, a caught error.
#include <aloft/aloft.h>

#include <cstdio>
#include <vector>

using namespace aloft;

struct Xor : nn::Module {
  nn::Linear up{*this, "up", 2, 16}, down{*this, "down", 16, 2};
  Tensor operator()(Tensor x) { return down(gelu(up(x))); }  // x: [B, 2] -> [B, 2]
};

// The functions of the ops are all there, with numbers where tensors may stand.
bool has_ops() {
  const Tensor x = from_floats({3, -1, 2, 0}, {2, 2});
  const Tensor positive = where(greater(x, 0.0), x, maximum(x, 0.0));
  return mse_loss(x, positive).item() == 0.25 && argmax(x, 1).to_ints()[1] == 0 &&
         concat({x, x}, 0).shape() == Shape{4, 2} && clamp(x, 0, 1).to_floats()[0] == 1 &&
         slice(x, 0, 1, 2).to_floats()[0] == 2 && sort(x, 1)[0].to_floats()[0] == -1;
}

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
  return loss < 0.1 && has_ops() ? 0 : 1;
}
