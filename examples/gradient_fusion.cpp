// A loop as the fork of apex for Ascend has it, with combine_grad and its GradientFusion: one
// check, one norm and one update of all gradients together. A small network finds the sign of a
// sum.
//
//   model, optimizer = amp.initialize(model, optimizer, opt_level="O2", combine_grad=True)
//   fusion = GradientFusion(fusion_size=32 * 1024 * 1024)
#include <aloft/aloft.h>
#include <fmt/format.h>

#include <random>

using namespace aloft;

struct Model : nn::Module {
  nn::Linear first{*this, "first", 16, 64};
  nn::Linear second{*this, "second", 64, 2};
  Tensor operator()(Operand x) const { return second(relu(first(x))); }
};

int main() {
  manual_seed(1);
  constexpr std::int64_t kExamples = 128;
  std::mt19937 bits(1);
  std::normal_distribution<float> normal;
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  for (int i = 0; i < kExamples; ++i) {
    float sum = 0;
    for (int j = 0; j < 16; ++j) sum += values.emplace_back(normal(bits));
    labels.push_back(sum > 0);
  }
  const Tensor x = from_floats(values, {kExamples, 16}), label = from_ints(labels, {kExamples});

  Model model;
  auto [net, optimizer] =
      amp::initialize(model, optim::Adam{.lr = 1e-2}, {.opt_level = "O2", .combine_grad = true});
  const amp::GradientFusion fusion(32 << 20);
  double first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(net(x), label);
    amp::scale_loss(loss, optimizer).backward();
    const amp::FusedGradients all = fusion.of(optimizer);
    amp::step(optimizer);
    last = loss.item();
    if (step == 0) first = last;
    if (step % 20 == 0)
      fmt::print("step {}: loss {:.3f}, norm of {} gradients {:.3f}, {}\n", step, last,
                 all.elements, all.norm.item(), all.finite.item() != 0 ? "finite" : "skipped");
  }
  return last < 0.5 * first ? 0 : 1;
}
