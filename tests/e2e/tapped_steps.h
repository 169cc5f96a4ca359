// Steps of a small GPT-2 with taps: what they give, to the bit, and which kernels run for it.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "e2e/tiny_gpt.h"
#include "e2e/training.h"
#include "frontend/eager_emitter.h"
#include "frontend/programs.h"
#include "ops/cross_entropy.h"
#include "optim/adamw.h"

namespace aloft::e2e {

using Strings = std::vector<std::string>;

// Bits of a tensor as a string, its type and shape in front.
inline std::string bits_of(const Tensor& t) {
  std::string bits = t.type().str();
  for (double v : t.to_vector()) bits.append(reinterpret_cast<const char*>(&v), sizeof v);
  return bits;
}

// Kernels of the first program, and what each runs for.
inline Strings instructions_of(const Programs& programs) {
  Strings all;
  for (const Instruction& i : programs.plan().programs.at(0).instructions)
    all.push_back(i.kernel + " for " + i.identity);
  return all;
}

// Takes out what computes once more what a fusion took in, in front of the fused op and in its
// path, and says how many there were.
inline std::size_t take_computed_again(Strings& instructions) {
  return std::erase_if(instructions, [](const std::string& i) {
    return i.find("/layer_norm_grad_add/layer_norm_grad.") != std::string::npos ||
           i.find("/embedding_grad_add/embedding_grad.") != std::string::npos;
  });
}

// Of each step its results, and what its taps show, by their names.
template <class Shown>
struct TappedSteps {
  Strings results;
  std::vector<std::map<std::string, Shown>> taps;
  std::map<std::string, DType> types;  // of taps
  std::map<std::string, std::string> state;
  Strings instructions;
  std::set<std::string> refused;
};

// Four steps, the third with a short batch. `show`: what is kept of a tap's tensor. `skip`: passes.
template <class Show>
auto tapped_steps(const char* precision, int threads, const Strings& taps, const Show& show,
                  const Strings& skip = {}) {
  use_cpu();
  eager().clear_tape();
  omp_set_num_threads(threads);
  manual_seed(3);
  TinyGpt model;
  auto [net, opt] = amp::initialize(model, optim::AdamW{.lr = 1e-3}, precision);
  auto step = compile(
      [&, &net = net, &opt = opt](const Tensor& x, const Tensor& label) {
        return minimize(cross_entropy(net(x), label), opt);
      },
      {.name = "step", .threads = threads, .passes = {.skip = skip}, .taps = taps});
  TappedSteps<std::decay_t<decltype(show(Tensor()))>> run;
  for (int s = 0; s < 4; ++s) {
    const Batch b = sentences(s, s == 2 ? 2 : 3);
    const StepResult r = step(b.x, b.label);
    run.results.push_back(bits_of(r.loss_tensor) + bits_of(r.grad_norm) + bits_of(r.loss_scale) +
                          bits_of(r.finite));
    auto& seen = run.taps.emplace_back();
    for (const Tap& t : step.taps()) {
      seen[t.name] = show(step.tap(t.name));
      run.types[t.name] = t.type.dtype;
    }
  }
  run.state = state_of(model, opt);
  run.instructions = instructions_of(step.programs());
  for (const RefusedTap& t : step.programs().refused_taps("step")) run.refused.insert(t.name);
  return run;
}

}  // namespace aloft::e2e
