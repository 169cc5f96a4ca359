#include "train/first_weights.h"

#include "models/huggingface.h"

namespace aloft {

std::vector<std::string> load_first_weights(const Recipe& recipe, nn::Module& model) {
  if (recipe.model.init.empty()) return {};
  const models::HuggingFaceFolder folder = models::open_huggingface(recipe.model.init);
  models::load_huggingface(folder, model);
  return folder.fresh;
}

}  // namespace aloft
