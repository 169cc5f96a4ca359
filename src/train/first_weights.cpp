#include "train/first_weights.h"

#include "base/error.h"
#include "models/huggingface.h"
#include "recipe/what_lies_there.h"

namespace aloft {

std::vector<std::string> load_first_weights(const Recipe& recipe, nn::Module& model) {
  if (recipe.model.init.empty()) return {};
  const Path path = recipe.model.init;
  if (!models::is_huggingface_folder(path)) {
    DataError e("E0632", "the folder that the run begins from has no weights");
    e.add_line("at", path.string());
    say_what_lies(e, path, path.string(), "model.safetensors, or model.safetensors.index.json");
    throw e;
  }
  const models::HuggingFaceFolder folder = models::open_huggingface(path);
  models::load_huggingface(folder, model);
  return folder.fresh;
}

}  // namespace aloft
