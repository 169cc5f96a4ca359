// Gradient penalty, as PyTorch's page of amp examples has it, at first without mixed precision and
// then with it: the penalty is the norm of the loss's gradients, so that its own gradient is one of
// gradients. torch.autograd.grad(..., create_graph=True) is gradients_of() with create_graph; the
// gradients that it gives are nobody's to unscale_(), and are divided by the scale as any tensor.
#include <aloft/aloft.h>
#include <fmt/format.h>

#include <cmath>

#include "points.h"
using namespace aloft;

namespace {

// The loss and the norm of its gradient behind the last step.
struct End {
  double loss = 0, norm = 0;
};

Tensor norm_of(const std::vector<Tensor>& gradients) {
  Tensor squares = full({}, 0);
  for (const Tensor& gradient : gradients) squares = squares + sum(square(gradient));
  return sqrt(squares);
}

End without_mixed_precision(bool with_penalty) {
  manual_seed(1);
  Loader data(noisy_prototypes(2000), {.batch = 64});
  models::Mlp model({784, 64, 10}, gelu);
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  End end;
  for (auto [input, target] : data) {
    optimizer.zero_grad();
    const Tensor output = model(input);
    const Tensor loss = cross_entropy(output, target);
    const auto gradients = gradients_of(loss, model.parameters(), {.create_graph = true});
    const Tensor norm = norm_of(gradients);
    (with_penalty ? loss + norm : loss).backward();
    // clip_grad_norm_() here, if desired.
    amp::step(optimizer);
    end = {loss.item(), norm.item()};
  }
  return end;
}

End with_mixed_precision() {
  manual_seed(1);
  Loader data(noisy_prototypes(2000), {.batch = 64});
  models::Mlp model({784, 64, 10}, gelu);
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  amp::GradScaler scaler;
  End end;
  for (auto [input, target] : data) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast scope({.dtype = DType::F16});
      const Tensor output = model(input);
      loss = cross_entropy(output, target);
    }
    const auto scaled_gradients =
        gradients_of(scaler.scale(loss), model.parameters(), {.create_graph = true});
    const double inv_scale = 1 / scaler.get_scale();
    std::vector<Tensor> gradients;
    for (const Tensor& gradient : scaled_gradients) gradients.push_back(gradient * inv_scale);
    Tensor with_penalty, norm;
    {
      const amp::autocast scope({.dtype = DType::F16});
      norm = norm_of(gradients);
      with_penalty = loss + norm;
    }
    scaler.scale(with_penalty).backward();
    // May unscale_ here, to clip.
    scaler.step(optimizer);
    scaler.update();
    end = {loss.item(), norm.item()};
  }
  return end;
}

// The same step as one plan: what precision, scale and check are is the optimizer's to know.
End compiled() {
  manual_seed(1);
  Loader data(noisy_prototypes(2000), {.batch = 64});
  models::Mlp model({784, 64, 10}, gelu);
  auto [net, optimizer] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, "O1:fp16");
  auto step = compile([&, &net = net, &optimizer = optimizer](Tensor input, Tensor target) {
    const Tensor loss = cross_entropy(net(input), target);
    const Tensor norm = norm_of(gradients_of(loss, model.parameters(), {.create_graph = true}));
    return std::pair{minimize(loss + norm, optimizer), std::pair{loss, norm}};
  });
  End end;
  for (auto [input, target] : data) {
    const auto [result, parts] = step(input, target);
    end = {parts.first.item(), parts.second.item()};
  }
  return end;
}

}  // namespace

int main() {
  const End plain = without_mixed_precision(false);
  fmt::print("without a penalty:    loss {:.4f}, norm {:.4f}\n", plain.loss, plain.norm);
  const struct {
    const char* name;
    End end;
  } penalised[] = {{"with it, fp32:", without_mixed_precision(true)},
                   {"with it, fp16:", with_mixed_precision()},
                   {"with it, compiled:", compiled()}};
  bool is_learnt = plain.loss < 1;
  for (const auto& [name, end] : penalised) {
    fmt::print("{:21} loss {:.4f}, norm {:.4f}\n", name, end.loss, end.norm);
    // The penalty slows the first steps down; half precision goes the same way, but for the steps
    // that a scale which is still too large skips.
    is_learnt = is_learnt && end.loss < 1.8 && std::abs(end.loss - penalised[0].end.loss) < 0.1;
  }
  return is_learnt ? 0 : 1;
}
