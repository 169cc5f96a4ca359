#include "frontend/programs.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/process.h"
#include "base/text.h"
#include "exec/places.h"
#include "frontend/averaged_weights.h"
#include "frontend/call_taps.h"
#include "frontend/eager_emitter.h"
#include "frontend/loop_taps.h"
#include "frontend/plan_cache.h"
#include "frontend/random.h"
#include "frontend/variable_values.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"

namespace aloft {

ChooseKernel chooser(Device& device) {
  return [&kernels = device.kernels()](const CallSpec& call) {
    const PreparedKernel k = kernels.get(call);
    KernelChoice choice;
    choice.refusals = k.refusals;
    if (!k.kernel) return choice;
    choice.kernel = k.kernel->name;
    choice.form = form_by(*k.kernel, call);
    choice.is_view = k.kernel->is_view;
    if (k.kernel->in_place) choice.in_place = k.kernel->in_place(call);
    if (k.prepared) choice.scratch_bytes = k.prepared->scratch_bytes();
    return choice;
  };
}

void check_programs(int threads, const PipelineOptions& options) {
  if (threads < 0 || threads > kMostThreads)
    throw UserError("E0700", "a program cannot run on so many threads")
        .saw(std::to_string(threads))
        .need("a whole number, 0 or more and at most " + std::to_string(kMostThreads))
        .advice("0: as many as the process has");
  compile_pipeline().check(options);
}

Programs::Programs(int threads, PipelineOptions options, std::map<std::string, std::string> choices)
    : device_(current_device()), options_(std::move(options)) {
  plan_.choices = std::move(choices);
  check_programs(threads, options_);
  plan_.threads = threads > 0 ? threads : host_threads().count();
  plan_.backend = device_.name();
}

namespace {

bool has_host_space(const Features& features) {
  return !features.shares_host_memory &&
         std::any_of(features.spaces.begin(), features.spaces.end(),
                     [](const Features::SpaceSize& s) { return s.space == Space::Host; });
}

std::string name_all(const std::vector<Device*>& devices) {
  std::vector<std::string> names;
  for (const Device* d : devices) names.push_back(d->name());
  return join(names, ", ");
}

// The devices besides `first` that keep parts of variables.
std::vector<Device*> peers_of(Device& first, const StateTable& variables) {
  std::vector<Device*> devices = {&first};
  for (const auto& [id, v] : variables.by_id()) {
    const std::vector<Device*>& shards = v->home.shards;
    if (shards.size() < 2) continue;
    if (std::ranges::find(shards, nullptr) != shards.end())
      throw UserError("E0333", "a part of a variable lies on no device")
          .saw("'" + v->name.str() + "' with a null pointer in home.shards")
          .need("a device for each part")
          .advice("home.shards = {&a, &b}, with a the device that the programs run on");
    if (std::set<Device*>(shards.begin(), shards.end()).size() < shards.size())
      throw UserError("E0333", "two parts of a variable lie on one device")
          .saw("'" + v->name.str() + "' on " + name_all(shards))
          .need("another device for each part")
          .advice("home.shards = {&a, &b}, with a the device that the programs run on");
    const std::size_t common = std::min(devices.size(), shards.size());
    if (!std::equal(shards.begin(), shards.begin() + static_cast<std::ptrdiff_t>(common),
                    devices.begin()))
      throw UserError("E0333", "the parts of a variable lie on devices in another order")
          .saw("'" + v->name.str() + "' on " + name_all(shards))
          .need("the device that the programs run on first, then the same for every variable: " +
                name_all(devices));
    for (std::size_t k = common; k < shards.size(); ++k) devices.push_back(shards[k]);
  }
  devices.erase(devices.begin());
  return devices;
}

}  // namespace

void Programs::add(const std::string& name, const std::vector<InputSpec>& inputs,
                   const Traceable& function, std::vector<Draw>* draws, Onlooker* onlooker) {
  const auto start = std::chrono::steady_clock::now();
  const DeviceScope on(device_);
  std::vector<DecisionRecord> decisions;
  StateTable variables = variables_;
  AskedTaps besides;
  if (onlooker) besides = onlooker->asked();
  std::vector<AskedCalls> asked = asked_calls_;
  asked.insert(asked.end(), besides.calls.begin(), besides.calls.end());
  std::vector<std::pair<std::string, ValueId>> seen, loop;
  const CallTaps calls(asked,
                       [&](const nn::Module& module, const std::string& tap, const Tensor& value) {
                         seen.emplace_back(tap, value.id());
                         if (onlooker) onlooker->note_class(module);
                       });
  std::vector<UpdatedBy> updates;
  LoopTaps::Heard heard;  // nobody, where nobody looks on
  if (onlooker)
    heard = [&](LoopWord word, const Tensor& value, const UpdatedBy* by) {
      if (by) updates.push_back(*by);
      loop.emplace_back(loop_tap(loop.size(), word), value.id());
    };
  const LoopTaps hears(heard);
  TracedProgram traced = trace(name, inputs, function, variables, &decisions, draws);
  for (const auto& [tap, value] : loop)
    if (!traced.graph.node(value.node).erased)
      traced.graph.set_output(Name(tap), value, OutputKind::Tap);
  for (const auto& [tap, value] : seen)
    if (!traced.graph.node(value.node).erased && is_float(traced.graph.type(value).dtype))
      traced.graph.set_output(Name(tap), value, OutputKind::Tap);
  for (const std::string& pattern : tap_patterns_) traced.graph.ask_tap(pattern);
  for (const std::string& pattern : besides.patterns) traced.graph.ask_tap(pattern);
  for (const Policy& policy : measured_) traced.graph.measure(policy);
  Compiled compiled = compile_or_find(std::move(traced.graph), besides.patterns);
  decisions.insert(decisions.end(), compiled.program.decisions.begin(),
                   compiled.program.decisions.end());
  Plan plan = this->plan();
  add_program(plan, std::move(compiled.program.lowered.program), compiled.program.lowered.state);
  // Nothing can fail any more: what refused the function above left everything as it was.
  if (onlooker) onlooker->note_updates(*this, name, std::move(updates));
  executor_.reset();  // variables keep their arenas alive until the next finish()
  added_taps_ = tap_patterns_.size();
  plan_ = std::move(plan);
  variables_ = std::move(variables);
  watched_[name].clear();
  for (auto& [output, look] : traced.watches) watched_[name].push_back({output, std::move(look)});
  host_[name] = std::move(traced.host);
  graphs_[name] = std::move(compiled.program.graph);
  output_notes_[name] = std::move(traced.outputs);
  refused_taps_[name] = std::move(compiled.program.refused_taps);
  reads_bound_[name] = traced.reads_bound;
  times_[name] = std::move(compiled.program.passes);
  is_from_cache_[name] = compiled.is_from_cache;
  decisions_[name] = std::move(decisions);
  compile_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Programs::Compiled Programs::compile_or_find(Graph traced,
                                             const std::vector<std::string>& optional_taps) {
  PassContext context;
  context.optional_taps = optional_taps;
  context.form = Form::Cast;
  context.choose = chooser(device_);
  context.capability = device_.features().capability;
  context.threads = plan().threads;
  context.streams = device_.features().streams;
  context.input_homes = loads_ahead_ && device_.features().is_asynchronous ? 2 : 1;
  context.has_host_space = has_host_space(device_.features());
  const auto cache = PlanCache::of_environment();
  const CompileSubject subject{traced,   device_,       plan().threads, context.input_homes,
                               options_, plan().choices};
  const std::string key = cache ? cache_key(subject) : "";
  if (!key.empty())
    if (auto known = cache->find(key); known && is_of(*known, traced, context.choose))
      return {std::move(*known), true};
  CompiledProgram program = compile_graph(std::move(traced), context, options_);
  if (!key.empty()) cache->keep(key, program, context.threads);
  return {std::move(program), false};
}

void Programs::tap(std::string pattern) {
  if (is_finished())
    throw UserError("E0315", "a tap is asked for when the programs have their memory")
        .saw(in_quotes(pattern))
        .need("taps before add() of the programs that they look into");
  tap_patterns_.push_back(std::move(pattern));
}

void Programs::tap(const AskedTaps& asked) {
  for (const std::string& pattern : asked.patterns) tap(pattern);
  asked_calls_.insert(asked_calls_.end(), asked.calls.begin(), asked.calls.end());
}

void Programs::tap_nothing() {
  tap_patterns_.clear();
  added_taps_ = 0;
  asked_calls_.clear();
}

void Programs::finish() {
  if (added_taps_ < tap_patterns_.size())
    throw UserError("E0315", "a tap is asked for behind the last program")
        .saw(in_quotes(tap_patterns_.back()))
        .need("taps before add() of the programs that they look into");
  const auto start = std::chrono::steady_clock::now();
  const DeviceScope on(device_);
  {
    const auto held = hold_places();  // another program may be moving them
    for (const auto& [id, variable] : variables_.by_id())
      if (!variable->buffer) throw has_no_memory(*variable);
  }
  eager().let_go_of_variables();  // they move
  executor_ =
      std::make_unique<Executor>(plan_, device_, variables_.by_id(), peers_of(device_, variables_));
  watched_by_index_.clear();
  host_by_index_.clear();
  written_.clear();
  for (const Program& p : executor_->plan().programs) {
    host_by_index_.push_back(host_[p.name]);
    written_.push_back(written_by(p.name));
    watched_by_index_.push_back(watched_[p.name]);
    for (Watched& w : watched_by_index_.back()) w.at = output<std::int32_t>(p.name, w.output);
  }
  compile_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool Programs::fit_their_variables() const {
  const auto& variables = variables_.by_id();
  return std::all_of(plan().state.begin(), plan().state.end(), [&](const StateSlot& slot) {
    return variables.at(slot.id)->type == slot.type;
  });
}

std::vector<Variable*> Programs::written_by(const std::string& program) const {
  std::vector<Variable*> all;
  for (const StateUpdate& u : graphs_.at(program).updates()) {
    Variable* v = variables_.by_id().at(u.id).get();
    if (v->cls == StateClass::Parameter || v->cls == StateClass::Buffer) all.push_back(v);
  }
  return all;
}

void Programs::run(int program, std::span<const std::int64_t> lengths) {
  const std::exception_ptr of_observer = hand_over(program, lengths);
  settle(program);
  if (of_observer) std::rethrow_exception(of_observer);
}

void Programs::issue(int program, std::span<const std::int64_t> lengths) {
  if (const auto of_observer = hand_over(program, lengths)) std::rethrow_exception(of_observer);
}

void Programs::check_index(int program) const {
  if (program < 0 || program >= static_cast<int>(host_by_index_.size()))
    throw UserError("E0315", "there is no program of this index")
        .saw(std::to_string(program))
        .need("what find() gives, below " + std::to_string(host_by_index_.size()));
}

void Programs::settle(int program) {
  check_index(program);
  for (const Watched& w : watched_by_index_[program]) w.look(w.at.item());
}

std::exception_ptr Programs::hand_over(int program, std::span<const std::int64_t> lengths) {
  Executor& executor = finished();
  check_index(program);
  const DeviceScope on(device_);
  const Executor::Turn turn(executor, program);  // before anything of the variables is touched
  eager().let_go_of_variables();
  HostPart& host = host_by_index_[program];
  for (Variable* v : written_[program]) need_own_value(*v, "a step is made");
  CountedRun counted(host.counts);
  for (Variable* v : written_[program]) ++v->version;
  const std::exception_ptr of_observer =
      executor.run(turn, lengths, device_.observers().list() ? loop_place() : LoopPlace{});
  counted.keep();
  eager().forget_gradients(host.forgotten);
  return of_observer;
}

std::vector<Tap> Programs::taps(const std::string& program) const {
  std::vector<Tap> all;
  const Graph& graph = this->graph(program);
  for (const GraphOutput& o : graph.outputs())
    if (o.kind == OutputKind::Tap) all.push_back({o.name.str(), graph.type(o.value)});
  return all;
}

Executor& Programs::finished() const {
  if (!executor_)
    throw UserError("E0315", "the programs have no memory yet").need("finish(), before they run");
  return *executor_;
}

namespace {
const BufferRef& named(const std::vector<NamedRef>& list, std::string_view name, const char* what) {
  for (const NamedRef& r : list)
    if (r.name == name) return r.ref;
  std::vector<std::string> known;
  for (const NamedRef& r : list) known.push_back(r.name);
  throw UserError("E0315", "the program has no " + std::string(what) + " " + in_quotes(name))
      .need(known.empty() ? "nothing: it has none" : "one of: " + join(known, ", "));
}

void check_element(const BufferRef& ref, const char* what, std::string_view name, auto taken) {
  const DType t = ref.type.dtype;
  if (taken.bytes == 0) return;
  // Two bytes may be the bits of a low float; numbers are what they are.
  const bool is_its_kind = taken.bytes <= 2 || taken.is_float == is_float(t);
  if (size_of(t) == taken.bytes && is_its_kind) return;
  throw UserError("E0323",
                  std::string(what) + " '" + std::string(name) + "' is taken for another type")
      .saw(ref.type.str() + ", taken for " + (taken.is_float ? "floats" : "integers") + " of " +
           std::to_string(taken.bytes) + " bytes")
      .need(std::string(is_float(t) ? "floats" : "integers") + " of " + std::to_string(size_of(t)) +
            " bytes");
}
}  // namespace

std::pair<Buffer, std::size_t> Programs::input_of(std::string_view program, std::string_view name,
                                                  TakenFor taken) const {
  const Program* p = finished().plan().find(program);
  if (!p) refuse_name(std::string(program));
  const BufferRef& ref = named(p->inputs, name, "input");
  check_element(ref, "input", name, taken);
  return {executor_->input_homes(program, name), ref.type.max_bytes()};
}

Buffer Programs::output_of(std::string_view program, std::string_view name, TakenFor taken) const {
  const Program* p = finished().plan().find(program);
  if (!p) refuse_name(std::string(program));
  check_element(named(p->outputs, name, "output"), "result", name, taken);
  return executor_->output(program, name);
}

void Programs::refuse_name(const std::string& program) const {
  std::vector<std::string> known;
  for (const auto& [name, graph] : graphs_) known.push_back(name);
  throw UserError("E0315", "there is no program " + in_quotes(program))
      .need(known.empty() ? "one that was compiled" : "one of: " + join(known, ", "));
}

}  // namespace aloft
