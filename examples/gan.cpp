// Two models that play against each other, each with an optimizer and a loss of its own, in one
// compiled step: a generator learns to draw points of a cloud, by what a critic tells of them.
#include <aloft/aloft.h>
#include <fmt/format.h>

#include <cmath>
#include <random>

using namespace aloft;

constexpr std::int64_t kBatch = 64, kNoise = 4;

struct Generator : nn::Layer {
  using Layer::Layer;
  nn::Linear up{*this, "up", kNoise, 32}, out{*this, "out", 32, 2};
  Tensor operator()(Operand noise) const {  // [B, kNoise] -> points [B, 2]
    return call(noise, [&](const Tensor& t) { return out(relu(up(t))); });
  }
};

struct Critic : nn::Layer {
  using Layer::Layer;
  nn::Linear up{*this, "up", 2, 32}, mid{*this, "mid", 32, 32}, out{*this, "out", 32, 1};
  Tensor operator()(Operand points) const {  // [B, 2] -> how real they look, [B, 1]
    return call(points, [&](const Tensor& t) { return out(relu(mid(relu(up(t))))); });
  }
};

// Both below one module: a checkpoint of the training is one of it, with both optimizers.
struct Game : nn::Module {
  Generator generator{*this, "generator"};
  Critic critic{*this, "critic"};
};

struct Round {
  StepResult critic, generator;
  static constexpr auto parts() {
    return std::tuple{part("critic", &Round::critic), part("generator", &Round::generator)};
  }
};

class Numbers {
 public:
  Tensor noise() {
    std::vector<float> values(kBatch * kNoise);
    for (float& v : values) v = normal_(bits_);
    return from_floats(values, {kBatch, kNoise});
  }
  Tensor cloud() {  // around (2, -1), half as wide as noise
    std::vector<float> values;
    for (std::int64_t i = 0; i < kBatch; ++i)
      values.insert(values.end(), {2 + 0.5f * normal_(bits_), -1 + 0.5f * normal_(bits_)});
    return from_floats(values, {kBatch, 2});
  }

 private:
  std::mt19937 bits_{1};
  std::normal_distribution<float> normal_;
};

// How far the mean of points lies from that of the cloud, and how wide they are.
std::pair<double, double> judge(const Tensor& points) {
  const Tensor middle = mean(points, {0}, true);
  const std::vector<float> m = middle.to_floats();
  return {std::hypot(m[0] - 2, m[1] + 1), std::sqrt(mean(square(points - middle)).item())};
}

int main() {
  manual_seed(1);
  Game game;
  auto [draw, of_generator] =
      amp::initialize(game.generator, optim::Adam{.lr = 2e-3, .beta1 = 0.5}, "O0");
  auto [look, of_critic] =
      amp::initialize(game.critic, optim::Adam{.lr = 2e-3, .beta1 = 0.5}, "O0");

  auto round = compile([&, &draw = draw, &look = look, &of_generator = of_generator,
                        &of_critic = of_critic](const Tensor& noise, const Tensor& real) {
    const Tensor fake = draw(noise), ones = full({kBatch, 1}, 1.0), zeros = full({kBatch, 1}, 0.0);
    // The critic's loss passes no gradient on to the generator.
    const Tensor critic_loss =
        bce_with_logits(look(real), ones) + bce_with_logits(look(detach(fake)), zeros);
    const StepResult critic = minimize(critic_loss, of_critic);
    // The generator is judged by the critic as it is now, which it does not train.
    return Round{critic, minimize(bce_with_logits(look(fake), ones), of_generator)};
  });

  Numbers numbers;
  const Tensor test = numbers.noise();
  for (int i = 1; i <= 500; ++i) {
    const Round r = round(numbers.noise(), numbers.cloud());
    if (i % 100 > 0) continue;
    const auto [away, width] = judge(draw(test));
    fmt::print("round {:>4}: critic {:.3f}, generator {:.3f}; {:.2f} away, {:.2f} wide\n", i,
               r.critic.loss(), r.generator.loss(), away, width);
  }
  const auto [away, width] = judge(draw(test));
  return away < 0.4 && width > 0.25 && width < 1 ? 0 : 1;
}
