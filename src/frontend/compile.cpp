#include "frontend/compile.h"

#include <algorithm>
#include <atomic>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "frontend/eager.h"
#include "frontend/random.h"
#include "types/bound_watch.h"

namespace aloft {

namespace results {

Named flatten(const Tensor& t) { return {{"result", t}}; }

Named flatten(const StepResult& r) {
  return {{"loss", r.loss_tensor},      {"grad_norm", r.grad_norm}, {"lr", r.learning_rate},
          {"loss_scale", r.loss_scale}, {"finite", r.finite},       {"culprit", r.culprit}};
}

Named flatten(const std::vector<Tensor>& list) {
  Named named;
  for (const Tensor& t : list) named.emplace_back("result" + std::to_string(named.size()), t);
  return named;
}

void restore(const std::vector<Tensor>& flat, Tensor& t) { t = flat[0]; }
void restore(const std::vector<Tensor>& flat, StepResult& r) {
  r = {flat[0], flat[1], flat[2], flat[3], flat[4], flat[5]};
}
void restore(const std::vector<Tensor>& flat, std::vector<Tensor>& list) { list = flat; }

}  // namespace results

void check_compile(const CompileOptions& options) {
  check_programs(options.threads, options.passes);
}

namespace {

// The actual extent of a value's dimension.
std::int64_t extent(const Dim& d, const EagerCell& c) {
  return d.is_constant() ? d.factor : d.factor * c.lengths.at(d.symbol);
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

std::string list_of(const std::vector<InputSpec>& inputs) {
  std::string text;
  for (const InputSpec& i : inputs) text += (text.empty() ? "" : ", ") + i.type.str();
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
    if (rows && *rows != shape[0].factor) return std::nullopt;
    rows = shape[0].factor;
  }
  return rows && *rows >= kLeastBatch ? rows : std::nullopt;
}

std::vector<InputSpec> inputs_of(const std::vector<Tensor>& arguments) {
  std::vector<InputSpec> inputs;
  for (const Tensor& t : arguments) {
    const EagerCell& c = eager().cell(t);
    inputs.push_back({"arg" + std::to_string(inputs.size()), actual_type(c), c.notes.is_wide});
  }
  return inputs;
}

std::vector<InputSpec> with_batch(std::vector<InputSpec> inputs, std::int64_t bound) {
  for (InputSpec& i : inputs)
    if (i.type.shape.rank() > 0) i.type.shape[0] = Dim::symbolic("B", bound);
  return inputs;
}

}  // namespace

bool CompiledCall::Entry::fits(const std::vector<Tensor>& arguments, std::int64_t& rows) const {
  if (inputs.size() != arguments.size()) return false;
  rows = -1;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const EagerCell& c = eager().cell(arguments[i]);
    const TensorType& want = inputs[i].type;
    if (c.type.dtype != want.dtype || c.type.shape.rank() != want.shape.rank()) return false;
    if (c.notes.is_wide != inputs[i].is_wide) return false;
    for (int d = 0; d < want.shape.rank(); ++d) {
      const std::int64_t n = extent(c.type.shape[d], c);
      if (want.shape[d].is_constant()) {
        if (n != want.shape[d].factor) return false;
      } else {
        const std::int64_t bound = want.shape[d].bound, least = whole_only ? bound : kLeastBatch;
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
      if (x.symbol != y.symbol || x.factor != y.factor) return false;
    }
  }
  return true;
}

void check_values(const std::vector<Tensor>& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].is_defined() || !arguments[i].held())
      throw UserError(arguments[i].is_defined() ? "E0304" : "E0302",
                      "argument " + std::to_string(i) + " of a compiled function has no value")
          .saw(arguments[i].is_defined() ? "a tensor of a function that is being traced, or was"
                                         : "an empty tensor handle")
          .need("tensors that from_floats() made or eager code computed");
}

}  // namespace

CompiledCall::CompiledCall(CompileOptions options, Traceable function)
    : options_(std::move(options)), function_(std::move(function)) {}

namespace {
// This thread's number, which no other gets when it has ended, as its std::thread::id.
std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> last = 0;
  thread_local const std::uint64_t mine = ++last;
  return mine;
}
}  // namespace

CompiledCall::~CompiledCall() {
  if (caller_ != this_thread()) return;  // another thread may be reading its results: see below
  try {
    settle_results();
  } catch (const Error&) {
    // No memory for a copy: the results hold the program's, which nobody writes any more.
  }
}

void CompiledCall::settle_results() {
  for (const Tensor& t : results_)
    if (t.held().use_count() > 1) EagerEmitter::settle(t);
}

