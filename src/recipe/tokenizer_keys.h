// The keys of [data] tokenizer, by what the kinds of tokenizers say of themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "recipe/recipe_fields.h"

namespace aloft {

std::vector<RecipeField> tokenizer_fields(TokenizerSpec& spec);

// The keys of the kinds' own settings.
const std::vector<std::string>& tokenizer_setting_keys();

// What a tokenizer that the recipe wants made cannot be made by: a key, and what is wrong with it;
// two empty texts where all is well.
std::pair<std::string, std::string> tokenizer_mistake(const DataSection& data);

// Where the recipe says a path and no kind: the kind of what lies there, as if it had said so. Its
// paths are absolute by now. DataError E0503 for a damaged one; of nothing nothing is known.
void take_kind_of_path(Recipe& recipe);

}  // namespace aloft
