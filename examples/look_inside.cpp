// One training step on a software accelerator, looked at from three sides: where a moment lies (in
// the host's memory), what an instruction takes by the device's clock (an observer), and what is
// inside (taps). The weights behind it have the bits of the same step on the cpu.
#include <aloft/aloft.h>
#include <fmt/format.h>

#include <algorithm>

#include "points.h"
using namespace aloft;

struct Mlp : nn::Module {
  nn::Linear up{*this, "up", 784, 512}, down{*this, "down", 512, 10};
  Tensor operator()(Tensor x) { return down(gelu(up(x))); }
};

// Lists the instructions of programs, each with when it began and ended on the device's clock.
class Timeline : public Observer {
 public:
  void after(const OpEvent& e) override {
    rows_.push_back({std::string(e.identity), e.stream, e.begin, e.end});
  }
  void print(std::size_t most) {
    for (std::size_t i = 0; i < std::min(most, rows_.size()); ++i)
      fmt::print("{:>9.1f} us {:>8.1f} us  stream {}  {}\n", 1e6 * rows_[i].begin.seconds(),
                 1e6 * rows_[i].end.seconds(), rows_[i].stream, rows_[i].name);
    fmt::print("{} instructions\n", rows_.size());
  }

 private:
  struct Row {
    std::string name;
    int stream;
    Event begin, end;
  };
  std::vector<Row> rows_;
};

// What three steps leave in the weights of the layer `up`.
std::vector<float> train(Device& device, bool looks) {
  const DeviceScope on(device);
  manual_seed(1);
  Mlp model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, "O2:bf16");
  // Before the first step takes it in.
  for (std::size_t i = 0; looks && i < opt.parameters().size(); ++i)
    opt.moment(1, i)->home = {Space::Host};
  auto step =
      compile([&net = net, &opt = opt](
                  Tensor x, Tensor label) { return minimize(cross_entropy(net(x), label), opt); },
              {.taps = {"op:gelu*", "backward:down"}});
  Loader loader(noisy_prototypes(192), {.batch = 64});
  Timeline timeline;
  for (auto [x, label] : loader) {
    timeline = {};
    const Observing look(device, timeline);
    step(x, label);
  }
  if (looks) {
    timeline.print(12);
    for (const Tap& t : step.taps()) fmt::print("tap {} {}\n", t.name, t.type.str());
    const std::vector<double> hidden = step.tap(step.taps().front().name).to_vector();
    fmt::print("{} values, the largest {:.3f}\n", hidden.size(), *std::ranges::max_element(hidden));
  }
  return model.up.weight->to_floats();
}

int main() {
  const bool is_equal = train(open_device("sim:910B3"), true) == train(open_device("cpu"), false);
  fmt::print("the weights are {} those of the cpu\n", is_equal ? "to the bit" : "NOT");
  return is_equal ? 0 : 1;
}
