// Inside: the tokenizer of a run that goes on, which lies in its directory.
#pragma once

#include "recipe/recipe.h"

namespace aloft {

// Where a run keeps it.
Path own_tokenizer(const Path& run);

// Whether the tokenizer that the recipe names is there, and the run's; that it cannot be read is
// said. UserError E0817: it is another one.
bool has_given_tokenizer(const Recipe& recipe, const Path& run);

}  // namespace aloft
