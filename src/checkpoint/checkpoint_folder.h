// The checkpoints of a run: a folder of step-000500/, step-001000/, ... Only whole ones of this run
// count; foreign and damaged ones are neither counted nor removed. Hidden names belong to saves:
//   .step-000500.partial   being written; whole once it has its manifest
//   .step-000500.old       stepped aside for its replacement
//   .step-000500.removed   being removed
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/keep_policy.h"

namespace aloft {

struct StoredCheckpoint {
  Path path;
  CheckpointMeta meta;
};

class CheckpointFolder {
 public:
  // `run`: whose checkpoints count; nothing: those of any run. `use`: what is looked at of one
  // before it counts as whole. The folder may be missing.
  explicit CheckpointFolder(Path folder, std::optional<std::string> run = {},
                            CheckpointUse use = CheckpointUse::GoingOn);
  // From here on only those of this run count.
  void belong_to(std::string run) { run_ = std::move(run); }

  // Ends what killed saves began: of a step without a whole checkpoint, a whole replacement or its
  // predecessor takes the place; everything else that is half is removed. Only while nobody else
  // writes here.
  void recover();

  // The newest whole checkpoint that `wanted` accepts; nothing where there is none.
  std::optional<StoredCheckpoint> newest(
      const std::function<bool(const CheckpointMeta&)>& wanted = {});
  std::optional<StoredCheckpoint> newest_healthy();
  // The newest one to load from: its files are read once more, also where they were whole before.
  std::optional<StoredCheckpoint> newest_to_load(
      const std::function<bool(const CheckpointMeta&)>& wanted);
  // The same to go on from, behind recover(), with a warning for everything that is passed over.
  // DataError E0641 where there are checkpoints and all are damaged; UserError E0825 where all that
  // are whole are another run's.
  std::optional<StoredCheckpoint> to_resume();
  // The healthy one with the lowest validation loss, the earliest among equals; of those that were
  // validated on the data of the last, where --force has changed it on the way.
  std::optional<StoredCheckpoint> best();
  // All whole ones, by step.
  std::vector<StoredCheckpoint> whole();
  // What was met and could not be used: damaged ones, a line each, and those of other runs.
  const std::vector<std::string>& problems() const { return problems_; }
  const std::vector<Path>& foreign() const { return foreign_; }
  // UserError E0825, where there are some of others.
  [[noreturn]] void refuse_others() const;

  // Writes step-N. One of this run with that name is replaced, and at no moment is there neither
  // the old nor the new one; anything else of that name steps aside (step-000500.aside-1).
  // EnvironmentError E0603, E0604; the old one is there then.
  Path save(const CheckpointMeta& meta, const nn::Module& model,
            const std::vector<Optimizer>& optimizers);
  // The same of parts; `problem`: of write_checkpoint().
  Path save(const CheckpointParts& parts, const std::function<std::string()>& problem = {});
  Path path_of(std::int64_t step) const;

  // The run goes back to a checkpoint of this folder: its manifest says `meta` from here on, at one
  // stroke, and then what lies behind it is removed, where it is of this run. What a kill in
  // between leaves of that, to_resume() removes. EnvironmentError E0603.
  void go_back(const StoredCheckpoint& to, const CheckpointMeta& meta);

  // Steps of what the policy does not keep; `saved` is the step that was written last. What was
  // saved at a step of the train.keep_every of its own recipe stays, whatever the policy says now.
  std::vector<std::int64_t> removable(const KeepPolicy& policy, std::int64_t saved);
  // Removes it.
  void prune(const KeepPolicy& policy, std::int64_t saved);

 private:
  bool is_ours(const CheckpointMeta& meta) const { return !run_ || meta.run == *run_; }
  std::optional<CheckpointMeta> checked(const Path& checkpoint, std::int64_t step);
  void put_in_place(const Path& whole, const Path& final_path, std::int64_t step);
  void make_room(const Path& final_path, const Path& old, std::int64_t step);
  // Ends what a kill cut short in go_back(): what was saved behind the place that the run has gone
  // back to, and knows nothing of that, is removed.
  void end_going_back();
  void remove(std::int64_t step);
  void recover_one(const Path& leftover, std::int64_t step);
  bool holds(const Path& checkpoint, std::int64_t step);

  Path folder_;
  std::optional<std::string> run_;
  CheckpointUse use_;
  std::vector<std::string> problems_;
  std::vector<Path> foreign_;
  // What was found whole, with the text of its manifest then: hashing gigabytes once is enough.
  std::map<Path, std::string> known_;
};

// The step in "step-000500"; nothing for any other name.
std::optional<std::int64_t> step_in_name(std::string_view name);

}  // namespace aloft
