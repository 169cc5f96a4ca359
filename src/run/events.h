// What a training run tells its listeners (listener.h), in the order in which a run comes to it:
//
//   RunBegun                        the model has its values, nothing was trained yet
//   for each step:
//     StepBegun
//     StepDone                      its numbers are known
//     StepSkipped                   ... and it has changed no weight
//     TrendsSeen                    ... and the monitor has looked at it, or found something
//     RolledBack                    ... and the run goes back to a checkpoint: nothing else follows
//     EpochDone                     ... and the training data was handed out once more
//     EvaluationBegun, EvaluationDone     where one is due
//     CheckpointBegun, CheckpointSaved    where one is due, or was asked for
//     StepSettled                   all that was due at the step has been done
//   StepsOver                       no step follows, and why
//   EvaluationBegun, EvaluationDone, CheckpointBegun, CheckpointSaved    of the state at the end
//   Diverged                        the run is given up
//   RunClosing                      the run's record is about to be written for the last time
//   RunEnded                        all is written
//
// Steps count from 1 over the whole run, skipped ones and those before a resume included. Losses
// are in nats a token or as the task has them, times in seconds, on the clock of the machine. A
// step's numbers come when they are known, and with them StepSkipped and EpochDone: on a device
// that works on its own, the next step may have been issued by then, and StepBegun of n + 1 may
// come before StepDone of n. The others are told of a state at which nothing is under way, that
// behind the step which they name.
//
// A reference in an event is valid until its handler returns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/best_validation.h"
#include "checkpoint/rollback.h"
#include "run/validation_loss.h"

