#include "frontend/call_programs.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/eager_emitter.h"
#include "frontend/onlooker.h"
#include "frontend/random.h"
#include "runtime/current_device.h"
#include "types/bound_watch.h"

namespace aloft {

namespace {

// The actual extent of a value's dimension.
std::int64_t extent(const Dim& d, const EagerCell& c) {
  return d.is_constant() ? d.max() : d.times() * c.lengths.at(d.symbol());
}

TensorType actual_type(const EagerCell& c) {
  TensorType type = c.type;
  for (Dim& d : type.shape.dims()) d = extent(d, c);
  return type;
}

std::size_t actual_bytes(const EagerCell& c) {
  std::size_t bytes = size_of(c.type.dtype);
  for (const Dim& d : c.type.shape) bytes *= static_cast<std::size_t>(extent(d, c));
  return bytes;
}

// What the call has: tensors by type, and whatever else a program depends on.
std::vector<CallFact> facts_of(const CallArguments& arguments,
                               const std::vector<InputSpec>& inputs) {
  std::vector<CallFact> facts;
  auto input = inputs.begin();
  for (nested::Place& p : arguments.places()) {
    const std::string value = p.is_tensor ? (input++)->type.str() : std::move(p.text);
    facts.push_back({std::move(p.path), value, p.is_tensor});
  }
  return facts;
}

// "argument 0: f32[8,3]; argument 1, [0].mask: f32[8]".
std::string list_of(const std::vector<CallFact>& facts) {
  std::string text;
  for (const CallFact& f : facts) text += (text.empty() ? "" : "; ") + f.place + ": " + f.value;
  return text;
}

// The rows that all arguments of rank 1 and more agree on, if one program can take them for a
// batch: a single row may be broadcast and has no variance, and no rows have no mean, so that f may
// mean something else by them.
std::optional<std::int64_t> common_rows(const std::vector<InputSpec>& inputs) {
  std::optional<std::int64_t> rows;
  for (const InputSpec& i : inputs) {
    const Shape& shape = i.type.shape;
    if (shape.rank() == 0) continue;
    if (rows && *rows != shape[0].max()) return std::nullopt;
    rows = shape[0].max();
  }
  return rows && *rows >= kLeastBatch ? rows : std::nullopt;
}

std::vector<InputSpec> inputs_of(const CallArguments& arguments) {
  std::vector<nested::Place> places = arguments.places();
  std::erase_if(places, [](const nested::Place& p) { return !p.is_tensor; });
  std::vector<InputSpec> inputs;
  for (const Tensor& t : arguments.tensors()) {
    const EagerCell& c = eager().cell(t);
    const std::size_t i = inputs.size();
    inputs.push_back(
        {"arg" + std::to_string(i), actual_type(c), c.notes.is_wide, std::move(places[i].path)});
  }
  return inputs;
}

std::vector<InputSpec> with_batch(std::vector<InputSpec> inputs, std::int64_t bound) {
  for (InputSpec& i : inputs)
    if (i.type.shape.rank() > 0) i.type.shape[0] = Dim::symbolic("B", bound);
  return inputs;
}

}  // namespace

std::uint64_t CallPrograms::Entry::number_of_onlooker() {
  const Onlooker* here = current_onlooker();
  return here ? here->number() : 0;
}

bool CallPrograms::Entry::fits(const CallArguments& call, std::int64_t& rows) const {
  const std::vector<Tensor>& arguments = call.tensors();
  if (kind != call.kind() || inputs.size() != arguments.size() || fixed != call.fixed())
    return false;
  rows = -1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const EagerCell& c = eager().cell(arguments[i]);
    const TensorType& want = inputs[i].type;
    if (c.type.dtype != want.dtype || c.type.shape.rank() != want.shape.rank()) return false;
    if (c.notes.is_wide != inputs[i].is_wide) return false;
    for (int d = 0; d < want.shape.rank(); ++d) {
      const std::int64_t n = extent(c.type.shape[d], c);
      if (want.shape[d].is_constant()) {
        if (n != want.shape[d].max()) return false;
      } else {
        const std::int64_t bound = want.shape[d].bound(), least = whole_only ? bound : kLeastBatch;
        if (n < least || n > bound || (rows >= 0 && n != rows)) return false;
        rows = n;
      }
    }
  }
  return true;
}

