// Autocast and custom autograd functions, as PyTorch's page of amp examples has them: a product
// with a backward pass of its own in the types of the region that it is called in (custom_fwd
// without a type, custom_bwd), and a function that needs f32 wherever it is called (custom_fwd with
// one).
#include <aloft/aloft.h>
#include <fmt/format.h>

#include "points.h"
using namespace aloft;

namespace {

// The types that the functions below were computed in, the backward ones last.
std::vector<DType> types_of_mm, types_of_func;

// A saved tensor is an argument of the backward function.
const auto mymm = custom_gradient(
    [](const Tensor& a, const Tensor& b) {
      const Tensor product = matmul(a, b);
      types_of_mm = {product.dtype()};
      return product;
    },
    [](const Tensor& grad, const Tensor& a, const Tensor& b) {
      const Tensor of_a = matmul(grad, transpose(b, {1, 0}));
      const Tensor of_b = matmul(transpose(a, {1, 0}), grad);
      types_of_mm.push_back(of_a.dtype());
      return std::pair{of_a, of_b};
    });

// exp(x) - 1 for x below 0, else x: an ELU, whose gradient is written by hand.
const auto func = amp::custom_fwd(custom_gradient(
                                      [](const Tensor& input) {
                                        types_of_func = {input.dtype()};
                                        return where(less(input, 0), exp(input) - 1, input);
                                      },
                                      [](const Tensor& grad, const Tensor& input) {
                                        const Tensor of_input =
                                            grad * where(less(input, 0), exp(input), input * 0 + 1);
                                        types_of_func.push_back(of_input.dtype());
                                        return of_input;
                                      }),
                                  DType::F32);

struct Net : nn::Module {
  nn::Linear up{*this, "up", 784, 64}, down{*this, "down", 64, 10};
  Tensor operator()(const Tensor& x) const {
    return down(func(mymm(x, transpose(use(up.weight), {1, 0})) + use(up.bias)));
  }
};

}  // namespace

int main() {
  manual_seed(1);
  Loader data(noisy_prototypes(2000), {.batch = 64});
  Net model;
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  amp::GradScaler scaler;
  double last = 0;
  for (auto [input, target] : data) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast scope({.dtype = DType::F16});
      loss = cross_entropy(model(input), target);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    last = loss.item();
  }
  fmt::print("loss {:.4f}\n", last);
  const std::vector low(2, DType::F16), wide(2, DType::F32);
  return last < 0.5 && types_of_mm == low && types_of_func == wide ? 0 : 1;
}
