// What looks on while a run trains: a progress line, a record, a rule that ends it. Whoever wants
// to look on writes a class with the handlers that it needs, and gives it to
// TrainOptions::listeners:
//
//   struct Watch : Listener {
//     void step_done(const StepDone& e, Control& run) override {
//       if (e.loss < 1.5) run.stop("the loss is below 1.5");
//     }
//   };
//
// The program in examples/csv_log.cpp shows it whole; docs/listeners.md is the page.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "run/events.h"

namespace aloft {

// What a handler may ask of the run.
class Control {
 public:
  // No further step is issued. What is due at the step in hand is done; then the run ends as at its
  // last step: it is evaluated, saved and finished, and run.json names the reason. Of several
  // wishes the first one counts. `reason` and `advice`: of Stop.
  void stop(std::string reason, std::string advice = "") {
    if (reason.empty()) reason = "a listener asks for it";
    if (!stop_) stop_ = Stop{std::move(reason), std::move(advice)};
  }
  // A checkpoint of the state behind the step in hand, before its StepSettled; from there on, of
  // the next step.
  void save() { save_ = true; }

  // The wish that was said first; nothing where there was none.
  const std::optional<Stop>& stop_wish() const { return stop_; }
  // Whether a checkpoint was asked for since the last call.
  bool take_save_wish() { return std::exchange(save_, false); }

 private:
  std::optional<Stop> stop_;
  bool save_ = false;
};

// Handlers are called in the thread that trains, each between two things that the run does; they
// see a run and change no bit of it. One that throws ends the run with that error: what is healthy
// is saved first, and the listener hears of nothing but RunEnded any more. An error in run_begun
// refuses the run: nothing was trained, no other event follows. One in run_closing or run_ended
// unmakes nothing: the run stands as it is saved, and run_training() throws it at the end (a
// DataError is said, and no more).
class Listener {
 public:
  virtual ~Listener() = default;
  // What it makes, in messages: "the report cannot be made".
  virtual std::string makes() const { return "what a listener adds"; }

  // Of a run that goes on, before anything is made: whether it is over by a rule of this listener,
  // and whether something is missing that this listener makes at a run's end. A run that has ended,
  // lacks nothing and is over still has nothing to do.
  virtual std::optional<Stop> over_at(const Standing&) const { return std::nullopt; }
  virtual bool lacks_at(const Standing&) const { return false; }

  // One handler an event: events.h says what each means and what it carries. A stop() in run_begun
  // ends the run before its first step.
  virtual void run_begun(const RunBegun&, Control&) {}
  virtual void step_begun(const StepBegun&) {}
  virtual void step_done(const StepDone&, Control&) {}
  virtual void step_skipped(const StepSkipped&, Control&) {}
  virtual void trends_seen(const TrendsSeen&, Control&) {}
  virtual void rolled_back(const RolledBack&) {}
  virtual void epoch_done(const EpochDone&, Control&) {}
  virtual void evaluation_begun(const EvaluationBegun&) {}
  virtual void evaluation_done(const EvaluationDone&, Control&) {}
  virtual void checkpoint_begun(const CheckpointBegun&) {}
  virtual void checkpoint_saved(const CheckpointSaved&) {}
  virtual void step_settled(const StepSettled&, Control&) {}
  virtual void steps_over(const StepsOver&) {}
  virtual void diverged(const Diverged&) {}
  virtual void run_closing(const RunClosing&) {}
  virtual void run_ended(const RunEnded&) {}
};

}  // namespace aloft
