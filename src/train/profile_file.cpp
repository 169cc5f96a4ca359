#include "train/profile_file.h"

#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/programs.h"
#include "plan/plan.h"
#include "runtime/current_device.h"
#include "runtime/threads.h"
#include "scalar/median.h"
#include "train/work_of_call.h"

namespace aloft {

ProfileFile::ProfileFile(const Session& session, const std::unique_ptr<Runner>& runner,
                         std::function<profile::Rates()> rates, std::string& text)
    : session_(session),
      runner_(runner),
      rates_(std::move(rates)),
      text_(text),
      recorder_(work_of_call, [this](std::string_view program, int instruction) {
        return source_of(program, instruction);
      }) {}

// An eager step has programs as well where an op is one; they are not the runner's.
profile::Source ProfileFile::source_of(std::string_view program, int instruction) const {
  const Programs* programs = runner_->programs();
  const Program* found = programs ? programs->plan().find(program) : nullptr;
  if (!found) return {};
  const Instruction& ins = found->instructions.at(static_cast<std::size_t>(instruction));
  return {ins.file, ins.line};
}

bool ProfileFile::is_timed(std::int64_t made) const {
  const ProfileSection& p = session_.recipe.profile;
  return made >= p.start && made < p.start + p.steps;
}

void ProfileFile::run_begun(const RunBegun& e, Control&) {
  path_ = e.folder / "profile.json";
  timer_s_ = profile::timer_seconds(current_device());
}

void ProfileFile::step_begun(const StepBegun& e) {
  if (is_timed(made_)) {
    recorder_.begin_step(e.step);
    looking_.emplace(current_device(), recorder_);
  }
  begun_s_ = monotonic_seconds();
}

void ProfileFile::step_done(const StepDone&, Control&) {
  const double seconds = monotonic_seconds() - begun_s_;
  if (looking_) {
    looking_.reset();
    recorder_.end_step();
    timed_s_.push_back(seconds);
  } else if (made_ > 0 && timed_s_.empty()) {  // the first step of a process is another one
    plain_s_.push_back(seconds);
  }
  ++made_;
  if (!timed_s_.empty() && !is_written_ && !is_timed(made_)) write();
}

void ProfileFile::write() {
  summary_ = profile::summary_of(recorder_, summary_.rates);
  summary_.device = current_device().name();
  summary_.threads = host_threads().count();
  summary_.timer_seconds = timer_s_;
  summary_.host_step_seconds = scalar::upper_median(timed_s_);
  summary_.plain_step_seconds = scalar::upper_median(plain_s_);
  write_file_atomic(path_, profile::trace_text(recorder_, summary_));
  is_written_ = true;
}

void ProfileFile::steps_over(const StepsOver&) {
  looking_.reset();
  const ProfileSection& p = session_.recipe.profile;
  if (timed_s_.empty())
    log_warning("no step was timed: profile.start is {}, and the run has made {}", p.start,
                counted(made_, "step"));
  else if (!is_written_)
    write();
}

// The device is measured when the run needs it no longer, nor the memory.
void ProfileFile::run_closing(const RunClosing& e) {
  if (!is_written_) return;
  if (rates_ && !e.error) summary_.rates = rates_();
  write();
  text_ = profile::text_of(summary_);
}

}  // namespace aloft
