// compile(f): f traced once into one Plan, called like f. Arguments and results are eager tensors;
// results are views of the program's own output memory, valid until the next call.
//
//   auto step = compile([&](Tensor x, Tensor label) {
//     return minimize(cross_entropy(net(x), label), opt);
//   });
//   for (auto [x, label] : loader) fmt::print("{}\n", step(x, label).loss());
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "frontend/optimizer.h"
#include "frontend/programs.h"

namespace aloft {

struct CompileOptions {
  std::string name = "program";
  // The first dimension of the arguments is a batch: later calls may bring fewer rows (a partial
  // last batch) and run the same program.
  bool partial_batches = true;
  int threads = 0;
  PipelineOptions passes = {};  // passes to leave out, a look at each one's result
};

// What a compiled function may return: a tensor, a StepResult, a vector or a tuple of tensors.
namespace results {
using Named = std::vector<std::pair<std::string, Tensor>>;
Named flatten(const Tensor& t);
Named flatten(const StepResult& r);
Named flatten(const std::vector<Tensor>& list);
void restore(const std::vector<Tensor>& flat, Tensor& t);
void restore(const std::vector<Tensor>& flat, StepResult& r);
void restore(const std::vector<Tensor>& flat, std::vector<Tensor>& list);
template <class... T>
Named flatten(const std::tuple<T...>& t) {
  return flatten(std::apply([](const auto&... x) { return std::vector<Tensor>{x...}; }, t));
}
template <class... T>
void restore(const std::vector<Tensor>& flat, std::tuple<T...>& t) {
  std::size_t i = 0;
  std::apply([&](auto&... x) { ((x = flat[i++]), ...); }, t);
}
}  // namespace results

// The part of a compiled function that does not depend on its type.
class CompiledCall {
 public:
  CompiledCall(CompileOptions options, Traceable function);
  // Traces and compiles on the first call; copies the arguments in, runs, returns the results.
  const std::vector<Tensor>& operator()(const std::vector<Tensor>& arguments);
  Programs& programs() { return *programs_; }

 private:
  void build(const std::vector<Tensor>& arguments);
  void check(const std::vector<Tensor>& arguments) const;

  CompileOptions options_;
  Traceable function_;
  std::unique_ptr<Programs> programs_;
  std::vector<InputSpec> inputs_;
  std::vector<void*> homes_;
  std::vector<Tensor> outputs_;
  int program_ = -1;
  bool has_batch_ = false;
};

template <class F>
class Compiled {
 public:
  Compiled(F f, CompileOptions options) : f_(std::move(f)), options_(std::move(options)) {}

  template <class... Args>
  auto operator()(const Args&... args) {
    using Result = std::invoke_result_t<F&, const Args&...>;
    if (!call_)
      call_ = std::make_unique<CompiledCall>(options_, [this](const std::vector<Tensor>& inputs) {
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
          return results::flatten(f_(inputs[I]...));
        }
        (std::index_sequence_for<Args...>{});
      });
    Result result;
    results::restore((*call_)({args...}), result);
    return result;
  }
  Programs& programs() { return call_->programs(); }

 private:
  F f_;
  CompileOptions options_;
  std::unique_ptr<CompiledCall> call_;
};

template <class F>
Compiled<F> compile(F f, CompileOptions options = {}) {
  return Compiled<F>(std::move(f), std::move(options));
}

}  // namespace aloft
