#include "train/redo.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/text.h"
#include "exec/executor.h"
#include "frontend/programs.h"
#include "observe/probe/overflow.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"
#include "train/recorded_run.h"

namespace aloft {

namespace {

using redo::BitWatch;

class Redoing {
 public:
  explicit Redoing(const RedoOptions& options)
      : options_(options),
        run_(std::make_unique<RecordedRun>(options.run, options.step, options.overrides)),
        most_threads_(run_->programs().plan().threads) {}

  RedoReport make() {
    report_.step = options_.step;
    report_.begins_at = report_.stands_at = run_->begins_at();
    report_.is_comparable = run_->is_as_recorded(options_.machine);
    tell();
    run_->go_to_step([&](const StepDone& done) {
      compare(done);
      report_.stands_at = done.step;
      if (done.step < options_.step) tell();
    });
    position_ = run_->position();
    state_ = run_->state();
    {
      const Observing looking(run_->programs().device(), watch_);
      repeat_all();
    }
    host_threads().set_count(most_threads_);
    report_.instructions = watch_.instructions().size();
    report_.tensors = watch_.tensors().size();
    if (!report_.fault) compare_state();
    report_.damaged = run_->damaged();
    report_.is_saved_state_damaged = run_->is_saved_state_damaged();
    return std::move(report_);
  }

 private:
  void tell() const {
    if (options_.told) options_.told(report_);
  }

  void compare(const StepDone& done) {
    if (!run_->has_numbers_of(done.step - 1)) return report_.unrecorded.push_back(done.step - 1);
    ++report_.compared_steps;
    if (report_.parted_at) return;
    report_.numbers = run_->differences(done);
    if (!report_.numbers.empty()) report_.parted_at = done.step - 1;
  }

  StepDone repeat(int threads, bool is_other_memory = false) {
    tell();
    host_threads().set_count(threads);
    run_->set_state(state_);
    watch_.begin();
    report_.repeats.push_back({threads, is_other_memory});
    return run_->make_step();
  }

  // Every second time one thread less, so that others compute what it did.
  void repeat_all() {
    const int in_place = options_.times - (options_.other_memory ? 1 : 0);
    for (int k = 0; k < in_place && !report_.fault; ++k) {
      const StepDone done = repeat(k % 2 == 1 ? std::max(1, most_threads_ - 1) : most_threads_);
      if (k == 0)
        compare(done);
      else
        look_for_fault();
    }
    if (options_.other_memory && !report_.fault) move_to_other_memory();
  }

  // The memory of before is held until the new one is there.
  void move_to_other_memory() {
    std::vector<Buffer> held;
    Executor& executor = run_->programs().executor();
    for (const auto& [arena, bytes] : run_->programs().plan().arena_bytes)
      if (bytes > 0) held.push_back(executor.arena(arena));
    try {
      run_ = nullptr;
      run_ = std::make_unique<RecordedRun>(options_.run, options_.step, options_.overrides);
    } catch (const EnvironmentError& e) {
      if (e.code() != "E0401") throw;
      held.clear();
      report_.no_other_memory = e.headline();
      run_ = std::make_unique<RecordedRun>(options_.run, options_.step, options_.overrides);
      run_->stand_at(state_, position_);
      return;
    }
    run_->stand_at(state_, position_);
    repeat(most_threads_, true);
    look_for_fault();
  }

  void look_for_fault() {
    const auto found = watch_.difference();
    const bool is_other_length = watch_.has_other_length();
    if (!found && !is_other_length) return;
    RedoReport::Fault fault;
    fault.repeat = static_cast<int>(report_.repeats.size());
    fault.is_other_length = is_other_length && !found;
    if (found) describe(*found, fault);
    report_.fault = std::move(fault);
  }

