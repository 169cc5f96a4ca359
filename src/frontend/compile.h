// compile(f): f traced into a Plan, called like f. Arguments are eager tensors of the shapes that
// this call has, and whatever holds such tensors (frontend/nested.h): vectors, tuples, maps,
// optionals, structs, in one another; results are the same. A result is the program's own output
// memory while nobody else needs that; one that is kept over the next call, or beyond the compiled
// function, gets memory of its own and stays what it was. Once a second thread has called the
// function, in turn, every call returns copies: one thread may read its results while another one
// calls. It carries no gradient: an eager gradient that would have to pass it is refused (E0321).
// Compile the whole step, or detach() a result that is meant as a constant.
//
// The first call compiles for its arguments' number, types and shapes. The first dimension of
// arguments that agree about it is taken for a batch: the same program then serves 2 rows up to as
// many, or up to CompileOptions::most_rows. Where f cannot be traced so (a product of two square
// matrices, say), for arguments of other types or shapes, for other numbers, strings and lengths of
// containers in them, and for a call that leaves out arguments which f has defaults for, f is
// compiled once more (decisions 17 and 36): f must compute the same from its arguments each time.
// Where f reads the batch as a number, by x.dim(0).max() or x.dim(0) == 8, it is compiled for each
// number of rows (with means it need not be); its is_constant(), str(), symbol() and times() are of
// the symbol, otherwise than eagerly, and not noted. CompiledCall::kMostPrograms programs are kept,
// then the one used longest ago goes; the eighth is told of on stderr, with what changes.
//
// Values of parameters, buffers and counters are read anew in each call. What f was traced under is
// compared before each call, and where it has changed f is compiled once more: train() and eval()
// of the modules that it asks, requires_grad of the parameters that its optimizer trains,
// Optimizer::set_accumulation and Optimizer::add, hooks (frontend/hooks.h), a precision from
// amp::initialize, NoGrad around the call where that matters, the module path and precision around
// the call, the thread that calls a step (its random state is the one that draws and advances).
// Everything else that f reads from the program around it is what it was while f was traced, as in
// torch.compile: numbers, flags and strings that it captured, a clock, the layers that a model has,
// fields of an OptimizerSpec. Pass what changes as an argument, or compile another function. What f
// does besides computing (printing, counting, m.eval()) happens while it is traced, not in each
// call. Its tensors belong to one trace: one that f keeps for later, in a member of a model say, is
// refused there (E0304).
//
//   auto step = compile([&](Tensor x, Tensor label) {
//     return minimize(cross_entropy(net(x), label), opt);
//   });
//   for (auto [x, label] : loader) fmt::print("{}\n", step(x, label).loss());
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/source_location.h"
#include "exec/one_caller.h"
#include "frontend/assigned.h"
#include "frontend/nested.h"
#include "frontend/optimizer.h"
#include "graph/tap.h"
#include "passes/pipeline_options.h"

namespace aloft {

class CallPrograms;
class Programs;

// How compile() compiles; the defaults suit a training step.
struct CompileOptions {
  std::string name = "program";  // of the program, in messages
  // The first dimension of the arguments may be a batch: later calls may bring fewer rows (a
  // partial last batch) and run the same program. False: every number of rows is compiled for.
  bool partial_batches = true;
  // The largest batch that calls will bring: the first program serves 2 rows up to so many, in
  // memory for that. 0: the rows of the first call; a larger batch is compiled for when it comes.
  std::int64_t most_rows = 0;
  int threads = 0;              // 0: as many as the process has; at most 1024
  PipelineOptions passes = {};  // passes to leave out, a look at each one's result
  // Values inside to look at, by path, op or name: Programs::tap says how, Compiled::tap reads one.
  std::vector<std::string> taps = {};
};

// The parts of a step's result, and what they are called as outputs of a program.
template <>
struct PartsOf<StepResult> {
  // All of them.
  static constexpr auto parts() {
    return std::tuple{
        part("loss", &StepResult::loss_tensor), part("grad_norm", &StepResult::grad_norm),
        part("lr", &StepResult::learning_rate), part("loss_scale", &StepResult::loss_scale),
        part("finite", &StepResult::finite),    part("culprit", &StepResult::culprit)};
  }
};

namespace results {
// Inside: a result's tensors, with their names as outputs of a program.
using Named = std::vector<std::pair<std::string, Tensor>>;
template <class T>
Named flatten(const T& result) {
  nested::Outputs outputs;
  nested::visit(result, outputs);
  return std::move(outputs.all);
}
}  // namespace results

// Inside: the arguments of one call, of any type.
class CallArguments {
 public:
  virtual ~CallArguments() = default;
  const std::vector<Tensor>& tensors() const { return apart_.tensors; }
  // What is no tensor in them, and their types: a program serves calls in which both are the same.
  const std::string& fixed() const { return apart_.fixed; }
  std::uintptr_t kind() const { return kind_; }
  // What there is in argument `i`, or in any, with its path: "argument 2, [0].mask".
  virtual std::vector<nested::Place> places() const = 0;
  // The function's results for arguments of these tensors; `like` becomes what a result of the call
  // is made from.
  virtual results::Named trace(const std::vector<Tensor>& inputs,
                               std::shared_ptr<const void>& like) const = 0;

