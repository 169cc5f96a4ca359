// Loops of PyTorch, each as docs/from-pytorch.md sets it beside the Python: plain, with autocast
// alone, with a GradScaler, over micro-batches, clipped, with a schedule, with means of the
// weights, with a state that is saved, evaluated, compiled; and that of apex.
#include <aloft/aloft.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "points.h"
using namespace aloft;

using Model = models::Mlp;  // 784 numbers, ten classes

// Each gives the loss of its last step.

double plain(Model& model, Loader& loader) {
  double last = 0;
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  for (auto [x, y] : loader) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    amp::step(optimizer);
    last = loss.item();
  }
  return last;
}

double autocast_alone(Model& model, Loader& loader) {
  double last = 0;
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  for (auto [x, y] : loader) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast scope({.dtype = DType::BF16});
      loss = cross_entropy(model(x), y);
    }
    loss.backward();
    amp::step(optimizer);
    last = loss.item();
  }
  return last;
}

double grad_scaler(Model& model, Loader& loader) {
  double last = 0;
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  amp::GradScaler scaler;
  for (auto [x, y] : loader) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast scope({.dtype = DType::F16});
      loss = cross_entropy(model(x), y);
    }
    scaler.scale(loss).backward();
    scaler.unscale_(optimizer);
    clip_grad_norm_(model.parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
    last = loss.item();
  }
  return last;
}

double micro_batches(Model& model, Loader& loader) {
  double last = 0;
  Optimizer optimizer(optim::AdamW{.lr = 4e-3}, model.parameters(), scalar::no_scaler());
  int batches = 0;
  for (auto [x, y] : loader) {
    const Tensor loss = cross_entropy(model(x), y);
    (loss / 4).backward();
    if (++batches % 4 == 0) amp::step(optimizer);
    last = loss.item();
  }
  return last;
}

double clipped(Model& model, Loader& loader) {
  double last = 0;
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  for (auto [x, y] : loader) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    const Tensor norm = clip_grad_norm_(model.parameters(), 1.0);
    amp::step(optimizer);
    last = loss.item();
  }
  return last;
}

double scheduled(Model& model, Loader& loader) {
  double last = 0, rate = 0;
  const scalar::ScheduleRule cosine{.kind = scalar::ScheduleKind::Cosine, .total = 1000};
  Optimizer optimizer(optim::AdamW{.lr = 1e-3, .schedule = cosine}, model.parameters(),
                      scalar::no_scaler());
  for (auto [x, y] : loader) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(model(x), y);
    loss.backward();
    rate = amp::step(optimizer).learning_rate.item();
    last = loss.item();
  }
  return rate < 1e-3 ? last : NAN;
}

double averaged(Model& model, Loader& loader) {
  Optimizer optimizer(optim::AdamW{.lr = 1e-3, .average = {.kind = AverageKind::Ema, .decay = 0.9}},
                      model.parameters(), scalar::no_scaler());
  for (auto [x, y] : loader) {
    optimizer.zero_grad();
    cross_entropy(model(x), y).backward();
    amp::step(optimizer);
  }
  double sum = 0;
  int batches = 0;
  model.eval();
  {
    const AveragedWeights means(optimizer);
    const NoGrad none;
    for (auto [x, y] : loader) {
      sum += cross_entropy(model(x), y).item();
      ++batches;
    }
  }
  return sum / batches;
}

double saved(Model& model, Loader& loader) {
  double last = 0;
  const Path folder =
      std::filesystem::temp_directory_path() / fmt::format("aloft-loops-{}", getpid());
  Optimizer optimizer(optim::AdamW{.lr = 1e-3}, model.parameters(), scalar::no_scaler());
  {
    Checkpoints checkpoints(folder / "run");
    LoopPosition at = checkpoints.load(model, optimizer).value_or(LoopPosition{});
    loader.seek(at.data_position);
    for (auto [x, y] : loader) {
      const StepResult step = minimize(cross_entropy(model(x), y), optimizer);
      checkpoints.step(step, optimizer);
      at = {at.step + 1, loader.position()};
      if (at.step % 10 == 0) checkpoints.save(at, model, optimizer);
      last = step.loss();
    }
  }
  const Path file = folder / "model.safetensors";
  models::save_state(file, model);
  models::load_state(Safetensors::open(file), model);
  std::filesystem::remove_all(folder);
  return last;
}

double evaluated(Model& model, Loader& loader) {
  plain(model, loader);
  double sum = 0;
  int batches = 0;
  model.eval();
  {
    const NoGrad none;
    for (auto [x, y] : loader) {
      sum += cross_entropy(model(x), y).item();
      ++batches;
    }
  }
  model.train();
  return sum / batches;
}

double compiled(Model& model, Loader& loader) {
  double last = 0;
  Optimizer optimizer(optim::AdamW{.lr = 1e-3, .clip_norm = 1}, model.parameters(),
                      scalar::no_scaler());
  auto step =
      compile([&](Tensor x, Tensor y) { return minimize(cross_entropy(model(x), y), optimizer); });
  for (auto [x, y] : loader) last = step(x, y).loss();
  return last;
}

// As docs/from-apex.md has it.
double apex(Model& model, Loader& loader) {
  double last = 0;
  auto [net, optimizer] = amp::initialize(model, optim::Adam{.lr = 1e-3}, {.opt_level = "O2"});
  for (auto [x, label] : loader) {
    optimizer.zero_grad();
    const Tensor loss = cross_entropy(net(x), label);
    {
      auto scaled_loss = amp::scale_loss(loss, optimizer);
      scaled_loss.backward();
    }
    amp::step(optimizer);
    last = loss.item();
  }
  return last;
}

int main() {
  const struct {
    const char* name;
    double (*run)(Model&, Loader&);
  } loops[] = {{"plain", plain},
               {"autocast", autocast_alone},
               {"scaler", grad_scaler},
               {"micro-batches", micro_batches},
               {"clipped", clipped},
               {"scheduled", scheduled},
               {"averaged", averaged},
               {"saved", saved},
               {"evaluated", evaluated},
               {"compiled", compiled},
               {"apex", apex}};
  bool is_learnt = true;
  for (const auto& loop : loops) {
    manual_seed(1);
    Loader loader(noisy_prototypes(2000), {.batch = 64});
    Model model({784, 128, 10}, relu);
    const double loss = loop.run(model, loader);
    fmt::print("{:14} {:.4f}\n", loop.name, loss);
    is_learnt = is_learnt && loss < 1;
  }
  return is_learnt ? 0 : 1;
}