namespace {

// Whether two programs' inputs differ in nothing but the bound of their batch.
bool differ_in_bound(const std::vector<InputSpec>& a, const std::vector<InputSpec>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].type.dtype != b[i].type.dtype || a[i].type.shape.rank() != b[i].type.shape.rank() ||
        a[i].is_wide != b[i].is_wide)
      return false;
    for (int d = 0; d < a[i].type.shape.rank(); ++d) {
      const Dim &x = a[i].type.shape[d], &y = b[i].type.shape[d];
      if (x.symbol() != y.symbol() || x.times() != y.times() ||
          (x.is_constant() && x.max() != y.max()))
        return false;
    }
  }
  return true;
}

void check_values(const CallArguments& call) {
  const std::vector<Tensor>& arguments = call.tensors();
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].is_defined() && arguments[i].held()) continue;
    std::vector<nested::Place> places = call.places();
    std::erase_if(places, [](const nested::Place& p) { return !p.is_tensor; });
    const bool is_traced = arguments[i].is_defined();
    UserError e(is_traced ? "E0304" : "E0302",
                places.at(i).path + " of a compiled function has no value");
    e.add_line("saw", is_traced ? "a tensor of a function that is being traced, or was"
                                : "an empty tensor handle");
    e.add_line("need", "tensors that from_floats() made or eager code computed");
    if (!is_traced) e.add_line("try", "std::optional<Tensor>, for what may be left out");
    throw e;
  }
}

}  // namespace

CallPrograms::CallPrograms(CompileOptions options, SourceLocation place)
    : options_(std::move(options)), retraces_(options_.name, place) {}

namespace {
// This thread's number, which no other gets when it has ended, as its std::thread::id.
std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> last = 0;
  thread_local const std::uint64_t mine = ++last;
  return mine;
}
}  // namespace

CallPrograms::~CallPrograms() {
  if (caller_ != this_thread()) return;  // another thread may be reading its results: see below
  try {
    settle_results();
  } catch (const Error&) {
    // No memory for a copy: the results hold the program's, which nobody writes any more.
  }
}

void CallPrograms::settle_results() {
  for (const Tensor& t : results_)
    if (t.held().use_count() > 1) EagerEmitter::settle(t);
}

// What lies in the programs' memory is about to be overwritten. Results of another thread are not
// touched, which may be reading them: they keep that memory, and the programs get another.
void CallPrograms::keep_results() {
  const std::uint64_t thread = this_thread();
  if (caller_ == thread) {
    settle_results();
  } else {
    has_several_callers_ = caller_ != 0;
    const bool are_held = std::any_of(results_.begin(), results_.end(),
                                      [](const Tensor& t) { return t.held().use_count() > 1; });
    if (are_held && programs_) finish();
    caller_ = thread;
  }
  results_.clear();  // the last holder of each: what other threads did with it is done
}

// Of several threads, one may read while another calls: its results are no part of the program.
void CallPrograms::hand_over() {
  if (!has_several_callers_) return;
  settle_results();
  results_.clear();
}

void CallPrograms::finish() {
  try {
    programs_->finish();
  } catch (...) {  // without its arenas none of the programs can run: the next call starts anew
    programs_.reset();
    entries_.clear();
    throw;
  }
  for (Entry& e : entries_) connect(e);
}

void CallPrograms::connect(Entry& entry) {
  const Program& p = *programs_->plan().find(entry.name);
  Executor& executor = programs_->executor();
  entry.program = programs_->find(entry.name);
  entry.has_length = !p.symbols.empty();
  entry.whole_only = executor.is_cut_by_bound(entry.program) || programs_->reads_bound(entry.name);
  entry.homes.clear();
  for (const InputSpec& i : entry.inputs)
    entry.homes.push_back(programs_->input<std::byte>(entry.name, i.name));
  entry.draw_states.clear();
  for (const Draw& d : entry.draws) {
    auto& state = entry.draw_states.emplace_back();
    if (!d.input.empty()) state = programs_->input<std::int64_t>(entry.name, d.input);
  }
  entry.results.clear();
  entry.taps.clear();
  for (const NamedRef& r : p.outputs) {
    Entry::Result result{r.ref.type, executor.output(entry.name, r.name), {}};
    if (r.is_tap) {
      if (is_float(r.ref.type.dtype)) result.notes.behind = Lost::Parameters;
      entry.taps.emplace(r.name, std::move(result));
    } else {
      result.notes = programs_->output_notes(entry.name, r.name);
      entry.results.push_back(std::move(result));
    }
  }
}