 protected:
  explicit CallArguments(std::uintptr_t kind) : kind_(kind) {}
  nested::TakenApart apart_;

 private:
  std::uintptr_t kind_;
};

// Inside: the part of a compiled function that does not depend on its type: its programs, and the
// results of its last call (frontend/call_programs.h).
class CompiledCall {
 public:
  // So many programs at most, of shapes times modes; then the one that was used longest ago goes.
  static constexpr std::size_t kMostPrograms = 16;

  CompiledCall(CompileOptions options, SourceLocation place);
  ~CompiledCall();  // results of this thread that are still held get memory of their own
  CompiledCall(const CompiledCall&) = delete;
  CompiledCall& operator=(const CompiledCall&) = delete;

  // Finds the program for these arguments or compiles it, copies them in, runs, and returns the
  // results, one each. UserError E0302 or E0304 where an argument has no value, and whatever f
  // itself refuses, with the arguments' types; nothing has been copied then.
  const std::vector<Tensor>& operator()(const CallArguments& arguments);
  // What a result of that call is made from.
  const std::shared_ptr<const void>& like() const;
  // The caller has its results, and others may call. EnvironmentError E0401 where they are to be
  // copied.
  void hand_over();
  // Every program compiled so far; null before the first call.
  Programs* programs();
  // As Compiled::tap and Compiled::taps say.
  Tensor tap(const std::string& name) const;
  std::vector<Tap> taps() const;
  std::vector<RefusedTap> refused_taps() const;

 private:
  std::unique_ptr<CallPrograms> programs_;
};

// Inside: as what the traced function gets an argument; by itself where it has no tensor.
template <class T>
using traced_argument_t = std::conditional_t<nested::has_no_tensor<T>(), T,
                                             std::conditional_t<nested::AsTensor<T>, Tensor, T>>;

// Inside: what tells one class of arguments from another, by its address.
template <class T>
inline constexpr char kArgumentsKind = 0;

// Inside: the arguments of a call, and what f gives for such.
template <class F, class... Args>
class ArgumentsOf final : public CallArguments {
 public:
  ArgumentsOf(F& f, const Args&... args)
      : CallArguments(reinterpret_cast<std::uintptr_t>(&kArgumentsKind<ArgumentsOf>)),
        f_(f),
        args_(args...) {
    apart_.tensors.reserve(sizeof...(args));
    (nested::visit(args, apart_), ...);
  }
  std::vector<nested::Place> places() const override {
    std::vector<nested::Place> all;
    std::size_t i = 0;
    const auto add = [&](const auto& argument) {
      nested::Places own;
      nested::visit(argument, own);
      for (nested::Place& p : own.all) {
        p.path = "argument " + std::to_string(i) + (p.path.empty() ? "" : ", " + p.path);
        all.push_back(std::move(p));
      }
      ++i;
    };
    std::apply([&](const Args&... args) { (add(args), ...); }, args_);
    return all;
  }
  results::Named trace(const std::vector<Tensor>& inputs,
                       std::shared_ptr<const void>& like) const override {
    nested::PutTogether put(inputs);
    return std::apply(
        [&](const Args&... args) {
          // In braces, which are worked through in order.
          const std::tuple<held_t<Args>...> traced{with_inputs(args, put)...};
          return std::apply([&](const auto&... a) { return call(like, a...); }, traced);
        },
        args_);
  }

 private:
  template <class T>
  using held_t = std::conditional_t<nested::has_no_tensor<T>(), const T&, traced_argument_t<T>>;

