// What verbs that read a recipe without training share.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "recipe/recipe.h"
#include "train/layer_errors.h"

namespace aloft::cli {

// A recipe that counts in epochs gets its steps, by which its schedule goes: they follow from its
// tokens, which are made as training would make them where the cache has none. UserError E0725
// where its data is not there.
void settle_length_without_training(Recipe& recipe);

// UserError E0723 where the recipe asks for eager mode: then there is no program to look at.
void need_compiled(const Recipe& recipe);

// UserError E0724 where the command line sets keys that nothing reads here (recipe_unused.h);
// `what` is made of a recipe instead of a run: "a step is compiled". The file may have them.
void refuse_unread(const Recipe& recipe, bool (*is_read)(std::string_view key),
                   std::string_view what);

// Batches for `adaptive` precision: the first of the recipe's data, or where that is not there such
// as a bench makes up, which is said.
Batches batches_of(const Recipe& recipe);
// Such as a bench makes up, of the recipe's batch or so many examples, if that is less.
Batches made_up_batches(const Recipe& recipe,
                        std::int64_t rows = std::numeric_limits<std::int64_t>::max());
// What `adaptive` looks at where all is made up: more of numbers that are drawn tells nothing else.
inline constexpr MeasuredPart kMadeUpPart = {.rows = 2, .batches = 1};

}  // namespace aloft::cli
