// One optimizer's part of a checkpoint, a file of its own: moments, accumulators, counters, loss
// scaler; for parameters that were frozen for some updates, how many they have had; of a rule
// without moments, the names of the parameters that it trains.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "files/safetensors.h"
#include "frontend/optimizer.h"

namespace aloft {

// DataError E0641: what `checkpoint` holds is damaged; or it is whole, and of something else than
// what it is loaded into.
[[noreturn]] void broken_checkpoint(const Path& checkpoint, const std::string& what);
[[noreturn]] void unfit_checkpoint(const Path& checkpoint, const std::string& what,
                                   const std::vector<std::string>& seen = {});

// What a file of it holds: variables, each under its name there, and what is said beside them.
struct OptimizerParts {
  std::vector<std::pair<std::string, VariablePtr>> tensors;
  Metadata said;
  // Where it keeps means of weights: by the name of each parameter that has had an update, that of
  // its mean among the tensors.
  std::optional<std::map<std::string, std::string>> means = {};
};

// Of an optimizer as it stands, with the variables `others` of the run beside its own.
OptimizerParts parts_of(const Optimizer& optimizer, const std::vector<VariablePtr>& others);
// Writes the values that they have now; what the file is known by. EnvironmentError E0603.
FileSeal write_parts(const Path& file, const OptimizerParts& parts);

// A file that was written so, held against an optimizer. Nothing is changed before restore().
class SavedOptimizer {
 public:
  // Takes the file `name` of a checkpoint. DataError E0641 where it does not fit.
  SavedOptimizer(const Path& checkpoint, const std::string& name, const Optimizer& optimizer,
                 const std::vector<VariablePtr>& others);

  // Parameters that were unfrozen before it was saved and are frozen here get what is trained of
  // them. Whether there were any: their masters have yet to be loaded.
  bool unfreeze();
  // The rest, and the gradients that backward() left are dropped: they are of weights that are no
  // more.
  void restore();

 private:
  Safetensors state_;
  Optimizer optimizer_, draft_;  // the draft: with those that are to be unfrozen
  bool has_late_ = false, has_sums_ = false;
  std::vector<VariablePtr> variables_;
  std::vector<std::optional<std::int64_t>> counts_;
};

}  // namespace aloft