  // One more time, which says who is right.
  void describe(const redo::SeenTensor& found, RedoReport::Fault& fault) {
    const redo::TensorBits& bits =
        watch_.tensors()[std::min(found.at, watch_.tensors().size() - 1)];
    fault.instruction = watch_.instructions()[bits.instruction];
    fault.is_result = bits.is_result;
    fault.number = bits.number;
    fault.type = found.type;
    fault.tensor = name_of_tensor(fault);
    watch_.keep(found.at);
    repeat(report_.repeats.front().threads);
    report_.repeats.pop_back();
    const auto& kept = watch_.kept();
    if (!kept) return;
    const bool is_as_first = !watch_.difference() || watch_.difference()->at > found.at;
    const bool is_as_found = kept->bytes == found.bytes;
    fault.wrong = is_as_found ? 1 : is_as_first ? fault.repeat : 0;
    if (!is_as_found)
      fault.elements = redo::elements_that_differ(found.type, kept->bytes, found.bytes);
  }

  std::string name_of_tensor(const RedoReport::Fault& fault) const {
    const Program* program = run_->programs().plan().find(fault.instruction.program);
    const Instruction& i =
        program->instructions[static_cast<std::size_t>(fault.instruction.number)];
    const auto n = static_cast<std::size_t>(fault.number);
    const BufferRef& ref = fault.is_result ? i.out[n] : i.in[n];
    const PlannedBuffer& buffer = program->buffers[static_cast<std::size_t>(ref.buffer)];
    const StateSlot* slot = run_->programs().plan().variable_in(buffer);
    return slot ? slot->name.str() : buffer.name;
  }

  // What the step left, beside what the run saved behind it.
  void compare_state() {
    const StateBytes now = run_->state();
    const auto saved = run_->saved_state();
    if (!saved) return;
    report_.is_state_compared = true;
    const auto& slots = run_->programs().plan().state;
    for (std::size_t s = 0; s < slots.size(); ++s) {
      const bool is_kept =
          slots[s].cls == StateClass::Parameter || slots[s].cls == StateClass::Optimizer;
      if (is_kept && now[s] != (*saved)[s]) report_.variables.push_back(slots[s].name.str());
    }
  }

