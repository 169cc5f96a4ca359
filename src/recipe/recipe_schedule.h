// Inside: what is wrong with the section [schedule] of a recipe beyond its values one by one.
#pragma once

#include <optional>
#include <string>

#include "recipe/recipe.h"

namespace aloft {

// A schedule that does not work out: the key that is to blame, what was seen, with where it was
// set, and what must be, a sentence.
struct ScheduleProblem {
  std::string key, saw, need;
};

// Nothing where it works out. Where the recipe counts in epochs, the length of the run is the
// data's to say, and is not judged.
std::optional<ScheduleProblem> schedule_problem(const Recipe& recipe);

}  // namespace aloft
