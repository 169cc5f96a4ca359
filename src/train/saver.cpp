#include "train/saver.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
         // The clock makes nobody wait for the save before.
         (!under_way_ &&
          is_due_by_clock(monotonic_seconds() - last_save_, rules_.checkpoint_minutes, took_));
}

Path Saver::save(const CheckpointMeta& meta, const nn::Module& model, const Optimizer& optimizer) {
  const double start = monotonic_seconds();
  Path saved = folder_.save(meta, model, {optimizer});
  prune(meta.step);
  last_save_ = monotonic_seconds();
  took_ = last_save_ - start;
  return saved;
}

void Saver::begin(const CheckpointMeta& meta, const nn::Module& model, const Optimizer& optimizer,
                  const Buffer& memory, std::function<void()> saved) {
  ensure(!under_way_, "one checkpoint is under way at a time");
  last_save_ = monotonic_seconds();
  under_way_ = std::make_unique<BackgroundSave>(
      parts_of(meta, model, {optimizer}), memory,
      [this, saved = std::move(saved)](const CheckpointParts& parts,
                                       const std::function<std::string()>& problem) {
        const double start = monotonic_seconds();
        double waited = 0;
        folder_.save(parts, [&] {
          const double asked = monotonic_seconds();
          std::string said = problem();
          waited = monotonic_seconds() - asked;
          return said;
        });
        prune(parts.meta.step);
        took_ = monotonic_seconds() - start - waited;
        saved();
      });
}

Path Saver::settle() {
  const std::unique_ptr<BackgroundSave> ended = std::move(under_way_);
  ended->wait();
  return folder_.path_of(ended->step());
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

namespace {
// Whether a return comes to a later step than those of the row so far: between them was progress.
bool goes_farther(const std::vector<Rollback>& so_far, std::int64_t to) {
  const auto row =
      std::min<std::size_t>(so_far.size(), static_cast<std::size_t>(so_far.back().in_a_row));
  return std::all_of(so_far.end() - static_cast<std::ptrdiff_t>(row), so_far.end(),
                     [&](const Rollback& r) { return r.to < to; });
}

// Of the checkpoints of a run that goes back no more. `to`: where it would have gone.
std::string what_is_left(CheckpointFolder& folder, const std::optional<StoredCheckpoint>& to,
                         bool has_gone_back) {
  std::vector<std::string> behind;
  for (const StoredCheckpoint& c : folder.whole())
    if (!to || c.meta.step > to->meta.step)
      behind.push_back(
          fmt::format("step {}{}", c.meta.step, c.meta.healthy() ? "" : " (not healthy)"));
  std::string text =
      to ? fmt::format("left to go on from: the checkpoint of step {}", to->meta.step)
         : "nothing is left to go on from";
  if (!behind.empty()) text += (to ? "; behind it there is " : ", only ") + join(behind, ", ");
  if (has_gone_back) text += "; those of courses that the run has left are gone";
  return text;
}
}  // namespace

Saver::Return Saver::way_back(std::int64_t step, std::uint64_t position,
                              const std::vector<Rollback>& so_far, const std::string& reason) {
  // What a stop or the clock has saved in between is no place to go back to where there are those
  // of fixed steps: a run that was stopped goes the way of one that was not.
  const auto is_regular = [&](std::int64_t at) {
    return rules_.checkpoint_every == 0 || at % rules_.checkpoint_every == 0;
  };
  const auto newest_below = [&](std::int64_t limit) {
    const std::size_t problems = folder_.problems().size();
    auto found = folder_.newest_to_load([&](const CheckpointMeta& m) {
      return m.healthy() && m.step < limit && is_regular(m.step);
    });
    for (std::size_t i = problems; i < folder_.problems().size(); ++i)
      log_warning("a checkpoint is passed over: {}", folder_.problems()[i]);
    return found;
  };
  std::optional<StoredCheckpoint> to = newest_below(step);
  const auto refuse = [&](const std::string& why) {
    throw DivergedError("E0835", why)
        .saw(fmt::format("step {}: {}", step, reason))
        .saw(what_is_left(folder_, to, !so_far.empty()))
        .advice(
            "a lower optimizer.lr or a longer schedule.warmup; a smaller precision.loss_scale "
            "where "
            "the loss is finite; more returns in a row (train.rollbacks); checkpoints at shorter "
            "distances (train.checkpoint_every); train.on_spike = \"ignore\", train.on_nonfinite = "
            "\"skip\" where the run is worth going on with; --resume goes on with the new values");
  };
  if (!to) refuse("the run has no healthy checkpoint to go back to");
  Rollback r{step, to->meta.step, step, 1, 0, position, reason};
  if (!so_far.empty() && to->meta.step < so_far.back().farthest) {
    r.in_a_row = goes_farther(so_far, to->meta.step) ? 1 : so_far.back().in_a_row + 1;
    r.farthest = std::max(step, so_far.back().farthest);
    if (r.in_a_row > rules_.rollbacks)
      refuse(fmt::format("going back {} times in a row has not got the run past its trouble",
                         rules_.rollbacks));
    // The trouble may have begun before the checkpoint: one that has been gone back to twice is no
    // help.
    if (r.in_a_row > 2)
      if (auto before = newest_below(to->meta.step)) to = std::move(before);
    r.to = to->meta.step;
  }
  r.data_from = to->meta.data_position;
  to->meta.rollbacks = so_far;
  to->meta.rollbacks.push_back(r);
  to->meta.data_position = position;
  return {*std::move(to), std::move(r)};
}

std::string Saver::newest_healthy() {
  const auto newest = folder_.newest_healthy();
  return newest ? newest->path.string() : "";
}

}  // namespace aloft
