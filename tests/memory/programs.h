// Programs whose memory and allocations the tests of this folder watch: a dense net, a
// convolutional net, a GPT (precisions, dropout, accumulation), decoding with a cache. Each runs a
// few steps and returns everything that must be equal between two runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/token_examples.h"
#include "e2e/training.h"
#include "frontend/programs.h"
#include "models/gpt2.h"
#include "models/lenet.h"
#include "models/mlp.h"
#include "ops/cross_entropy.h"
#include "optim/adamw.h"
#include "optim/sgd.h"
#include "tasks/language_model.h"
#include "train/runner.h"

namespace aloft::memory {

struct Seen {
  std::vector<double> numbers;      // losses, norms, scales, logits
  std::vector<std::string> states;  // bytes of every variable
  friend bool operator==(const Seen&, const Seen&) = default;
};

// Looks at the executor when the program has run.
using Look = std::function<void(Executor&)>;

inline void keep(Seen& seen, const std::vector<VariablePtr>& variables) {
  for (const VariablePtr& v : variables) seen.states.push_back(e2e::bytes_of(*v));
}

// `step(x, label)` compiled and run for some batches of `shape`, the last one short.
template <class M>
Seen train_classifier(M& model, const OptimizerSpec& spec, const std::string& precision,
                      const std::vector<std::int64_t>& shape, int classes, const Look& look) {
  auto [net, opt] = amp::initialize(model, spec, precision);
  auto step = compile([&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
    return minimize(cross_entropy(net(x), label), opt);
  });
  Seen seen;
  for (int i = 0; i < 4; ++i) {
    std::vector<std::int64_t> extents = shape;
    // Not the last: where a short batch has a program of its own, whole ones shall run behind it.
    if (i == 1) extents[0] -= 2;
    const Shape s = Shape::of(extents);
    std::vector<float> values(static_cast<std::size_t>(s.max_numel()));
    for (std::size_t k = 0; k < values.size(); ++k)
      values[k] = static_cast<float>((k * 37 + i * 101) % 19) / 7 - 1;
    std::vector<std::int32_t> labels;
    for (std::int64_t r = 0; r < extents[0]; ++r)
      labels.push_back(static_cast<std::int32_t>((r * 3 + i) % classes));
    const StepResult r = step(from_floats(values, s), from_ints(labels, {extents[0]}));
    seen.numbers.insert(seen.numbers.end(), {r.loss(), r.grad_norm.item(), r.loss_scale.item()});
  }
  keep(seen, model.parameters());
  keep(seen, opt.state());
  look(step.programs().executor());
  return seen;
}

inline Seen train_mlp(const std::string& precision, const Look& look) {
  manual_seed(2);
  models::Mlp model({12, 24, 5});
  return train_classifier(model, optim::AdamW{.lr = 1e-2, .clip_norm = 0.5}, precision, {9, 12}, 5,
                          look);
}

inline Seen train_lenet(const std::string& precision, const Look& look) {
  manual_seed(2);
  models::LeNet model({.height = 10, .width = 10, .classes = 4, .filters = 5, .hidden = 11});
  return train_classifier(model, optim::Momentum{.lr = 0.05}, precision, {7, 1, 10, 10}, 4, look);
}

inline models::Gpt2Config tiny_gpt(double dropout = 0) {
  models::Gpt2Config c;
  c.layers = 2;
  c.heads = 2;
  c.dim = 32;
  c.vocab = 29;
  c.context = 16;
  c.dropout = dropout;
  return c;
}

inline std::vector<Column> gpt_columns() {
  const models::Gpt2Config c = tiny_gpt();
  return {{"tokens", DType::I32, {c.context}, c.vocab},
          {"targets", DType::I32, {c.context}, c.vocab}};
}

// A runner of a tiny GPT with what it needs; made by compiling, so that its plan holds the
// trainer's programs.
struct TinyGpt {
  static constexpr std::int64_t kRows = 3;

