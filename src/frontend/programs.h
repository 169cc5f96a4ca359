// Compiled programs over one State: each is a function traced once into the Plan. The training
// loop runs them without allocating; compile() (frontend/compile.h) is the convenient form.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "exec/executor.h"
#include "frontend/asked_taps.h"
#include "frontend/compiled_program.h"
#include "frontend/onlooker.h"
#include "frontend/ports.h"
#include "frontend/tracing.h"
#include "graph/graph.h"
#include "graph/tap.h"
#include "passes/casting_emitter.h"
#include "passes/pipeline.h"
#include "passes/taps.h"
#include "plan/plan.h"
#include "types/statistics.h"

namespace aloft {

// UserError E0700: a number of threads that cannot be. E0317: a pass to leave out is none, or none
// that can be left out.
void check_programs(int threads, const PipelineOptions& options);

class Programs {
 public:
  // They run on this thread's current device. `threads` 0: as many as host_threads() has.
  // `choices`: what was chosen by measurement for them, which the Plan records (plan/choices.h).
  // UserErrors of check_programs().
  explicit Programs(int threads = 0, PipelineOptions options = {},
                    std::map<std::string, std::string> choices = {});
  Device& device() const { return device_; }

  // Traces, compiles and adds a program; replaces one of the same name. Where it throws, the
  // programs are as they were. With `draws`, which receives them, the program's random draws take
  // their states from inputs that the caller fills (frontend/draws.h); without, all of them read
  // the random state, and two runs draw the same numbers unless the program advances it.
  // `onlooker`, where he is given, has his taps in this program, too.
  void add(const std::string& name, const std::vector<InputSpec>& inputs, const Traceable& function,
           std::vector<Draw>* draws = nullptr, Onlooker* onlooker = nullptr);
  // Asks to see values inside the programs that are added from now on, by module path, by op or by
  // name (passes/tap_pattern.h: "h.*.mlp", "op:gelu_tanh", "backward:*"), as they are before
  // anything is fused. Each becomes an output of its name, which output() reads behind a run, until
  // the next run. A tap changes no other bit, and not which kernels run; a value that is looked at
  // keeps its memory to the end of the run, and what lies in a variable's is copied.
  // add() then ends in UserError E0327 for a pattern that means no value of the program, and in
  // E0326 for one none of whose values can be had, with the nearest that can.
  void tap(std::string pattern);
  // Asks for each layer's error in these low types, beside what it computes in f32: the programs
  // that are added from now on have results of the names in passes/layer_error_names.h.
  void measure_layers(std::vector<Policy> low) { measured_ = std::move(low); }
  // Asks for the statistics (ops/statistics.h) of what calls of the modules below `model` take and
  // give, and of the gradients of both, in the programs that are added from now on. Each is a tap
  // "statistics:call:PATH#N.input" or ".output" of call N in a trace, ".gradient" behind it. Only
  // what runs through Module::call() is seen, and only floats. `model` outlives the add()s.
  // `prefix`: kExponentsPrefix where the counts of exponents are wanted, too, "" for the values
  // themselves; `wanted`, where it is given: of the modules of these paths alone.
  void tap_calls(nn::Module* model, std::string_view prefix = kStatisticsPrefix,
                 std::function<bool(const std::string&)> wanted = {}) {
    asked_calls_.push_back({model, std::string(prefix), std::move(wanted)});
  }
  void tap(const AskedTaps& asked);
  // Asks for nothing any more in the programs that are added from now on.
  void tap_nothing();
  // On an asynchronous device the inputs of the programs that are added from now on have two homes,
  // planned in the bytes: set() for the next run does not wait for the last one.
  void load_ahead() { loads_ahead_ = true; }
  // Allocates and prepares everything added so far. Variables move into the plan's arenas.
  void finish();
  bool is_finished() const { return executor_ != nullptr; }
  // Whether the variables still have the types that the programs were compiled for.
  bool fit_their_variables() const;

  // After finish(); UserError E0315, here and below, before.
  Executor& executor() { return finished(); }
  int find(std::string_view program) const { return finished().find(program); }  // -1: none
  // Where a program's input is to be written, its output read. T is the element's own type, or
  // std::byte for whoever reads the type from the plan. UserError E0315 where there is none of that
  // name, E0323 where its elements are not as wide as T.
  template <class T>
  InputPort<T> input(std::string_view program, std::string_view name) const {
    const auto [all, bytes] = input_of(program, name, taken_for<T>());
    auto turns = finished().input_turns(program);
    return turns ? InputPort<T>(all, bytes, std::move(turns)) : InputPort<T>(all);
  }
  template <class T>
  OutputPort<T> output(std::string_view program, std::string_view name) const {
    return OutputPort<T>(output_of(program, name, taken_for<T>()));
  }
  // One run, then a look at what the traced function watches: DivergedError E0810 where a step in
  // it was one too many without finite gradients. UserError E0802, before anything is changed,
  // where it is not the turn of a micro-batch or step in it; E0315 where find() gives no such
  // index.
  void run(int program, std::span<const std::int64_t> lengths);
  // The two halves of a run: hand it over, look at what is watched. Between them, on an
  // asynchronous device, it is on its way. Errors as of run().
  void issue(int program, std::span<const std::int64_t> lengths);
  void settle(int program);

