#include "train/refused_ends.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/terminal.h"

namespace aloft {

namespace {

// `step`: from 0 on.
std::string to_look_into(const Path& run, std::int64_t step) {
  return fmt::format("aloft probe run {} --at {} --task overflow --out DIR: which op begins it",
                     in_shell(run.string()), step);
}

}  // namespace

void refuse_to_go_on(std::int64_t step, const std::string& reason, const Path& run) {
  throw DivergedError("E0834", "a step has no finite numbers, and train.on_nonfinite is stop")
      .saw(fmt::format("step {}: {}", step, reason))
      .line("try", to_look_into(run, step - 1))
      .advice(
          "a lower optimizer.lr or a longer schedule.warmup; a smaller precision.loss_scale where "
          "the loss is finite; --resume goes on behind the step, with train.on_nonfinite = "
          "\"skip\" past others as well");
}

void refuse_to_succeed(const std::string& problem, const std::string& kept, const Path& run,
                       std::int64_t step, std::int64_t bad_steps) {
  DivergedError e("E0822", "the run has ended, and its model is worth nothing");
  e.add_line("saw", problem);
  e.add_line("kept", kept.empty() ? "nothing that is healthy" : kept);
  if (bad_steps > 0) e.add_line("try", to_look_into(run, step - bad_steps));
  throw std::move(e).advice(fmt::format(
      "a lower learning rate or a longer warm-up; where steps were skipped a smaller loss "
      "scale, or bf16; --resume {}",
      kept.empty() ? "begins the run anew, and its metrics with it" : "goes on from what is kept"));
}

void need_healthy_steps(const std::string& problem) {
  if (problem.empty()) return;
  throw DivergedError("E0884", "the steps that were looked at train no model")
      .saw(problem)
      .advice("docs/find-a-nan.md: from what was written to the op, and to what mends it");
}

void say_nothing_to_do(std::int64_t step, const TrainSection& train,
                       const std::optional<Stop>& stop) {
  std::string way = train.epochs > 0 ? "to go on: a larger train.epochs"
                                     : fmt::format("to go on: --steps above {}", step);
  if (step < train.steps && stop)
    way = stop->reason + (stop->advice.empty() ? "" : "; to go on: " + stop->advice);
  log_warning("nothing to do: the run stands behind step {} of {}; {}", step, train.steps, way);
}

}  // namespace aloft