  // `place` says where programs keep variables, before the first of them is there.
  using Place = std::function<void(nn::Layer&, Optimizer&)>;
  TinyGpt(const std::string& precision, double dropout, int accumulation,
          StateFormat master = StateFormat::F32, const Place& place = {},
          UpdateTime update = UpdateTime::Late,
          const OptimizerSpec& rule = optim::AdamW{.lr = 5e-3}, const ProbeSection& probe = {})
      : task(std::make_unique<models::Gpt2>(tiny_gpt(dropout))),
        model(task.model()),
        optimizer(amp::prepare(model, spec_of(rule, master, update), parse_precision(precision))) {
    optimizer.set_accumulation(accumulation);
    if (place) place(model, optimizer);
    RunnerOptions options{kRows, gpt_columns(), 2, {}};
    options.probe = probe;
    runner = graph_runner(task, optimizer, options);
    runner->start();
    inputs.resize(kRows * tiny_gpt().context);
    targets.resize(inputs.size());
  }

  ExampleBatch batch(int call, std::int64_t rows = kRows) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = static_cast<std::int32_t>((i * 7 + call * 5) % 29);
      targets[i] = static_cast<std::int32_t>((i * 7 + call * 5 + 7) % 29);
    }
    return example_batch({inputs, targets, rows, 0, 0, 0});
  }

  static OptimizerSpec spec_of(OptimizerSpec spec, StateFormat master, UpdateTime update) {
    spec.clip_norm = update == UpdateTime::Late ? 1.0 : 0.0;
    spec.master = master;
    spec.update = update;
    return spec;
  }

  LanguageModel task;
  nn::Layer& model;
  Optimizer optimizer;
  std::unique_ptr<Runner> runner;
  std::vector<std::int32_t> inputs, targets;
};

inline Seen train_gpt(const std::string& precision, double dropout, int accumulation,
                      const Look& look, StateFormat master = StateFormat::F32,
                      const TinyGpt::Place& place = {}, UpdateTime update = UpdateTime::Late,
                      const OptimizerSpec& rule = optim::AdamW{.lr = 5e-3}) {
  manual_seed(4);
  TinyGpt gpt(precision, dropout, accumulation, master, place, update, rule);
  Seen seen;
  for (int call = 0; call < 3 * accumulation; ++call) {
    const ExampleBatch batch = gpt.batch(call, call == 1 ? 2 : 3);
    if (call % accumulation != accumulation - 1) {
      seen.numbers.push_back(gpt.runner->accumulate(batch));
      continue;
    }
    const StepNumbers n = gpt.runner->step(batch);
    seen.numbers.insert(seen.numbers.end(),
                        {n.loss, n.grad_norm, n.lr, n.loss_scale, double(n.finite),
                         gpt.runner->evaluate(batch).front()});
  }
  keep(seen, gpt.model.parameters());
  keep(seen, gpt.optimizer.state());
  look(gpt.runner->programs()->executor());
  return seen;
}

inline Seen decode_gpt(DType type, const Look& look) {
  manual_seed(5);
  models::Gpt2 model(tiny_gpt());
  model.eval();
  models::DecodeCache cache = model.make_cache(1, 16, type);
  Programs programs(2);
  constexpr int kPrefill = 5;
  programs.add("prefill", {{"tokens", {DType::I32, {1, kPrefill}}}}, [&](const auto& in) {
    model.prefill(in[0], cache);
    return results::Named{};
  });
  programs.add("decode", {{"tokens", {DType::I32, {1, 1}}}}, [&](const auto& in) {
    return results::Named{{"logits", model.decode(in[0], cache)}};
  });
  programs.finish();
  cache.clear();
  {
    const auto prompt = programs.input<std::int32_t>("prefill", "tokens").write();
    for (int i = 0; i < kPrefill; ++i) prompt[i] = i * 5 % 29;
  }
  programs.run(programs.find("prefill"), {});
  Seen seen;
  for (int t = kPrefill; t < 16; ++t) {
    programs.input<std::int32_t>("decode", "tokens").write()[0] = t * 3 % 29;
    programs.run(programs.find("decode"), {});
    const auto logits = programs.output<float>("decode", "logits").read();
    seen.numbers.insert(seen.numbers.end(), logits.begin(), logits.begin() + 29);
  }
  look(programs.executor());
  return seen;
}

}  // namespace aloft::memory
