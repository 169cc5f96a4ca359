// A training that is ended in the middle and started anew, in a new process or as here in a new
// model, ends with the same bits as one that ran through: weights with their fp32 masters, the
// optimizer's moments, step count, loss scale, dropout's random numbers and the order of the data
// all go on. What it takes is Checkpoints: load() at the start, save() now and then, and step(),
// by which it knows a state that has diverged: nobody goes on from that.
#include <aloft/aloft.h>
#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "points.h"
using namespace aloft;

struct Model : nn::Module {
  nn::Linear up{*this, "up", 784, 64};
  nn::Dropout drop{*this, "drop", 0.2};
  nn::Linear down{*this, "down", 64, 10};
  Tensor operator()(Tensor x) { return down(drop(gelu(up(x)))); }  // [B, 784] -> [B, 10]
};

constexpr std::int64_t kSteps = 60, kSaveEvery = 10;

// One life of the program: from the newest checkpoint in `folder`, or from the start, up to step
// `end`. Returns the bytes of everything that the training has changed.
std::string train(const Path& folder, std::uint64_t seed, std::int64_t end) {
  manual_seed(seed);
  Loader loader(noisy_prototypes(1000), {.batch = 64, .seed = 5});
  Model model;
  const optim::AdamW rule{
      .lr = 2e-3,
      .clip_norm = 1.0,
      .schedule = {.kind = scalar::ScheduleKind::Cosine, .warmup = 5, .total = kSteps}};
  auto [net, opt] = amp::initialize(model, rule, "O2:fp16");
  auto step = compile([&net = net, &opt = opt](Tensor x, Tensor label) {
    return minimize(cross_entropy(net(x), label), opt);
  });

  Checkpoints checkpoints(folder);
  LoopPosition at;
  if (const auto saved = checkpoints.load(model, opt)) at = *saved;
  loader.seek(at.data_position);
  fmt::print("from step {} ({} samples) ", at.step, at.data_position);
  double loss = 0;
  while (at.step < end)
    for (const auto& [x, label] : loader) {  // the rest of the epoch, then whole ones
      const StepResult result = step(x, label);
      loss = result.loss();
      checkpoints.step(result, opt);
      at = {at.step + 1, loader.position()};
      if (at.step % kSaveEvery == 0) checkpoints.save(at, model, opt);
      if (at.step == end) break;
    }
  fmt::print("to step {}: loss {:.6f}\n", at.step, loss);

  std::string bytes;
  for (const auto& list : {model.parameters(), opt.state()})
    for (const VariablePtr& v : list)
      for (const std::byte b : v->bytes()) bytes.push_back(static_cast<char>(b));
  return bytes;
}

int main() {
  const Path root = std::filesystem::temp_directory_path() / fmt::format("aloft-{}", getpid());
  const std::string whole = train(root / "whole", 1, kSteps);
  train(root / "cut", 1, 25);  // ends five steps behind its newest checkpoint
  const std::string resumed = train(root / "cut", 2, kSteps);
  std::filesystem::remove_all(root);
  fmt::print("{}\n", resumed == whole ? "the same bits" : "other bits");
  return resumed == whole ? 0 : 1;
}
