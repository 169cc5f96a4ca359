// What an outside project does first: a model, a compiled low-precision step, a caught error.
#include <aloft/aloft.h>
#include <aloft/infer.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>
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

// A compiled function takes and gives structs, and hooks see what passes a layer.
struct Shifted {
  Tensor x;
  std::vector<Tensor> shifts;
  static constexpr auto parts() {
    return std::tuple{part("x", &Shifted::x), part("shifts", &Shifted::shifts)};
  }
};

bool takes_structs_and_hooks() {
  Xor model;
  const Hook halves = model.up.on_output([](const Tensor&, const Tensor& y) { return y * 0.5; });
  const Hook sees = on_gradient(model.down.bias, [](const Tensor&) {});
  auto shifted = compile([&](const Shifted& b, bool twice) {
    Tensor y = model(b.x + b.shifts.at(0));
    return std::pair{twice ? y * 2.0 : y, Shifted{b.x * 1.0, {y}}};
  });
  const Tensor x = from_floats({0, 0, 0, 1}, {2, 2}), one = full({2, 2}, 1.0);
  const Tensor want = model(x + one);
  sum(want).backward();
  const auto [y, again] = shifted(Shifted{x, {one}}, false);
  return y.to_floats() == want.to_floats() && again.shifts[0].to_floats() == want.to_floats() &&
         shifted(Shifted{x, {one}}, true).first.to_floats() == (want * 2.0).to_floats() &&
         halves.runs() > 1 && sees.runs() == 1;
}

// What a run left writes text, in two rows.
bool writes_text(const Path& run) {
  const SavedModel saved = open_saved_model(run);
  Generator generator(*saved.model, 0, 2);
  const auto texts = draw_texts(generator, saved.tokenizer->encode("aa"),
                                {.tokens = 12, .sampling = {.top_k = 1}});
  const std::string said = saved.tokenizer->decode(texts[1].tokens);
  std::printf("aa%s\n", said.c_str());
  return texts[0].tokens.size() == 12 && texts[0].tokens == texts[1].tokens;
}

// A recipe is trained with a listener of the program's, which ends the run.
bool trains_a_recipe() {
  struct Third : Listener {
    void step_done(const StepDone& e, Control& run) override {
      if (e.step == 3) run.stop("three are enough");
    }
  } third;
  const Path folder = "consumer_run";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "text.txt") << std::string(2000, 'a') << "bc\n";
  TrainOptions options;
  options.out = folder / "run";
  options.quiet = true;
  options.report = write_report;
  options.listeners = {&third};
  const Recipe recipe = parse_recipe(
      "[model]\nlayers = 1\ndim = 16\nheads = 2\ncontext = 8\n[data]\ntokenizer.kind = \"byte\"\n"
      "[train]\nbatch = 2\nsteps = 9\nsample_tokens = 0\n",
      "consumer",
      {{"data.text", (folder / "text.txt").string()}, {"data.cache", (folder / "cache").string()}});
  return run_training(recipe, options).last_step == 3 &&
         std::filesystem::exists(options.out / "report.html") && writes_text(options.out);
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
  return loss < 0.1 && has_ops() && takes_structs_and_hooks() && trains_a_recipe() ? 0 : 1;
}
