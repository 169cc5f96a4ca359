// The script of NVIDIA apex's examples/simple/distributed, line by line, for one process: a linear
// model, the same batch over and over, op by op.
//
//   model, optimizer = amp.initialize(model, optimizer, opt_level="O1")
//   ...
//       with amp.scale_loss(loss, optimizer) as scaled_loss:
//           scaled_loss.backward()
//       optimizer.step()
#include <aloft/aloft.h>
#include <fmt/format.h>

#include <random>

using namespace aloft;

constexpr std::int64_t N = 64, D_in = 1024, D_out = 16;

struct Model : nn::Module {
  nn::Linear linear{*this, "linear", D_in, D_out};
  Tensor operator()(Operand x) const { return linear(x); }
};

Tensor randn(std::int64_t rows, std::int64_t columns) {
  static std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<std::size_t>(rows * columns));
  for (float& v : values) v = normal(bits);
  return from_floats(values, {rows, columns});
}

int main() {
  manual_seed(1);
  const Tensor x = randn(N, D_in);
  const Tensor y = randn(N, D_out);

  Model linear;
  auto [model, optimizer] = amp::initialize(linear, optim::Sgd{.lr = 1e-3}, {.opt_level = "O1"});

  double first = 0, last = 0;
  int skipped = 0;
  for (int t = 0; t < 500; ++t) {
    optimizer.zero_grad();
    const Tensor y_pred = model(x);
    const Tensor loss = mse_loss(y_pred, y);
    {
      auto scaled_loss = amp::scale_loss(loss, optimizer);
      scaled_loss.backward();
    }
    skipped += amp::step(optimizer).skipped();
    last = loss.item();
    if (t == 0) first = last;
  }
  fmt::print("first loss = {:.4f}, final loss = {:.4f}, {} steps skipped\n", first, last, skipped);
  return last < 0.9 * first && skipped == 0 ? 0 : 1;
}