namespace aloft {

struct CheckpointMeta;
struct LayerTrends;  // types/trends.h, which <aloft/observe.h> has
struct TrendAlert;
struct TaskKind;
struct TrainResult;

// Why a listener has ended a run.
struct Stop {
  std::string reason;  // of a line: "5 evaluations without a better validation loss"
  // What somebody does who wants the run to go on, behind "to go on: "; empty: there is nothing.
  std::string advice = {};
};

// A run that goes on, before anything of it is made: how it stands. No event, but what a listener
// is asked about (Listener::over_at, Listener::lacks_at).
struct Standing {
  std::int64_t step = 0;               // steps behind it
  std::int64_t steps = 0;              // that it shall make in all: train.steps
  std::optional<BestValidation> best;  // of the run so far, on the validation data of now
};

// The model has its values, those of a checkpoint where the run goes on from one, and its record
// (run.json) is begun.
struct RunBegun {
  const Path& folder;    // the run directory
  const TaskKind& task;  // whose unit `tokens` count: examples of others than text
  const std::vector<Rollback>& rollbacks;  // of the run so far
  std::int64_t step = 0;                   // behind which it begins: 0, or the checkpoint's
  std::int64_t steps = 0;                  // behind which it ends by itself: train.steps
  std::int64_t tokens = 0;                 // trained on so far, in the task's unit; here and below
  std::uint64_t position = 0;              // windows of train.context tokens handed out so far
  std::uint64_t planned_bytes = 0;  // of memory, by the Plan; 0 where nothing is planned (eager)
  double compile_s = 0;             // seconds that compiling took; 0 in eager mode
  bool is_from_cache = false;       // no pass ran: an earlier start's program was taken
  // Whether the state as it is was evaluated before it was saved: that line is in the record.
  bool is_evaluated = false;
  std::int64_t evaluations = 0;        // in the record so far; 0 where the checkpoint does not say
  std::optional<BestValidation> best;  // of the run so far
};

// A step is about to run.
struct StepBegun {
  std::int64_t step = 0;  // its number
};

// A step has run, and its numbers are known.
struct StepDone {
  std::int64_t step = 0;     // attempted steps so far, this one included
  double loss = 0;           // mean of the step's batch, nats a token, before its update
  double lr = 0;             // learning rate of its update
  double grad_norm = 0;      // of all gradients together, before clipping
  double loss_scale = 1;     // factor on the loss in the backward pass
  bool skipped = false;      // a gradient was not finite: nothing was updated
  std::string culprit = {};  // the parameter whose gradient was not finite; empty: none
  std::int64_t tokens = 0;   // trained on so far
  double tokens_per_s = 0;   // of this step alone
  double time_s = 0;         // seconds spent in steps so far, those before a resume included
  std::int64_t skips = 0;    // skipped steps so far, this one included
  double saving_s = 0;       // seconds that training waited for checkpoints, since the step before
};

// A step was skipped: it has a StepDone, and this behind it.
struct StepSkipped {
  std::int64_t step = 0;     // its number
  std::string culprit = {};  // the parameter whose gradient was not finite; empty: the loss
  double loss_scale = 1;     // that it ran with
  std::int64_t skips = 0;    // so far, this one included
  std::int64_t in_a_row =
      0;  // skipped steps without another between, since the run began or resumed
};

// What the monitor ([monitor], docs/trends.md) says of a step that it has looked at, or at whose
// loss a rule of it has found something.
struct TrendsSeen {
  std::int64_t step = 0;                   // its number
  const std::vector<LayerTrends>& layers;  // empty: the step was not looked at
  const std::vector<TrendAlert>& alerts;   // that begin with it
};

// The run goes back to a checkpoint, because of the step that has just run (train.on_nonfinite,
// train.on_spike), and goes on from there with other data: steps behind it are made once more,
// under the same numbers. Whoever keeps a record of steps takes those of later ones out of it.
struct RolledBack {
  std::int64_t step = 0;  // of the checkpoint, behind which the run stands now
  // Of the run so far; the last one says where this one came from, why, and what it passes over.
  const std::vector<Rollback>& rollbacks;
  std::int64_t tokens = 0;       // trained on so far, at the checkpoint
  double time_s = 0;             // seconds spent in steps so far, at the checkpoint
  bool is_evaluated = false;     // whether the checkpoint's state was evaluated before it was saved
  std::int64_t evaluations = 0;  // in the record so far, at the checkpoint
  std::optional<BestValidation> best;  // of the run so far, at the checkpoint
};

// The training data was handed out in full once more.
struct EpochDone {
  std::int64_t epoch = 0;   // handed out in full so far: 1 behind the first
  std::int64_t step = 0;    // in which its last window was
  std::int64_t tokens = 0;  // trained on so far
};

// The loss on the validation data is about to be measured. It may be given up for a signal: then no
// EvaluationDone follows.
struct EvaluationBegun {
  std::int64_t step = 0;  // behind which
};

// The validation loss of a state.
struct EvaluationDone {
  std::int64_t step = 0;      // behind which
  ValidationLoss validation;  // the loss, and what else the task measures
  // The lowest of the run so far, this one counted; nothing where none was finite.
  std::optional<BestValidation> best;
  // Measured again behind a resume, because the checkpoint, of a program before, does not say it:
  // the record has its line already, and it counts in `best` already.
  bool is_repeated = false;
  // Whether it is the lowest so far.
  bool is_best() const { return !is_repeated && best && best->step == step; }
};

// A checkpoint is about to be written. Whoever writes a record of the run brings it to the disk
// here: a run that goes on from there has every line up to it.
struct CheckpointBegun {
  std::int64_t step = 0;  // behind which
  CheckpointMeta& meta;   // Inside: what its manifest will say, for the listeners of the library.
};

// A checkpoint is whole and on the disk.
struct CheckpointSaved {
  std::int64_t step = 0;       // behind which
  const Path& path;            // its folder
  const std::string& problem;  // why nobody should go on from it; empty: it is healthy
};

// All that was due at a step has been done: it was evaluated and saved. A run that goes on is told
// so once more of the step behind which it stands, when it has made up for what was interrupted.
struct StepSettled {
  std::int64_t step = 0;    // its number
  bool is_resumed = false;  // the step was made before the run went on
  bool is_last = false;     // of train.steps: its evaluation and its checkpoint are still to come
};

// No step follows. Comes once.
struct StepsOver {
  std::int64_t step = 0;  // made so far
  // What came first: `error` in the middle of the run, a signal, a listener's wish; none of them:
  // all steps of train.steps were made.
  const Error* error = nullptr;
  const char* signal = "";     // "SIGTERM"
  const Stop* stop = nullptr;  // the wish of a listener
};

// The training has diverged, and the run is given up.
struct Diverged {
  std::int64_t step = 0;    // made so far
  const Error& error;       // E0810: the loss scaler has given up; E0822: the end is worth nothing
  const std::string& kept;  // the newest healthy checkpoint; empty: there is none
};

// What was to be trained is trained and saved, as far as an error leaves it to be; the run's record
// is about to be written for the last time. What belongs to the end of a run is made here, and
// files are brought to where readers see them.
struct RunClosing {
  std::int64_t step = 0;         // made so far
  const TrainResult& result;     // as it is known so far; result.exit: how the run ends
  const Error* error = nullptr;  // that ends it
};

// The run has ended and its record is written. Also of a run that had nothing to do, which has no
// other event.
struct RunEnded {
  const Path& folder;            // the run directory
  const TrainResult& result;     // what run_training() returns
  const Error* error = nullptr;  // that ended it, and is thrown by run_training()
  const Stop* stop = nullptr;    // by which a listener ended it
};

}  // namespace aloft
