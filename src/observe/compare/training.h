// What a training loop says of a step, in a dump's `training`: loss, rate, scale, the optimizer's
// settings; and how that of two runs differs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "observe/compare/foreign_json.h"

namespace aloft::compare {

// Nothing of what a dump does not say.
struct Training {
  std::optional<double> loss;           // mean of the step's batch
  std::optional<double> learning_rate;  // of the update
  std::optional<double> loss_scale;     // factor on the loss in the backward pass
  std::optional<double> gradient_norm;  // of all gradients that the update takes: unscaled, clipped
  std::optional<bool> is_skipped;       // nothing was updated
  // Whose gradients are summed, and divided in the update alone.
  std::int64_t micro_batches = 1;
  // Of how many losses, one a micro-batch, `loss` is the mean; 0: the dump does not say it.
  std::int64_t losses = 0;
  std::string optimizer;                                // its kind: "adamw"
  std::map<std::string, std::vector<double>> settings;  // of its formula: "eps", "betas"

  // By how much the gradients of the dump are those of the mean loss times something.
  double gradient_factor() const;
};

// Of a dump's member `training`; null: it says nothing.
Training read_training(const ForeignJson* training);

// Something of the loop that is not the same.
struct TrainingDifference {
  // Which it is: "loss" comes between forward and backward, the others between backward and update:
  // "schedule", "loss scale", "optimizer", "gradient norm", "update".
  std::string place;
  double size = 0, allowed = 0;  // relative; infinite where no number says it
  std::string text;              // "the learning rate is 0.001 against 0.0005"
  // Of an update that one run skipped: the loss scale of that run.
  double skipped_under = 0;
};

// `noise`: the relative error that rounding explains at the end of the backward pass. `scales`: the
// ratio of the loss scales of an earlier step, to which it is held; 0: the first. `of_loss`: what
// rounding explains of the loss beside that.
std::vector<TrainingDifference> training_differences(const Training& npu, const Training& bench,
                                                     double noise, double scales,
                                                     double of_loss = 0);

// The ratio of the loss scales; 0 where one of the two has none.
double ratio_of_scales(const Training& npu, const Training& bench);

}  // namespace aloft::compare
