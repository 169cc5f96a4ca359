// Keys that were given and change nothing, because another key decides otherwise: betas of plain
// SGD, the text beside token files.
#pragma once

#include <string>
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

}  // namespace aloft
