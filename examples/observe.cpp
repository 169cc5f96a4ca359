// What the steps of a training loop of one's own hold, written for msprobe and `aloft probe
// compare`: the same three steps eagerly and compiled. A session looks at both without changing a
// bit, so that what it writes of them is the same to the last letter.
#include <aloft/aloft.h>
#include <aloft/observe.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "points.h"
using namespace aloft;

struct Mlp : nn::Module {
  nn::Linear up{*this, "up", 784, 64}, down{*this, "down", 64, 10};
  Tensor operator()(Operand x) const {
    return call(x, [&](const Tensor& t) { return down(gelu(up(t))); });
  }
};

// The dump of the last of three steps.
std::string train(bool is_compiled, const std::string& folder) {
  manual_seed(1);
  Mlp model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, "O2:bf16");
  const auto one = [&net = net, &opt = opt](Tensor x, Tensor label) {
    return minimize(cross_entropy(net(x), label), opt);
  };
  auto compiled = compile(one);
  observe::Session session({.out = folder, .at = {0, 2}});
  session.start();
  Loader loader(noisy_prototypes(192), {.batch = 64});
  for (auto [x, label] : loader) {
    is_compiled ? compiled(x, label) : one(x, label);
    session.step();
  }
  session.stop();
  std::ostringstream text;
  text << std::ifstream(folder + "/step2/rank/dump.json").rdbuf();
  return text.str();
}

int main() {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "aloft_observe";
  const std::string eager = train(false, folder / "eager"), compiled = train(true, folder / "step");
  const bool is_equal = !eager.empty() && eager == compiled;
  fmt::print("{} bytes of numbers, {}\n", eager.size(),
             is_equal ? "the same of both" : "NOT the same of both");
  std::filesystem::remove_all(folder);
  return is_equal ? 0 : 1;
}
