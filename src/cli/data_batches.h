// aloft data batches RECIPE|RUN --out F: what training is given, for other programs.
#pragma once

#include <cstdint>
#include <string>

#include "cli/shared_options.h"
#include "cli/verb.h"

namespace aloft::cli {

struct BatchesWords {
  RecipeWords recipe;  // or a run, by its path
  std::string out;
  std::int64_t steps = 4;
  bool json = false;
};
void add_batches_words(CLI::App& app, BatchesWords& words);

// Writes the file and says what is in it. UserError E0700, E0724, E0898; those of the data.
ExitCode data_batches(const BatchesWords& words);

}  // namespace aloft::cli
