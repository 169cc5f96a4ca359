// Keys that were given and change nothing, because another key decides otherwise (betas of SGD,
// the text beside token files), or because what is asked for makes no run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "recipe/recipe.h"

namespace aloft {

struct UnusedKey {
  std::string key, why;
};

// What a user wrote and nothing would read, a default's value as well. What is off where it is off
// by default (nesterov = false, eval_every = 0) asks for nothing; what the file says of a kind that
// the command line replaced by another is left in peace. With `all` that is told as well, the
// defaults that nothing reads, and what is empty where something else is given; each key once.
std::vector<UnusedKey> unused_keys(const Recipe& recipe, bool all = false);

// Whether the programs of a training step depend on a key, or the tokens of a recipe: what verbs
// read that do not train. Every key is read by a run.
bool is_read_by_a_step(std::string_view key);
bool is_read_for_tokens(std::string_view key);

}  // namespace aloft
