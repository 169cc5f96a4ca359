// Trains a model for some steps in either mode and keeps what must be equal between runs: every
// step's loss and all parameters at the end, to the bit.
#pragma once

#include <omp.h>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "backends/catalog.h"
#include "frontend/amp.h"
#include "frontend/compile.h"
#include "frontend/eager.h"
#include "frontend/eager_emitter.h"
#include "frontend/random.h"

namespace aloft::e2e {

enum class Mode { Eager, Compiled };

struct Batch {
  Tensor x, label;
};

struct Outcome {
  std::vector<double> losses;
  std::vector<double> grad_norms;
  int skipped = 0;
  std::map<std::string, std::string> state;  // name -> bytes: parameters and buffers

  double mean(std::size_t from, std::size_t to) const {
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += losses[i];
    return sum / static_cast<double>(to - from);
  }
  double first() const { return mean(0, 5); }
  double last() const { return mean(losses.size() - 5, losses.size()); }
};

// Every program that calls the library's ops registers a back end first; tests do it here.
inline void use_cpu() {
  static const bool once = [] {
    use_device(chosen_device);
    set_device_opener(open_device);
    current_device();  // brings the host's threads
    return true;
  }();
  (void)once;
}

inline std::string bytes_of(const Variable& v) {
  const auto bytes = v.buffer->read<char>(0, v.type.max_bytes());
  return {bytes.begin(), bytes.end()};
}

// name -> bytes of parameters, buffers, masters, moments and control state.
inline std::map<std::string, std::string> state_of(const nn::Module& model, const Optimizer& opt) {
  std::map<std::string, std::string> state;
  for (const auto& list : {model.parameters(), model.buffers(), opt.state()})
    for (const VariablePtr& v : list) state[v->name.str()] = bytes_of(*v);
  return state;
}

struct TrainOptions {
  Mode mode = Mode::Compiled;
  std::string precision = "O0";
  int steps = 30;
  int threads = 2;
  std::uint64_t seed = 1;
  OptimizerSpec optimizer;
  std::vector<std::string> skip = {}, also = {};  // passes
};

// `M` is a model with operator()(x); `loss` makes a scalar of the network's call and the labels.
// `batch(step)` gives the data; `before(model)` may freeze parameters.
template <class M, class Loss>
Outcome train(const TrainOptions& options, const std::function<Batch(int)>& batch, Loss loss,
              const std::function<void(M&)>& before = {}) {
  use_cpu();
  eager().clear_tape();
  omp_set_num_threads(options.threads);
  manual_seed(options.seed);
  M model;
  if (before) before(model);
  auto [net, opt] = amp::initialize(model, options.optimizer, options.precision);
  auto one = [&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
    return minimize(loss(net, x, label), opt);
  };
  auto compiled = compile(one, {.name = "step",
                                .threads = options.threads,
                                .passes = {.skip = options.skip, .also = options.also}});
  Outcome run;
  for (int step = 0; step < options.steps; ++step) {
    const Batch b = batch(step);
    const StepResult r = options.mode == Mode::Eager ? one(b.x, b.label) : compiled(b.x, b.label);
    run.losses.push_back(r.loss());
    run.grad_norms.push_back(r.grad_norm.item());
    run.skipped += r.skipped();
  }
  run.state = state_of(model, opt);
  return run;
}

// Names of the variables whose bits differ.
inline std::vector<std::string> differing(const Outcome& a, const Outcome& b) {
  std::vector<std::string> names;
  for (const auto& [name, bytes] : a.state)
    if (!b.state.contains(name) || b.state.at(name) != bytes) names.push_back(name);
  return names;
}

}  // namespace aloft::e2e
