// A model from disk: a run directory, a checkpoint in it, or a Hugging Face GPT-2 folder.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/file.h"
#include "data/tokenizer.h"
#include "models/gpt2.h"
#include "models/huggingface.h"

namespace aloft {

struct SavedModel {
  std::unique_ptr<models::Gpt2> model;   // fp32, evaluation mode
  std::unique_ptr<Tokenizer> tokenizer;  // null where none lies beside the model
  // What the file calls each parameter, and how it keeps it.
  std::map<std::string, models::StoredTensor> stored;
};

// UserError E0718 where `path` is none of these; DataError of checkpoint.h and huggingface.h.
SavedModel open_saved_model(const Path& path);

}  // namespace aloft