  template <class T>
  static held_t<T> with_inputs(const T& argument, nested::PutTogether& put) {
    if constexpr (nested::has_no_tensor<T>()) {
      return argument;
    } else {
      traced_argument_t<T> copy = argument;
      nested::visit(copy, put);
      return copy;
    }
  }
  template <class... A>
  results::Named call(std::shared_ptr<const void>& like, const A&... a) const {
    if constexpr (std::is_void_v<std::invoke_result_t<F&, const A&...>>) {
      f_(a...);
      return {};
    } else {
      auto result = f_(a...);
      results::Named named = results::flatten(result);
      nested::Emptied empty;
      nested::visit(result, empty);
      like = std::make_shared<const decltype(result)>(std::move(result));
      return named;
    }
  }

  F& f_;
  std::tuple<const Args&...> args_;
};

// Inside: UserErrors that compile() ends in for its options.
void check_compile(const CompileOptions& options);

// What compile() returns, to be called like the function that it was made from.
// Copies share what is compiled, and a call through one of them is a call of all.
template <class F>
class Compiled {
 public:
  // As compile() makes it, at `place`. Nothing is traced before the first call.
  Compiled(F f, CompileOptions options, SourceLocation place = SourceLocation::current())
      : state_(std::make_shared<State>(std::move(f), std::move(options), place)) {
    need_assigned(state_->f, "compile()");
    check_compile(state_->options);
  }
  // No move of its own: what was moved from can still be called.
  Compiled(const Compiled&) = default;
  Compiled& operator=(const Compiled&) = default;

  // Runs the program for these arguments and gives what f returns; the first call of their types
  // and shapes traces f and compiles it. Behind a call, its results are read in peace, whoever
  // calls next. UserError E0330 while another thread is inside, or from within f; E0302 or E0304
  // where a tensor in an argument has no value.
  template <class... Args>
  auto operator()(const Args&... args) {
    State& s = *state_;
    const OneCaller::Entered entered(s.caller, s.options.name);
    using Result = std::invoke_result_t<F&, const traced_argument_t<Args>&...>;
    if (!s.call) s.call = std::make_unique<CompiledCall>(s.options, s.place);
    const std::vector<Tensor>& flat = (*s.call)(ArgumentsOf<F, Args...>(s.f, args...));
    if constexpr (std::is_void_v<Result>) {
      s.call->hand_over();
    } else {
      auto result = *static_cast<const std::remove_cvref_t<Result>*>(s.call->like().get());
      nested::PutTogether put(flat);
      nested::visit(result, put);
      s.call->hand_over();
      return result;
    }
  }
  // The programs compiled so far. UserError E0315 before the first call.
  Programs& programs() { return *called().programs(); }
  // What the last call had at a place that CompileOptions::taps asked for, by the value's name:
  // "h.0.mlp/gelu_tanh#0". A tensor of that call's rows, with memory of its own; no gradient passes
  // it (E0321). UserError E0327 where there is no tap of that name, E0315 where no call has
  // returned since the last one that was refused, E0330 while another thread is inside.
  Tensor tap(const std::string& name) const {
    const OneCaller::Entered entered(state_->caller, state_->options.name);
    return called().tap(name);
  }
  // The names of all taps of the last call, and their types, in which a batch may be a symbol.
  // UserErrors as tap() has.
  std::vector<Tap> taps() const {
    const OneCaller::Entered entered(state_->caller, state_->options.name);
    return called().taps();
  }
  // What a pattern with others asked for, cannot be had in the last call's program, and why.
  // UserErrors as tap() has.
  std::vector<RefusedTap> refused_taps() const {
    const OneCaller::Entered entered(state_->caller, state_->options.name);
    return called().refused_taps();
  }

 private:
  struct State {
    State(F function, CompileOptions o, SourceLocation at)
        : f(std::move(function)), options(std::move(o)), place(at) {}
    F f;  // traced again for new shapes
    CompileOptions options;
    SourceLocation place;
    std::unique_ptr<CompiledCall> call;
    OneCaller caller;
  };

  CompiledCall& called() const {
    if (!state_->call || !state_->call->programs())
      throw UserError("E0315", "nothing has been compiled yet")
          .need("a call before")
          .advice("call the compiled function once: its arguments' types are needed");
    return *state_->call;
  }

  std::shared_ptr<State> state_;
};

// f, a function of tensors and what holds them, to be traced and compiled by its first call. f
// returns a tensor, a StepResult, whatever holds tensors (frontend/nested.h), or nothing. What f
// throws comes from the call that traces it. UserError E0302 where f was never assigned, E0700 for
// a number of threads or of rows that cannot be, E0317 where a pass to leave out is none, or none
// that can be left out.
template <class F>
Compiled<F> compile(F f, CompileOptions options = {},
                    SourceLocation place = SourceLocation::current()) {
  return Compiled<F>(std::move(f), std::move(options), place);
}

}  // namespace aloft
