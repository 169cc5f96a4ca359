#include "train/saved_model.h"

#include "base/error.h"
#include "base/log.h"
#include "files/safetensors.h"
#include "models/state_dict.h"
#include "train/checkpoint.h"
#include "train/model_json.h"

namespace aloft {
namespace {

namespace fs = std::filesystem;

SavedModel open_checkpoint(const Path& checkpoint) {
  const CheckpointMeta meta = check_checkpoint(checkpoint);
  SavedModel saved;
  saved.model = std::make_unique<models::Gpt2>(model_of_json(meta.model));
  models::load_state(Safetensors::open(checkpoint / "model.safetensors"), *saved.model);
  const Path run = fs::absolute(checkpoint).lexically_normal().parent_path().parent_path();
  if (fs::exists(run / "tokenizer" / kTokenizerFile))
    saved.tokenizer = load_tokenizer(run / "tokenizer");
  return saved;
}

SavedModel open_huggingface(const Path& folder) {
  const models::Gpt2Folder found = models::open_gpt2_folder(folder);
  SavedModel saved;
  saved.model = std::make_unique<models::Gpt2>(found.config);
  models::load_gpt2(found, *saved.model);
  saved.stored = found.stored;
  if (fs::exists(folder / "vocab.json") && fs::exists(folder / "merges.txt"))
    saved.tokenizer = load_tokenizer(folder);
  return saved;
}

}  // namespace

SavedModel open_saved_model(const Path& path) {
  SavedModel saved;
  if (fs::exists(path / "manifest.json")) {
    saved = open_checkpoint(path);
  } else if (fs::exists(path / "run.json")) {
    std::vector<std::string> problems;
    const auto newest = newest_checkpoint(path / "checkpoints", problems);
    for (const std::string& p : problems) log_warning("a checkpoint is passed over: {}", p);
    if (!newest) throw DataError("E0641", "the run has no whole checkpoint").at(path.string());
    saved = open_checkpoint(*newest);
  } else if (models::is_gpt2_folder(path)) {
    saved = open_huggingface(path);
  } else {
    throw UserError("E0718", "this is no run, checkpoint or model folder")
        .at(path.string())
        .need(
            "a run directory (run.json), a checkpoint (manifest.json), or a Hugging Face GPT-2 "
            "folder (config.json and model.safetensors)");
  }
  saved.model->eval();
  if (saved.stored.empty())
    for (const VariablePtr& p : saved.model->parameters())
      saved.stored[p->name.str()] = {p->name.str(), false};
  return saved;
}

}  // namespace aloft
