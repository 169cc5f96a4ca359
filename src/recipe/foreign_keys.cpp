#include "recipe/foreign_keys.h"

#include <iterator>
#include <utility>
#include <vector>

#include "base/text.h"
#include "optim/foreign_switches.h"
#include "optim/kind.h"

namespace aloft {
namespace {

using optim::kAsksNothing, optim::kNotDifferentiated, optim::kOneSweep;

constexpr std::string_view kDropped = "gradients are dropped behind every step";
constexpr std::string_view kWidened = "a low gradient is widened where it is read";
constexpr std::string_view kDecayAdded =
    "the decay is added to the gradient; adamw shrinks weights beside it";
constexpr std::string_view kCorrected = "the moments' start at 0 is taken off them";

// Of all kinds, and of those that have no say of it in their own record.
constexpr ForeignKey kKeys[] = {
    {"optimizer.foreach", "", kOneSweep},
    {"optimizer.fused", "", kOneSweep},
    {"optimizer.capturable", "", kAsksNothing},
    {"optimizer.differentiable", "", kNotDifferentiated, "false"},
    {"optimizer.max_grad_norm", "optimizer.clip_norm", "the largest norm of all gradients"},
    // apex's
    {"optimizer.set_grad_none", "", kDropped},
    {"optimizer.master_weights", "",
     "precision.level says it: low weights have fp32 masters at O2, none at O3"},
    {"optimizer.materialize_master_grads", "", kWidened},
    {"optimizer.adam_w_mode", "", "the kind adam is the one without it", "true", "adamw"},
    {"optimizer.adam_w_mode", "", "the kind adamw is the one with it", "false", "adam"},
    {"optimizer.wd_after_momentum", "", kDecayAdded, "false", "sgd"},
    {"optimizer.wd_after_momentum", "", kDecayAdded, "false", "momentum"},
    {"optimizer.bias_correction", "", kCorrected, "true", "adam"},
    {"optimizer.bias_correction", "", kCorrected, "true", "adamw"},
};

constexpr std::pair<std::string_view, std::string_view> kSchedulers[] = {
    {"ConstantLR", "kind = \"low-start\", with start_factor and step_size"},
    {"CosineAnnealingLR", "kind = \"cosine\""},
    {"CosineAnnealingWarmRestarts", "kind = \"cosine-restarts\""},
    {"CyclicLR", "kind = \"triangular\", \"triangular-2\" or \"exp-range\""},
    {"ExponentialLR", "kind = \"exponential\""},
    {"LinearLR", "kind = \"linear\", with start_factor and final_lr"},
    {"MultiStepLR", "kind = \"multi-step\""},
    {"OneCycleLR", "kind = \"one-cycle\""},
    {"PolynomialLR", "kind = \"polynomial\""},
    {"ReduceLROnPlateau", "kind = \"plateau\""},
    {"StepLR", "kind = \"step\""},
    {"LambdaLR",
     "one of the kinds below: a recipe holds no function, a program does (scalar::tabulated)"},
    {"MultiplicativeLR",
     "kind = \"exponential\" for one factor: a recipe holds no function, a program does "
     "(scalar::multiplied)"},
    {"SequentialLR",
     "a warmup before any kind, or \"wsd\", which rises, stays and falls: any others are put in "
     "sequence by a program (scalar::ScheduleKind::Sequence)"},
    {"ChainedScheduler",
     "a warmup before any kind: others are multiplied by a program "
     "(scalar::ScheduleKind::Product)"},
};

}  // namespace

std::span<const ForeignKey> foreign_keys() {
  static const std::vector<ForeignKey> all = [] {
    std::vector<ForeignKey> some(std::begin(kKeys), std::end(kKeys));
    for (const optim::OptimizerKind& kind : optim::optimizer_kinds())
      for (const optim::ForeignArgument& f : kind.foreign)
        some.push_back({f.key, "", f.why, f.only, kind.name});
    return some;
  }();
  return all;
}

const ForeignKey* foreign_key(std::string_view key, std::string_view kind) {
  for (const ForeignKey& k : foreign_keys())
    if (k.key == key && (k.kind.empty() || k.kind == kind)) return &k;
  return nullptr;
}

std::string schedule_instead_of(std::string_view scheduler) {
  for (const auto& [name, instead] : kSchedulers)
    if (lower(name) == lower(scheduler)) return std::string(instead);
  // As this library's programs call them.
  for (const auto& [kind, name] : {std::pair{"table", "LambdaLR"},
                                   {"sequence", "SequentialLR"},
                                   {"product", "ChainedScheduler"}})
    if (lower(scheduler) == kind) return schedule_instead_of(name);
  return "";
}

}  // namespace aloft
