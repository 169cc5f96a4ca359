// A run that is made once more, up to one of its steps, from what its directory holds. Nothing is
// written there, and nothing of it is locked: it may still be training.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/checkpoint_folder.h"
#include "recipe/recipe.h"
#include "run/events.h"
#include "train/run_start.h"
#include "train/session.h"

namespace aloft {

// What programs of a training keep from one run to the next, by the order of their Plan's slots.
using StateBytes = std::vector<std::vector<std::byte>>;

// UserError E0862 where no run's directory is named: with one that is near.
void need_recorded_run(const Path& run);

class RecordedRun {
 public:
  // The run in `run`, which made the step number `step`, from 0 on; `overrides` beat its recipe:
  // what they change must leave the state's variables as they are. It stands where the newest
  // whole checkpoint at or before the step does, or else at the run's beginning; `first`: at or
  // before that step, which is an earlier one. Steps that were eager are made by compiled programs,
  // which give their bits. UserError E0862: the run has not made that step, or it cannot be made as
  // it was; the errors of begin_run() and load_checkpoint().
  RecordedRun(const Path& run, std::int64_t step, const std::vector<Override>& overrides = {},
              std::optional<std::int64_t> first = std::nullopt);
  ~RecordedRun();
  RecordedRun(const RecordedRun&) = delete;
  RecordedRun& operator=(const RecordedRun&) = delete;

  std::int64_t step() const { return step_; }
  std::int64_t begins_at() const { return begins_at_; }  // steps that its beginning has behind it
  const nlohmann::json& record() const { return record_; }  // run.json
  const Session& session() const { return session_; }
  const RunData& data() const { return *start_->data; }
  const std::unique_ptr<Runner>& runner() const { return runner_; }
  Programs& programs() { return *runner_->programs(); }

  // Makes the steps before `step`; `made` is told of each, as the run's listeners were, before
  // anything else is computed.
  void go_to_step(const std::function<void(const StepDone&)>& made = {});
  // Behind go_to_step(): makes the step itself, of the state and the random numbers as they are, on
  // its own batch.
  StepDone make_step();
  // Behind make_step() the state has moved on: this keeps it before, and that brings it back. Of a
  // run of the same Plan.
  StateBytes state();
  void set_state(const StateBytes& state);
  // Where the step's batch begins in the data; behind go_to_step().
  std::uint64_t position() const { return position_; }
  // Instead of go_to_step(): the place where another one of the same run stands, with its state.
  void stand_at(const StateBytes& state, std::uint64_t position);
  // The state that the run saved right behind the step, in the form of state(), which moves on to
  // it; nothing where it saved none there, keeps it no longer, or where it is damaged.
  std::optional<StateBytes> saved_state();
  // The run's checkpoints that were met so far and are damaged, each with what is wrong; whether
  // the one right behind the step is among them.
  const std::vector<std::string>& damaged() const { return damaged_; }
  bool is_saved_state_damaged() const { return is_saved_state_damaged_; }

  // The line of metrics.jsonl of a step, numbered from 0 on; null where there is none.
  nlohmann::json recorded(std::int64_t step) const;
  // Whether there is one, whole.
  bool has_numbers_of(std::int64_t step) const;
  // How the numbers that a step has now differ from the recorded ones: a text each; empty where
  // they do not, or nothing is recorded.
  std::vector<std::string> differences(const StepDone& now) const;
  // Whether its numbers must be the recorded ones, to the bit: the same Plan on the same machine.
  bool is_as_recorded(const std::string& machine);

 private:
  void evaluate_if_rate_depends(std::int64_t behind);

  void note_damage();

  Path folder_;
  std::int64_t step_, begins_at_ = 0;
  nlohmann::json record_;
  CheckpointFolder checkpoints_;
  std::vector<std::string> damaged_;
  bool is_saved_state_damaged_ = false;
  std::map<std::int64_t, nlohmann::json> lines_;  // of metrics.jsonl, by step from 1 on
  std::optional<RunStart> start_;
  Session session_;
  std::unique_ptr<Runner> runner_;
  std::int64_t at_ = 0;  // steps behind it
  std::uint64_t position_ = 0;
};

}  // namespace aloft
