// A checkpoint that is written while training goes on: what the trainer does about it at each
// boundary. The state is judged by the loss of the step behind it, which is the state's own.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "checkpoint/health.h"
#include "run/events.h"
#include "train/saver.h"

namespace aloft {

// "step 8: the loss is NaN: the checkpoint is marked, ..."; nothing where there is no problem.
void say_problem(std::int64_t step, const std::string& problem);

class OngoingSave {
 public:
  // The loss of the state as it is; nothing where it cannot be measured.
  using Measure = std::function<std::optional<double>()>;

  // Outlives this.
  explicit OngoingSave(Saver& saver) : saver_(saver) {}
  ~OngoingSave() { saver_.abandon(); }
  OngoingSave(const OngoingSave&) = delete;
  OngoingSave& operator=(const OngoingSave&) = delete;

  // Has the copy's memory from here on, so that no save waits for the system to give it.
  // EnvironmentError E0401.
  void reserve(const nn::Module& model, const Optimizer& optimizer);
  // `health`: of the run up to the state. `saved`: of Saver::begin().
  void begin(const CheckpointMeta& meta, const nn::Module& model, const Optimizer& optimizer,
             const Health& health, std::function<void()> saved);
  bool is_under_way() const { return saver_.under_way() != nullptr; }
  bool is_judged() const { return is_under_way() && saver_.under_way()->is_judged(); }
  bool is_over() const { return is_under_way() && saver_.under_way()->is_over(); }

  // Judges by the loss of the step that was made behind the state. Where that step was skipped its
  // batch may be to blame: the weights are what they were, and `measure` says how good they are.
  void hear(const StepDone& next, const Measure& measure);
  void judge(const std::string& problem);

  // Waits; what it has come to, nothing where nothing was under way. What no step has judged is
  // judged by `measure`. The errors of Saver::settle().
  struct Saved {
    std::int64_t step;
    Path path;
    std::string problem;
  };
  std::optional<Saved> settle(const Measure& measure);

 private:
  Saver& saver_;
  Buffer memory_;  // of the copy
  std::int64_t step_ = 0;
  std::optional<Health> health_;
  std::string problem_;
};

}  // namespace aloft