  // The variable that programs here call by this id, such as a StateSlot's; null: there is none.
  VariablePtr variable(Name id) const {
    const auto it = variables_.by_id().find(id);
    return it == variables_.by_id().end() ? nullptr : it->second;
  }
  const Plan& plan() const { return executor_ ? executor_->plan() : plan_; }
  // The graph of a program as lowered, and the times of its passes. UserError E0315, here and
  // below, where there is no program of that name.
  const Graph& graph(const std::string& program) const { return of(graphs_, program); }
  const OutputNotes& output_notes(const std::string& p, const std::string& output) const {
    return of(output_notes_, p).at(output);
  }
  // The values of a program that are tapped: names, and types in which a batch may be a symbol, of
  // which a run fills its own rows.
  std::vector<Tap> taps(const std::string& program) const;
  // Those that a pattern with others asked for and that cannot be had, and why.
  const std::vector<RefusedTap>& refused_taps(const std::string& program) const {
    return of(refused_taps_, program);
  }
  // Whether a program's function took the bound of a length for a number (Dim::max): it is right
  // for the longest batch alone.
  bool reads_bound(const std::string& p) const { return of(reads_bound_, p); }
  const std::vector<PassTime>& pass_times(const std::string& p) const { return of(times_, p); }
  // Every precision decision made for a program, forward and backward.
  const std::vector<DecisionRecord>& decisions(const std::string& p) const {
    return of(decisions_, p);
  }
  // Whether a program was compiled before, by another start of this code, and no pass ran for it
  // (frontend/plan_cache.h): pass_times() are those of then.
  bool is_from_cache(const std::string& p) const { return of(is_from_cache_, p); }
  double compile_seconds() const { return compile_seconds_; }

 private:
  void check_index(int program) const;
  // Returns what an observer threw.
  std::exception_ptr hand_over(int program, std::span<const std::int64_t> lengths);
  struct Compiled {
    CompiledProgram program;
    bool is_from_cache;
  };
  Compiled compile_or_find(Graph traced, const std::vector<std::string>& optional_taps);
  [[noreturn]] void refuse_name(const std::string& program) const;
  template <class T>
  const T& of(const std::map<std::string, T>& all, const std::string& program) const {
    const auto it = all.find(program);
    if (it == all.end()) refuse_name(program);
    return it->second;
  }

  Executor& finished() const;
  // What a caller takes elements for; 0 bytes: for any.
  struct TakenFor {
    std::size_t bytes = 0;
    bool is_float = false;
  };
  template <class T>
  static constexpr TakenFor taken_for() {
    return {std::is_same_v<T, std::byte> ? 0 : sizeof(T), std::is_floating_point_v<T>};
  }
  // UserError E0323 where its elements are others: a precision policy narrowed what the caller
  // reads as f32, say, and nobody cast it back. An input's memory with all of its homes, and its
  // bytes.
  std::pair<Buffer, std::size_t> input_of(std::string_view program, std::string_view name,
                                          TakenFor taken) const;
  Buffer output_of(std::string_view program, std::string_view name, TakenFor taken) const;

  // Variables whose values eager code may have at hand: parameters and buffers.
  std::vector<Variable*> written_by(const std::string& program) const;

  // A result that the host looks at behind each run.
  struct Watched {
    std::string output;
    std::function<void(std::int32_t)> look;
    OutputPort<std::int32_t> at = {};
  };

  Device& device_;
  Plan plan_;
  PipelineOptions options_;
  std::vector<std::string> tap_patterns_;
  std::vector<Policy> measured_;
  std::size_t added_taps_ = 0;  // of them, that programs were added with
  std::vector<AskedCalls> asked_calls_;
  bool loads_ahead_ = false;
  StateTable variables_;
  std::map<std::string, Graph> graphs_;
  std::map<std::string, std::map<std::string, OutputNotes>> output_notes_;
  std::map<std::string, std::vector<RefusedTap>> refused_taps_;
  std::map<std::string, bool> reads_bound_;
  std::map<std::string, std::vector<PassTime>> times_;
  std::map<std::string, bool> is_from_cache_;
  std::map<std::string, std::vector<DecisionRecord>> decisions_;
  std::map<std::string, std::vector<Watched>> watched_;
  std::map<std::string, HostPart> host_;
  // After finish(), by index.
  std::vector<std::vector<Watched>> watched_by_index_;
  std::vector<HostPart> host_by_index_;
  std::vector<std::vector<Variable*>> written_;
  std::unique_ptr<Executor> executor_;
  double compile_seconds_ = 0;
};

// Kernel choice from a device's prepared kernels.
ChooseKernel chooser(Device& device);

}  // namespace aloft
