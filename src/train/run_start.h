// How a run begins: anew, or going on with what its directory holds. Nothing is written to the
// directory here; what does not fit is refused before anything is.
//
// A run goes on with its own data. data.json of the directory says what that was: sizes and hashes
// of both parts, the tokenizer's fingerprint, the files. How its own is had, its source knows
// (sources/source_kind.h): of a text that is gone the tokens that were made of it, with the run's
// own tokenizer.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include "checkpoint/manifest.h"
#include "recipe/recipe.h"
#include "recipe/resume_changes.h"
#include "sources/run_data.h"
#include "train/trainer.h"

namespace aloft {

struct RunStart {
  Recipe recipe;  // as it will run: a resumed one keeps the precision that `auto` chose at first
  std::unique_ptr<RunData> data;
  nlohmann::json data_record;                        // data.json
  std::string started;                               // when the run was first begun
  nlohmann::json history = nlohmann::json::array();  // of run.json: one entry a resume
  std::vector<RecipeChange> changes;                 // of the recipe, to be said when it goes on
  Choices choices;                                   // made by measurement before
};

// `known`: what is known of the run that goes on (RunDirectory::known); null for a new one. `from`:
// the checkpoint that it goes on from; null where there is none. UserError E0817 (another model or
// tokenizer), E0818 (other data; options.force allows that); DataError E0643 where the directory's
// records are damaged; the errors of open_data.
RunStart begin_run(const Recipe& recipe, const TrainOptions& options, const nlohmann::json& known,
                   const CheckpointMeta* from);

// Writes tokenizer/, init/ and data.json. EnvironmentError.
void keep_data(const RunStart& start, const Path& run);

}  // namespace aloft