  const RedoOptions& options_;
  std::unique_ptr<RecordedRun> run_;
  int most_threads_;
  BitWatch watch_;
  RedoReport report_;
  StateBytes state_;
  std::uint64_t position_ = 0;
};

std::string words(const RedoReport::Repeat& r) {
  const std::string threads = counted(r.threads, "thread");
  return r.is_other_memory ? threads + " in other memory" : threads;
}

std::string text_of(const RedoReport::Fault& f) {
  if (f.is_other_length)
    return fmt::format("repeat {} ran other instructions than the first", f.repeat);
  const redo::WatchedInstruction& i = f.instruction;
  std::string text =
      fmt::format("the first difference: instruction {} of {}, {} ({}, {}, {}): ", i.number,
                  i.program, i.identity, i.op, i.kernel, name_of(i.phase));
  text += f.is_result ? fmt::format(
                            "its result {} ({}, {}) has other bits, of operands that had the same: "
                            "it was computed otherwise",
                            f.number, f.tensor, f.type.str())
                      : fmt::format(
                            "its operand {} ({}, {}) has other bits, though whatever wrote it left "
                            "the same: it changed in memory",
                            f.number, f.tensor, f.type.str());
  const redo::ElementDifference& e = f.elements;
  if (e.differing > 0) {
    std::vector<std::string> index, bits;
    for (const std::int64_t at : e.index) index.push_back(std::to_string(at));
    for (const int bit : e.bits) bits.push_back(std::to_string(bit));
    text += fmt::format("\n  {} of {} elements; the first, [{}], is {} instead of {} (bit{} {})",
                        e.differing, e.elements, join(index, ", "), e.other, e.value,
                        bits.size() == 1 ? "" : "s", join(bits, ", "));
  }
  text += f.wrong > 0 ? fmt::format("\n  repeat {} is wrong: two others agree", f.wrong)
                      : "\n  three repeats have three results: which is right is not known";
  return text;
}

std::string state_text(const RedoReport& r) {
  if (r.is_saved_state_damaged)
    return "the state behind it is compared with none: the run's checkpoint is damaged";
  if (!r.is_state_compared) return "";
  if (r.variables.empty()) return "the state behind it is that of the run's checkpoint, to the bit";
  return "the state behind it is not that of the run's checkpoint: " + join(r.variables, ", ");
}

std::string recorded_text(const RedoReport& r) {
  std::string text =
      r.parted_at ? fmt::format("{} has other numbers than the run recorded: {}",
                                probe::step_text(*r.parted_at), join(r.numbers, "; "))
                  : counted(r.compared_steps, "step") + ": the numbers that the run recorded";
  if (!r.unrecorded.empty())
    text += fmt::format(
        "; metrics.jsonl has no whole line of {}step {} (\"step\": {}), so that nothing is said of "
        "{}",
        r.unrecorded.size() > 1 ? fmt::format("{} steps, first ", r.unrecorded.size()) : "",
        r.unrecorded.front(), r.unrecorded.front() + 1, r.unrecorded.size() > 1 ? "them" : "it");
  if (const std::string state = state_text(r); !state.empty())
    text += (r.parted_at ? fmt::format("\n{}: ", probe::step_text(r.step)) : "; ") + state;
  if (!r.is_comparable && (r.parted_at || !r.variables.empty()))
    text +=
        "\n  the run was made by another program or on another machine, whose rounding may "
        "be another: this says nothing of a fault";
  return text;
}

}  // namespace

RedoReport redo_step(const RedoOptions& options) {
  ensure(options.times >= 2, "a step is compared with itself");
  return Redoing(options).make();
}

std::string redo_text(const RedoReport& r) {
  std::vector<std::string> how;
  for (const RedoReport::Repeat& repeat : r.repeats) how.push_back(words(repeat));
  std::string text =
      fmt::format("{}, from the state behind {} steps, {} times ({})\n", probe::step_text(r.step),
                  r.begins_at, r.repeats.size(), join(how, ", "));
  if (!r.no_other_memory.empty()) text += "not in other memory: " + r.no_other_memory + "\n";
  text += r.fault ? text_of(*r.fault)
                  : fmt::format("{} instructions, {} tensors: the same bits each time",
                                r.instructions, r.tensors);
  text += "\n" + recorded_text(r) + "\n";
  for (const std::string& problem : r.damaged) text += "passed over: " + problem + "\n";
  return text;
}

nlohmann::ordered_json json_of(const RedoReport& r) {
  using Json = nlohmann::ordered_json;
  Json repeats = Json::array(), fault = nullptr;
  for (const RedoReport::Repeat& repeat : r.repeats)
    repeats.push_back({{"threads", repeat.threads}, {"other_memory", repeat.is_other_memory}});
  if (r.fault) {
    const RedoReport::Fault& f = *r.fault;
    const redo::WatchedInstruction& i = f.instruction;
    fault = {{"repeat", f.repeat},
             {"wrong_repeat", f.wrong > 0 ? Json(f.wrong) : Json(nullptr)},
             {"program", i.program},
             {"instruction", i.number},
             {"name", i.identity},
             {"op", i.op},
             {"kernel", i.kernel},
             {"module", i.path},
             {"phase", name_of(i.phase)},
             {"where", f.is_result ? "result" : "operand"},
             {"number", f.number},
             {"tensor", f.tensor},
             {"type", f.type.str()},
             {"elements", f.elements.elements},
             {"differing", f.elements.differing},
             {"index", f.elements.index},
             {"right", f.elements.value},
             {"wrong", f.elements.other},
             {"bits", f.elements.bits}};
  }
  Json recorded = {{"comparable", r.is_comparable},
                   {"steps", r.compared_steps},
                   {"unrecorded", r.unrecorded},
                   {"parted_at", r.parted_at ? Json(*r.parted_at) : Json(nullptr)},
                   {"numbers", r.numbers},
                   {"state_compared", r.is_state_compared},
                   {"variables", r.variables},
                   {"damaged", r.damaged}};
  return {{"step", r.step},
          {"begins_at", r.begins_at},
          {"repeats", std::move(repeats)},
          {"instructions", r.instructions},
          {"tensors", r.tensors},
          {"no_other_memory", r.no_other_memory},
          {"fault", std::move(fault)},
          {"recorded", std::move(recorded)}};
}

}  // namespace aloft
