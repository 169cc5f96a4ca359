#include "frontend/layer_names.h"

#include <cstddef>

#include "base/text.h"
#include "precision/recipe.h"

namespace aloft {

std::vector<std::string> layer_names(nn::Module& model) {
  std::vector<std::string> names;
  for (const nn::Module* m : model.modules()) {
    const std::string& path = m->path();
    names.emplace_back(listed_layer(path));
    for (const std::string& part : m->inner_layers())
      names.push_back(path.empty() ? part : path + "." + part);
  }
  return names;
}

std::string some_of(std::vector<std::string> names) {
  constexpr std::size_t kShown = 8;
  const bool are_more = names.size() > kShown;
  if (are_more) names.resize(kShown);
  return join(names, ", ") + (are_more ? ", ..." : "");
}

}  // namespace aloft