// What lies in the programs' memory is about to be overwritten. Results of another thread are not
// touched, which may be reading them: they keep that memory, and the programs get another.
void CompiledCall::keep_results() {
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
void CompiledCall::hand_over() {
  if (!has_several_callers_) return;
  settle_results();
  results_.clear();
}

void CompiledCall::finish() {
  try {
    programs_->finish();
  } catch (...) {  // without its arenas none of the programs can run: the next call starts anew
    programs_.reset();
    entries_.clear();
    throw;
  }
  for (Entry& e : entries_) connect(e);
}

void CompiledCall::connect(Entry& entry) {
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

void CompiledCall::add_program(std::string name, std::vector<InputSpec> inputs,
                               const std::shared_ptr<Premises>& premises) {
  std::vector<Draw> draws;
  {
    const PremisesScope scope(premises.get());
    programs_->add(name, inputs, function_, &draws);
  }
  const auto same = [&](const Entry& e) { return e.name == name; };
  std::erase_if(entries_, same);
  entries_.push_back(
      {.name = name, .inputs = std::move(inputs), .draws = std::move(draws), .premises = premises});
  finish();
}

// With the batch as a symbol where that can be; a program for fewer rows is replaced.
void CompiledCall::add(const std::vector<InputSpec>& actual) {
  const auto fresh_name = [&] {
    if (entries_.empty()) return options_.name;
    if (entries_.size() >= kMostPrograms)
      throw UserError("E0315",
                      "a compiled function is called with too many different shapes or modes")
          .saw(list_of(actual) + " after " + std::to_string(entries_.size()) + " others")
          .need("at most " + std::to_string(kMostPrograms) + " programs a function")
          .advice("pad the arguments to a few lengths, or compile one function a shape");
    return options_.name + "." + std::to_string(entries_.size() + 1);
  };
  const auto as_they_are = [&] { add_program(fresh_name(), actual, std::make_shared<Premises>()); };
  const auto rows = options_.partial_batches ? common_rows(actual) : std::nullopt;
  if (rows) {
    const std::vector<InputSpec> inputs = with_batch(actual, *rows);
    const auto other = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) {
      return e.premises->hold() && differ_in_bound(e.inputs, inputs);
    });
    if (other != entries_.end() && other->whole_only) return as_they_are();
    const auto premises = std::make_shared<Premises>();
    try {
      return add_program(other != entries_.end() ? other->name : fresh_name(), inputs, premises);
    } catch (const Error& e) {
      const bool is_of_f = e.exit_code() == ExitCode::Usage || e.exit_code() == ExitCode::Internal;
      if (!is_of_f || e.code() == "E0315") throw;
      if (!programs_) throw;  // finish() refused the variables, whatever the batch
      // f's first dimension is no batch (a kernel may be what refuses it): for these rows alone,
      // from the modes that this attempt found.
      premises->restore();
    }
  }
  as_they_are();
}

// `rows` becomes the batch, where the program has one.
const CompiledCall::Entry& CompiledCall::entry_for(const std::vector<Tensor>& arguments,
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
    add(actual);
  } catch (Error& e) {
    e.add_line("compiling", "'" + options_.name + "' for " + list_of(actual));
    throw;
  }
  last_ = entries_.size() - 1;
  // Also where f itself has left other modes than it found: this call's were those that it found.
  ensure(entries_[last_].fits(arguments, rows), "a program takes the call it was compiled for");
  return entries_[last_];
}

// Its draws count as eager ones do: those before its first update of the random state go on from
// what was drawn already, those behind one begin anew.
void CompiledCall::run(const Entry& entry, std::int64_t rows) {
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

const std::vector<Tensor>& CompiledCall::operator()(const std::vector<Tensor>& arguments) {
  check_values(arguments);
  // What is compiled stays on the device that it was compiled on.
  const DeviceScope on(programs_ ? programs_->device() : current_device());
  has_values_ = false;
  keep_results();  // before anything is written: an argument may be a result of the last call
  std::int64_t rows = 0;
  const Entry& entry = entry_for(arguments, rows);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const EagerCell& c = eager().cell(arguments[i]);
    const std::size_t bytes = actual_bytes(c);
    if (bytes == 0) continue;
    Device& device = programs_->device();
    device.stream().copy(entry.homes[i].buffer().part(0, bytes), c.buffer.part(0, bytes));
  }
  run(entry, rows);
  std::uint64_t youngest = 0;
  for (const Tensor& t : arguments) youngest = std::max(youngest, eager().cell(t).born);
  for (const Entry::Result& r : entry.results) results_.push_back(borrowed(r, rows, youngest));
  rows_ = rows;
  youngest_ = youngest;
  has_values_ = true;
  return results_;
}

void CompiledCall::need_values() const {
  if (!has_values_)
    throw UserError("E0315", "a compiled function has no values to look at yet")
        .need("a call that returned");
}

std::vector<Tap> CompiledCall::taps() const {
  need_values();
  return programs_->taps(entries_[last_].name);
}

std::vector<RefusedTap> CompiledCall::refused_taps() const {
  need_values();
  return programs_->refused_taps(entries_[last_].name);
}

Tensor CompiledCall::borrowed(const Entry::Result& r, std::int64_t rows, std::uint64_t youngest) {
  TensorType type = r.type;
  for (Dim& d : type.shape.dims())
    if (!d.is_constant()) d = d.factor * rows;
  const Tensor t = eager().borrow(type, r.buffer, r.notes.behind, youngest);
  eager().notes(t).is_wide = r.notes.is_wide;
  return {&eager_session(), t.id(), t.held()};
}

Tensor CompiledCall::tap(const std::string& name) const {
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
