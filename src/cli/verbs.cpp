#include "cli/verb.h"

namespace aloft::cli {

Action report_verb(CLI::App& app);
Action train_verb(CLI::App& app);

const std::vector<Verb>& verbs() {
  static const std::vector<Verb> all = {
      {"train", "Train a model as a recipe says",
       "aloft train recipes/gpt-cpp.toml --set train.steps=100 --out runs/first", train_verb},
      {"report", "Make report.html of a run anew", "aloft report runs/first", report_verb},
  };
  return all;
}

}  // namespace aloft::cli
