#include "cli/verb.h"

namespace aloft::cli {

Action train_verb(CLI::App& app);

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"train", "Train a model as a recipe says",
       "aloft train recipes/gpt-cpp.toml --set train.steps=100 --out runs/first", train_verb},
  };
  return all;
}

}  // namespace aloft::cli
