#include "train/first_weights.h"

#include "models/huggingface.h"

namespace aloft {

void load_first_weights(const Recipe& recipe, nn::Module& model) {
  if (recipe.model.init.empty()) return;
  models::load_huggingface(models::open_huggingface(recipe.model.init), model);
}

}  // namespace aloft
