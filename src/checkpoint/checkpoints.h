// Checkpoints of a training loop that a program writes itself: all that the next step depends on,
// so that a program which is ended and started anew ends with the same bits as one that ran
// through.
//
//   Checkpoints checkpoints("run/checkpoints");
//   LoopPosition at;
//   if (const auto saved = checkpoints.load(model, opt)) at = *saved;
//   loader.seek(at.data_position);
//   for (...; ++at.step)
//     ...  checkpoints.step(result, opt);
//     ...  checkpoints.save({at.step, loader.position()}, model, opt);
//
// The program in examples/resume.cpp shows it whole.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/health.h"
#include "frontend/module.h"
#include "frontend/optimizer.h"

namespace aloft {

class CheckpointFolder;
class FolderLock;

// How far a training loop has come.
struct LoopPosition {
  std::int64_t step = 0;            // steps made, from 0
  std::uint64_t data_position = 0;  // samples handed out: Loader::position()
};

// A folder of step-000500/, step-001000/, ... in the form that `aloft train` writes
// (docs/checkpoints.md): each holds parameters with their masters, buffers, moments, sums over
// micro-batches, the counts and the loss scale of the optimizer, this thread's random state with
// what has been drawn under it, and the position. A model with several optimizers is saved and
// loaded with all of them, in one order; several models are made children of one module: save() and
// load() end in UserError E0807 where an optimizer trains what the model does not have, in E0836
// within a block of AveragedWeights.
//
// They belong to one training, whose name they carry: load() goes on with that of what it loads,
// else the first save() draws one. Those of others are neither counted nor removed.
//
// Gradients that backward() left are not in it, and load() drops them: a loop that sums them over
// micro-batches saves behind its steps, or sums by accumulate(), which can be resumed in between.
class Checkpoints {
 public:
  // Makes the folder and holds it: UserError E0821 while another program does, EnvironmentError
  // E0603, E0604. Of its checkpoints the newest `keep` stay (0: all); UserError E0824 below 0.
  explicit Checkpoints(const Path& folder, std::int64_t keep = 3);
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  // How a step went, told behind each: save() judges the state by its loss, too, each optimizer's
  // by its own. For losses that training lowers; where they may rise far above the first one
  // (networks that play against each other), leave it out. Of several optimizers the first loss
  // behind a load() counts as the first.
  void step(const StepResult& result, const Optimizer& optimizer);

  // Written to the disk and renamed: it is there as a whole, or not at all, and then the ones
  // before still are. Changes no bit of what follows. A state that is not healthy
  // (docs/checkpoints.md) is saved with a mark, and said: load() passes it over, and no healthy one
  // makes room for it: where one lies at this very step, nothing is written, and its path returned.
  // `loss`: of the state as it is now, where the program has measured it; a
  // step's is that of the weights before its update. UserError E0824 where the step is below 0, or
  // below that of the newest healthy one which was loaded or saved, whose place it would never
  // take, or it or the place in the data above 2^53; E0827, and nothing is written, where the
  // folder holds another training's checkpoints, with which load() did not go on. EnvironmentError
  // E0603, E0604.
  Path save(const LoopPosition& at, const nn::Module& model, const Optimizer& optimizer,
            std::optional<double> loss = {});
  // The same of several optimizers. UserError E0807 where one is given twice.
  Path save(const LoopPosition& at, const nn::Module& model,
            const std::vector<Optimizer>& optimizers, std::optional<double> loss = {});

  // Restores the newest healthy checkpoint that is whole into a model and an optimizer that were
  // made as those that were saved: compiled programs of theirs go on from it too. Which parameters
  // are frozen is the program's to say, before or behind it; what was unfrozen on the way has its
  // moments then. Nothing where there is none. What is damaged is passed over with a warning.
  // DataError E0641 or E0630, and nothing is changed, where all are damaged, or the newest is of
  // another model, optimizer or precision.
  std::optional<LoopPosition> load(nn::Module& model, Optimizer& optimizer);
  // The same of several optimizers, as many as were saved and in the same order.
  std::optional<LoopPosition> load(nn::Module& model, const std::vector<Optimizer>& optimizers);

 private:
  void belong_to(const std::string& run);
  void begin_run();
  std::string problem_of_losses(const std::vector<Optimizer>& optimizers,
                                std::optional<double> loss) const;

  std::unique_ptr<FolderLock> lock_;
  std::unique_ptr<CheckpointFolder> folder_;
  std::optional<std::string> run_;  // the training's name, once it has saved or loaded
  std::int64_t keep_;
  std::optional<std::int64_t> newest_;     // step of the newest healthy one, loaded or saved
  std::map<VariablePtr, Health> healths_;  // by an optimizer's count, once a step of it was told
  std::optional<double> last_loss_;        // of the last step that was told
  std::int64_t stray_skips_ = 0;      // of the checkpoint that was loaded, until a step is told
  std::optional<double> start_loss_;  // of the run, which may have been gone on with
};

}  // namespace aloft