void CallPrograms::add_program(std::string name, std::vector<InputSpec> inputs,
                               const CallArguments& arguments,
                               const std::shared_ptr<Premises>& premises) {
  std::vector<Draw> draws;
  std::shared_ptr<const void> like;
  {
    const PremisesScope scope(premises.get());
    const auto trace = [&](const std::vector<Tensor>& traced) {
      return arguments.trace(traced, like);
    };
    programs_->add(name, inputs, trace, &draws, current_onlooker());
  }
  const auto same = [&](const Entry& e) { return e.name == name; };
  std::erase_if(entries_, same);
  entries_.push_back({.name = name,
                      .inputs = std::move(inputs),
                      .fixed = arguments.fixed(),
                      .kind = arguments.kind(),
                      .like = std::move(like),
                      .draws = std::move(draws),
                      .premises = premises,
                      .onlooker = Entry::number_of_onlooker()});
  finish();
}

// Where there are as many as are kept, the one that was used longest ago is replaced.
std::string CallPrograms::name_for_another() const {
  if (entries_.empty()) return options_.name;
  if (entries_.size() < CompiledCall::kMostPrograms)
    return options_.name + "." + std::to_string(entries_.size() + 1);
  const auto is_older = [](const Entry& a, const Entry& b) { return a.used < b.used; };
  return std::min_element(entries_.begin(), entries_.end(), is_older)->name;
}

// With the batch as a symbol where that can be; a program for fewer rows is replaced.
void CallPrograms::add(const CallArguments& arguments, const std::vector<InputSpec>& actual) {
  const auto as_they_are = [&] {
    add_program(name_for_another(), actual, arguments, std::make_shared<Premises>());
  };
  const auto rows = options_.partial_batches ? common_rows(actual) : std::nullopt;
  if (!rows) return as_they_are();
  const std::int64_t bound = std::max(*rows, options_.most_rows);
  const std::vector<InputSpec> inputs = with_batch(actual, bound);
  const auto other = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
    return e.kind == arguments.kind() && e.fixed == arguments.fixed() && e.premises->hold() &&
           e.onlooker == Entry::number_of_onlooker() && differ_in_bound(e.inputs, inputs);
  });
  if (other != entries_.end() && other->whole_only) return as_they_are();
  const auto premises = std::make_shared<Premises>();
  try {
    add_program(other != entries_.end() ? other->name : name_for_another(), inputs, arguments,
                premises);
    // With more rows than these declared, it may have turned out to serve whole batches alone.
    if (*rows == bound || !entries_.back().whole_only) return;
  } catch (const Error& e) {
    const bool is_of_f = e.exit_code() == ExitCode::Usage || e.exit_code() == ExitCode::Internal;
    if (!is_of_f) throw;
    if (!programs_) throw;  // finish() refused the variables, whatever the batch
    // f's first dimension is no batch; a kernel may be what refuses it.
  }
  // For these rows alone, from the modes that this attempt found.
  premises->restore();
  as_they_are();
}

// `rows` becomes the batch, where the program has one.
const CallPrograms::Entry& CallPrograms::entry_for(const CallArguments& arguments,
                                                   std::int64_t& rows) {
  if (last_ < entries_.size() && entries_[last_].takes(arguments, rows)) return entries_[last_];
  for (last_ = 0; last_ < entries_.size(); ++last_)
    if (entries_[last_].takes(arguments, rows)) return entries_[last_];
  if (programs_ && !programs_->fit_their_variables()) {  // none of them will hold again
    programs_.reset();
    entries_.clear();
  }
  if (!programs_) {
    programs_ = std::make_unique<Programs>(options_.threads, options_.passes);
    for (const std::string& pattern : options_.taps) programs_->tap(pattern);
  }
  const std::vector<InputSpec> actual = inputs_of(arguments);
  try {
    add(arguments, actual);
  } catch (Error& e) {
    e.add_line("compiling", "'" + options_.name + "' for " + list_of(facts_of(arguments, actual)));
    throw;
  }
  if (const std::string told = retraces_.add(facts_of(arguments, actual)); !told.empty())
    log_warning("{}", told);
  last_ = entries_.size() - 1;
  // Also where f itself has left other modes than it found: this call's were those that it found.
  ensure(entries_[last_].fits(arguments, rows), "a program takes the call it was compiled for");
  return entries_[last_];
}

