// A model from disk: a run directory, a checkpoint in it, or a Hugging Face folder.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "data/tokenizer.h"
#include "models/huggingface.h"
#include "precision/recipe.h"

namespace aloft {

// A model and what lies beside it.
struct SavedModel {
  models::ModelSpec spec;                          // its family and settings
  std::unique_ptr<models::CausalLm> model;         // fp32, evaluation mode; null of a classifier
  std::unique_ptr<models::Classifier> classifier;  // likewise; null of a language model
  // Whichever it is.
  nn::Layer& module() const {
    return model ? static_cast<nn::Layer&>(*model) : static_cast<nn::Layer&>(*classifier);
  }
  // Reads the weights from disk into the model's memory, piece by piece and in its types.
  std::function<void()> load;
  std::unique_ptr<Tokenizer> tokenizer;  // null where none lies beside the model
  Path published;  // published files of it (models/published_files.h); empty where there are none
  bool has_other_tokenizer = false;  // a run's own, for which ids of `published` mean nothing
  std::vector<std::int32_t> ends;  // tokens that end a text: what `published` and the tokenizer say
  // What the file calls each parameter, and how it keeps it.
  std::map<std::string, models::StoredTensor> stored;
};

// What is asked for: a model that writes, or whatever it is.
enum class SavedKind { LanguageModel, Any };

// Of a run directory, `which` says the checkpoint: "newest" (the newest healthy one; "" too),
// "best" (the lowest validation loss), or a step's number. `average`: the means of its weights that
// the run has kept (optimizer.average) in their place. UserError E0830 where there are none,
// UserError E0718 where `path` is none of these, or of another kind than is asked for, E0823 where
// the run has no such checkpoint or `path` is no run, E0825 where its run.json is of another run;
// EnvironmentError E0401 where the weights do not fit; DataError of checkpoint.h, run_directory.h
// and huggingface.h. DataError E0632 for a folder whose head is missing, which nobody could ask
// anything. With a precision the model is prepared for it, and its weights are read into these
// types.
SavedModel open_saved_model(const Path& path, const std::string& which = "", bool average = false,
                            const std::optional<PrecisionRecipe>& precision = std::nullopt,
                            SavedKind kind = SavedKind::LanguageModel);

// The same as a description, whose weights nobody has read: it may be given a precision and memory
// (give_room()), and `load` fills that, be it the model's own or a program's. So a model takes no
// more than its program does. The same errors, but for E0401.
SavedModel describe_saved_model(const Path& path, const std::string& which = "",
                                bool average = false, SavedKind kind = SavedKind::LanguageModel);
// Memory for a described model's weights, in the types that it is prepared for. EnvironmentError
// E0401 where they do not fit.
void give_room(SavedModel& described);

}  // namespace aloft
