#include "frontend/programs.h"

#include <omp.h>

#include <chrono>

#include "base/error.h"
#include "frontend/eager.h"
#include "passes/lower_to_plan.h"
#include "runtime/default_backend.h"

namespace aloft {

Tensor TraceEmitter::state(const VariablePtr& variable) {
  const auto [it, is_new] = variables_.emplace(variable->name, variable);
  if (!is_new && it->second != variable)
    throw UserError("E0314", "two variables have the name '" + variable->name.str() + "'")
        .need("distinct names within one program")
        .advice("put one of the models below a parent module");
  return GraphEmitter::state(variable);
}

void TraceEmitter::update(const VariablePtr& variable, const Tensor& value) {
  state(variable);
  GraphEmitter::update(variable, value);
}

TracedProgram trace(const std::string& name, const std::vector<InputSpec>& inputs,
                    const Traceable& function, std::vector<DecisionRecord>* decisions) {
  TracedProgram result;
  result.graph.name = name;
  TraceEmitter recorder(result.graph);
  CastingEmitter emitter(recorder, Capability{});
  emitter.record_decisions(decisions);
  EmitterScope scope(emitter);
  std::vector<Tensor> operands;
  operands.reserve(inputs.size());
  for (const InputSpec& i : inputs)
    operands.push_back(emitter.handle(result.graph.add_input(i.name, i.type)));
  for (const auto& [output, tensor] : function(operands)) {
    if (tensor.emitter() != &emitter)
      throw UserError("E0304", "result '" + output + "' was not computed by the traced function")
          .need("tensors that depend on its arguments or on parameters");
    result.graph.set_output(output, tensor.id());
  }
  result.variables = recorder.variables();
  return result;
}

ChooseKernel chooser() {
  return [](const CallSpec& call) {
    const PreparedKernel k = default_kernels().get(call);
    KernelChoice choice;
    choice.refusals = k.refusals;
    if (!k.kernel) return choice;
    choice.kernel = k.kernel->name;
    choice.is_view = k.kernel->is_view;
    if (k.kernel->in_place) choice.in_place = k.kernel->in_place(call);
    if (k.prepared) choice.scratch_bytes = k.prepared->scratch_bytes();
    return choice;
  };
}

Programs::Programs(int threads, PipelineOptions options) : options_(std::move(options)) {
  plan_.threads = threads > 0 ? threads : omp_get_max_threads();
  plan_.backend = default_backend().name();
}

void Programs::add(const std::string& name, const std::vector<InputSpec>& inputs,
                   const Traceable& function) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<DecisionRecord> decisions;
  TracedProgram traced = trace(name, inputs, function, &decisions);
  std::map<Name, VariablePtr> variables = variables_;
  for (const auto& [variable, v] : traced.variables) {
    const auto [it, is_new] = variables.emplace(variable, v);
    if (!is_new && it->second != v)
      throw UserError("E0314", "two variables have the name '" + variable.str() + "'")
          .need("distinct names within one set of programs");
  }
  PassContext context;
  context.form = Form::Cast;
  context.choose = chooser();
  context.threads = plan_.threads;
  context.decisions = &decisions;
  std::vector<PassTime> times = compile_pipeline().run(traced.graph, context, options_);
  Lowered lowered = lower_to_plan(traced.graph, context);
  Plan plan = this->plan();
  add_program(plan, std::move(lowered.program), lowered.state);
  // Nothing can fail any more: what refused the function above left everything as it was.
  executor_.reset();  // variables keep their arenas alive until the next finish()
  plan_ = std::move(plan);
  variables_ = std::move(variables);
  graphs_[name] = std::move(traced.graph);
  times_[name] = std::move(times);
  decisions_[name] = std::move(decisions);
  compile_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Programs::finish() {
  const auto start = std::chrono::steady_clock::now();
  std::vector<VariablePtr> variables;
  for (const auto& [name, v] : variables_) variables.push_back(v);
  eager().clear_tape();  // variables move
  executor_ = std::make_unique<Executor>(plan_, default_kernels(), variables);
  compile_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void Programs::run(int program, std::span<const std::int64_t> lengths) {
  executor_->run(program, lengths);
  eager().clear_tape();
}

void Programs::check_output(std::string_view program, std::string_view name,
                            std::size_t bytes) const {
  const Program* p = plan().find(program);
  if (!p) return;
  for (const NamedRef& r : p->outputs)
    if (r.name == name && size_of(r.ref.type.dtype) != bytes)
      throw InternalError("result '" + std::string(name) + "' is read with the wrong element size")
          .saw(r.ref.type.str())
          .need(std::to_string(bytes) + " bytes an element");
}

}  // namespace aloft
