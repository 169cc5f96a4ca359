#include "observe/profile/recorder.h"

#include <algorithm>

#include "observe/redo/bit_watch.h"
#include "runtime/device.h"
#include "scalar/median.h"

namespace aloft::profile {

Recorder::Recorder(WorkOf work, SourceOf source)
    : work_(std::move(work)), source_(std::move(source)) {}

void Recorder::begin_step(std::int64_t step) {
  step_ = step;
  thread_ = std::this_thread::get_id();
}

void Recorder::program_begins(const ProgramEvent& e) {
  if (std::this_thread::get_id() != thread_) return;
  const auto it = programs_.find(e.program);
  Known& known = it == programs_.end() ? programs_[std::string(e.program)] : it->second;
  if (!std::ranges::equal(known.lengths, e.lengths)) {
    known.calls.clear();
    known.lengths.assign(e.lengths.begin(), e.lengths.end());
  }
  running_ = &known;
}

std::size_t Recorder::add(const OpEvent& e) {
  Call call{.program = std::string(e.program),
            .instruction = e.instruction,
            .op = e.call.op.str(),
            .kernel = std::string(e.kernel),
            .name = std::string(e.identity),
            .path = std::string(e.path),
            .phase = e.phase,
            .stream = e.stream,
            .work = work_(e)};
  if (source_ && e.instruction >= 0) call.source = source_(e.program, e.instruction);
  const std::vector<Name> symbols = e.call.symbols();
  const auto add_types = [&](std::vector<std::string>& to, const std::vector<TensorType>& types) {
    for (const TensorType& t : types) to.push_back(redo::bound_type(t, symbols, e.lengths).str());
  };
  add_types(call.in, e.call.in);
  add_types(call.out, e.call.out);
  calls_.push_back(std::move(call));
  return calls_.size() - 1;
}

std::size_t Recorder::call_of(const OpEvent& e) {
  if (e.instruction < 0 || !running_) return add(e);
  const auto i = static_cast<std::size_t>(e.instruction);
  if (running_->calls.size() <= i) running_->calls.resize(i + 1, kNone);
  if (running_->calls[i] == kNone) running_->calls[i] = add(e);
  return running_->calls[i];
}

void Recorder::after(const OpEvent& e) {
  if (std::this_thread::get_id() != thread_) return;
  times_.push_back({call_of(e), step_, e.at.micro_batch, 0, 0});
  waiting_.push_back({e.begin, e.end});
}

void Recorder::end_step() {
  std::size_t at = times_.size() - waiting_.size();
  for (const Waiting& w : waiting_) {
    times_[at].begin = w.begin.seconds();
    times_[at].end = w.end.seconds();
    ++at;
  }
  waiting_.clear();
}

void Recorder::drop_step() {
  times_.resize(times_.size() - waiting_.size());
  waiting_.clear();
}

double timer_seconds(Device& device) {
  constexpr int kRounds = 201;
  std::vector<double> seconds;
  for (int i = 0; i < kRounds; ++i) {
    const Event begin = device.stream().record();
    const Event end = device.stream().record();
    seconds.push_back(end.seconds() - begin.seconds());
  }
  return scalar::upper_median(seconds);
}

}  // namespace aloft::profile
