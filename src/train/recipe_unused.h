// Keys that were given and change nothing, because another key decides otherwise (betas of plain
// SGD, the text beside token files), or because what is asked for makes no run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "train/recipe.h"

namespace aloft {

struct UnusedKey {
  std::string key, why;
};

// What a user wrote and nothing would read. A key with its default's value is not meant, and what
// the file says of a kind that the command line replaced by another is left in peace.
// With `replaced` that is told as well.
std::vector<UnusedKey> unused_keys(const Recipe& recipe, bool replaced = false);

// Whether the programs of a training step depend on a key, or the tokens of a recipe: what verbs
// read that do not train. Every key is read by a run.
bool is_read_by_a_step(std::string_view key);
bool is_read_for_tokens(std::string_view key);

}  // namespace aloft