// Its draws count as eager ones do: those before its first update of the random state go on from
// what was drawn already, those behind one begin anew.
void CallPrograms::run(const Entry& entry, std::int64_t rows) {
  const std::span<const std::int64_t> lengths(&rows, entry.has_length ? 1 : 0);
  if (entry.draws.empty()) return programs_->run(entry.program, lengths);
  const DrawCounts& before = eager().draws();
  for (std::size_t i = 0; i < entry.draws.size(); ++i) {
    const Draw& d = entry.draws[i];
    if (!entry.draw_states[i]) continue;
    const auto at = before.empty() ? before.end() : before.find({d.where.path, d.op});
    entry.draw_states[i]->set(draw_state(d, at == before.end() ? 0 : at->second));
  }
  const std::int64_t step = random_position();
  programs_->run(entry.program, lengths);
  const bool has_advanced = random_position() != step;
  DrawCounts& now = eager().draws();
  for (const Draw& d : entry.draws)
    if (has_advanced ? !d.before_update : !d.behind_update) ++now[{d.where.path, d.op}];
}

const std::vector<Tensor>& CallPrograms::operator()(const CallArguments& call) {
  check_values(call);
  const std::vector<Tensor>& arguments = call.tensors();
  // What is compiled stays on the device that it was compiled on.
  const DeviceScope on(programs_ ? programs_->device() : current_device());
  has_values_ = false;
  keep_results();  // before anything is written: an argument may be a result of the last call
  std::int64_t rows = 0;
  const Entry& entry = entry_for(call, rows);
  entries_[last_].used = ++calls_;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const EagerCell& c = eager().cell(arguments[i]);
    const std::size_t bytes = actual_bytes(c);
    if (bytes == 0) continue;
    Device& device = programs_->device();
    device.stream().copy(entry.homes[i].buffer().part(0, bytes), c.buffer.part(0, bytes));
  }
  run(entry, rows);
  if (entry.onlooker != 0) current_onlooker()->ran(*programs_, entry.name);
  std::uint64_t youngest = 0;
  for (const Tensor& t : arguments) youngest = std::max(youngest, eager().cell(t).born);
  for (const Entry::Result& r : entry.results) results_.push_back(borrowed(r, rows, youngest));
  rows_ = rows;
  youngest_ = youngest;
  has_values_ = true;
  return results_;
}

void CallPrograms::need_values() const {
  if (!has_values_)
    throw UserError("E0315", "a compiled function has no values to look at yet")
        .need("a call that returned");
}

std::vector<Tap> CallPrograms::taps() const {
  need_values();
  return programs_->taps(entries_[last_].name);
}

std::vector<RefusedTap> CallPrograms::refused_taps() const {
  need_values();
  return programs_->refused_taps(entries_[last_].name);
}

Tensor CallPrograms::borrowed(const Entry::Result& r, std::int64_t rows, std::uint64_t youngest) {
  TensorType type = r.type;
  for (Dim& d : type.shape.dims())
    if (!d.is_constant()) d = d.times() * rows;
  const Tensor t = eager().borrow(type, r.buffer, r.notes.behind, youngest);
  eager().notes(t).is_wide = r.notes.is_wide;
  return {&eager_session(), t.id(), t.held()};
}

Tensor CallPrograms::tap(const std::string& name) const {
  std::vector<std::string> known;
  for (const Tap& t : taps()) known.push_back(t.name);
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw UserError("E0327", "the compiled function has no tap " + in_quotes(name))
        .need(known.empty() ? "a pattern in CompileOptions::taps" : "one of: " + join(known, ", "));
  const Tensor t = borrowed(entries_[last_].taps.at(name), rows_, youngest_);
  EagerEmitter::settle(t);
  return t;
}

}  // namespace aloft
