#include "train/refused_ends.h"

#include <fmt/format.h>

#include "base/error.h"

namespace aloft {

void refuse_to_go_on(std::int64_t step, const std::string& reason) {
  throw DivergedError("E0834", "a step has no finite numbers, and train.on_nonfinite is stop")
      .saw(fmt::format("step {}: {}", step, reason))
      .advice(
          "a lower optimizer.lr or a longer schedule.warmup; a smaller precision.loss_scale where "
          "the loss is finite; --resume goes on behind the step, with train.on_nonfinite = "
          "\"skip\" past others as well");
}

void refuse_to_succeed(const std::string& problem, const std::string& kept) {
  throw DivergedError("E0822", "the run has ended, and its model is worth nothing")
      .saw(problem)
      .line("kept", kept.empty() ? "nothing that is healthy" : kept)
      .advice(fmt::format(
          "a lower learning rate or a longer warm-up; where steps were skipped a smaller loss "
          "scale, or bf16; --resume {}",
          kept.empty() ? "begins the run anew, and its metrics with it"
                       : "goes on from what is kept"));
}

}  // namespace aloft
