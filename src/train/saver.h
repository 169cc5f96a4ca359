// When a run saves, and what it keeps: the rules of [train] over the run's checkpoints.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/background_save.h"
#include "checkpoint/checkpoint_folder.h"
#include "recipe/recipe.h"
#include "recipe/resume_changes.h"
#include "run/run_directory.h"

namespace aloft {

// Whether it is time for a checkpoint, by the clock alone: `minutes` after the last one (0: never),
// but not before saving, which took `took` seconds, is a small part (1 in 20) of the time.
bool is_due_by_clock(double seconds_since, double minutes, double took);

class Saver {
 public:
  Saver(const RunDirectory& directory, const TrainSection& rules);

  // Brings the folder in order, and finds where the run goes on: its newest healthy checkpoint.
  // Nothing where it has saved none, or none that is healthy, and begins anew. Says which ones it
  // passes over. DataError E0641 where there are checkpoints and all of them are damaged; UserError
  // E0825 where all that are whole are another run's; DataError E0826, unless `force`, where there
  // are none and run.json says that one was saved.
  std::optional<StoredCheckpoint> to_resume(bool force);

  // Whether a run that stands behind `step` steps saves now: by the step's number or by the clock.
  bool is_due(std::int64_t step) const;

  // Saves, and removes what need not stay. EnvironmentError E0603, E0604. One at a time: none is
  // under way.
  Path save(const CheckpointMeta& meta, const nn::Module& model, const Optimizer& optimizer);

  // The same while training goes on (checkpoint/background_save.h), from a copy in `memory`;
  // `saved` is called when it is whole, in the thread that writes.
  void begin(const CheckpointMeta& meta, const nn::Module& model, const Optimizer& optimizer,
             const Buffer& memory, std::function<void()> saved);
  // What is under way; null: nothing.
  BackgroundSave* under_way() { return under_way_.get(); }
  // Before the state moves.
  void finish_copy() {
    if (under_way_) under_way_->finish_copy();
  }
  // What is under way is not needed any more; it is finished where it is judged.
  void abandon() { under_way_.reset(); }
  // Waits for what is under way and judged; its folder. EnvironmentError E0603, E0604.
  Path settle();

  // Removes what need not stay beside the checkpoint of `step`: a run that was killed behind its
  // last save has not come to it. Only where the rules are those of that save.
  void prune(std::int64_t step);
  // Says which checkpoints the next save will remove, beside that of `step`, where the rules differ
  // from those of the save before: an option that was forgotten costs none without a word.
  void announce_removals(std::int64_t step, const std::vector<RecipeChange>& changed);

  // Where a run goes back to from `step`, whose numbers are no good for `reason` and behind which
  // its data stands at `position`: the newest healthy checkpoint below it, or, where two returns
  // have not got the run past its trouble, the one before that, as long as there is one. `so
  // far`: the rollbacks that the run has behind it. DivergedError E0835 where there is no healthy
  // checkpoint, or train.rollbacks in a row have not got past the trouble.
  struct Return {
    StoredCheckpoint to;  // its meta is what its manifest says once go_back() is done
    Rollback rollback;
  };
  Return way_back(std::int64_t step, std::uint64_t position, const std::vector<Rollback>& so_far,
                  const std::string& reason);
  // Goes that way (CheckpointFolder::go_back). EnvironmentError E0603.
  void go_back(const Return& way) { folder_.go_back(way.to, way.to.meta); }

  // The newest healthy checkpoint, for advice; "" where there is none.
  std::string newest_healthy();

 private:
  KeepPolicy policy() const {
    KeepPolicy policy{rules_.keep_checkpoints, rules_.keep_best, rules_.keep_every};
    if (may_roll_back(rules_)) policy.back = 2, policy.back_every = rules_.checkpoint_every;
    return policy;
  }

  TrainSection rules_;
  Path place_;
  CheckpointFolder folder_;
  std::int64_t saved_before_;     // as run.json says
  double last_save_;              // when it ended; of one beside training, when it began
  std::atomic<double> took_ = 0;  // without waiting for a judgement
  std::unique_ptr<BackgroundSave> under_way_;
};

}  // namespace aloft
