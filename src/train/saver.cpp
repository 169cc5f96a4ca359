#include "train/saver.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/text.h"

namespace aloft {

bool is_due_by_clock(double seconds_since, double minutes, double took) {
  return minutes > 0 && seconds_since >= std::max(60 * minutes, 20 * took);
}

Saver::Saver(const RunDirectory& directory, const TrainSection& rules)
    : rules_(rules),
      place_(directory.checkpoints()),
      folder_(place_, directory.run()),
      saved_before_(saved_step(directory.found_record())),
      last_save_(monotonic_seconds()) {}

std::optional<StoredCheckpoint> Saver::to_resume(bool force) {
  std::optional<StoredCheckpoint> found = folder_.to_resume();
  const bool all_gone = !found && saved_before_ > 0 && !folder_.newest();
  if (all_gone && !force)
    throw DataError("E0826", "the checkpoints of the run are gone")
        .at(place_.string())
        .saw(fmt::format("none, and run.json says that one of step {} was saved", saved_before_))
        .need("what was moved away, or the disk that they lie on")
        .advice("bring them back; or --force: the run begins anew, and so do its metrics");
  return found;
}

bool Saver::is_due(std::int64_t step) const {
  const auto divides = [&](std::int64_t every) { return every > 0 && step % every == 0; };
  return divides(rules_.checkpoint_every) || divides(rules_.keep_every) ||
         is_due_by_clock(monotonic_seconds() - last_save_, rules_.checkpoint_minutes, took_);
}

Path Saver::save(const CheckpointMeta& meta, const nn::Module& model, const Optimizer& optimizer) {
  const double start = monotonic_seconds();
  Path saved = folder_.save(meta, model, {optimizer});
  prune(meta.step);
  last_save_ = monotonic_seconds();
  took_ = last_save_ - start;
  return saved;
}

void Saver::prune(std::int64_t step) { folder_.prune(policy(), step); }

void Saver::announce_removals(std::int64_t step, const std::vector<RecipeChange>& changed) {
  if (changed.empty()) return;
  const std::vector<std::int64_t> steps = folder_.removable(policy(), step);
  if (steps.empty()) return;
  std::vector<std::string> rules;
  for (const RecipeChange& c : changed) rules.push_back(c.str());
  log_warning("the next save removes checkpoints that the run has kept so far, of step {}: {}",
              fmt::join(steps, ", "), join(rules, "; "));
}

std::string Saver::newest_healthy() {
  const auto newest = folder_.newest_healthy();
  return newest ? newest->path.string() : "";
}

}  // namespace aloft
