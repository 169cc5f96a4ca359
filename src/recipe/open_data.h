// The data of a recipe: text that is packed into a cache, or tokens that lie in files already.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "data/pack.h"
#include "recipe/recipe.h"

namespace aloft {

// Opens the recipe's data: its text, or the token files that it names instead, and says which files
// of it are odd (say_odd_files). DataError E0523 where a tokenizer is given that did not make the
// tokens; UserError E0717 of need_tokenizer_of_init; Interrupted (interrupt.h), and what was half
// made is removed.
Dataset open_data(const Recipe& recipe, bool quiet);
// UserError E0717 where the run begins from a folder without a tokenizer and the recipe says none:
// a new one would give ids that mean something else to the folder's weights.
void need_tokenizer_of_init(const Recipe& recipe);
// Says which files of a folder or glob were left out (where `quiet`, only those that cannot be
// opened), and which were taken because they were named although they may be no text.
void say_odd_files(const Dataset& data, bool quiet);
// The same of a text, where the cache holds it already: nothing is made or said. By its signature,
// without a look at the text.
std::optional<Dataset> cached_data(const Recipe& recipe);
std::optional<Dataset> cached_data(const Recipe& recipe, std::uint64_t signature);
// The files of the recipe's text as they are now; none where it names token files instead.
// DataError of data/corpus.h.
std::vector<CorpusFile> files_of_text(const Recipe& recipe);
// What the data says of the model's settings: ids that it must have at least; nothing where the
// recipe's model.vocab alone can say it. UserError E0722 where nothing does.
SettingValues facts_of(const Recipe& recipe, const Dataset& data);

}  // namespace aloft
