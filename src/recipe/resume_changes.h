// What is different in a recipe that goes on with a run: each key's class (recipe_fields.h) says
// whether that is nothing, something to say, or a mistake.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "recipe/recipe.h"
#include "recipe/recipe_fields.h"

namespace aloft {

struct RecipeChange {
  std::string key;
  OnResume meaning;
  nlohmann::json before, now;
  std::string_view text = {};  // meaning_on_resume()
  std::string str() const;     // "optimizer.lr: 0.001, now 0.0005"
};

// The keys whose values differ from those of run.json's "recipe", in the order of the fields. A key
// that the record lacks is one that an earlier version did not have: it had its default.
std::vector<RecipeChange> recipe_changes(const nlohmann::json& before, const Recipe& now);

// Those of them that decide which checkpoints stay. `before`: the recipe that the newest one was
// saved under.
std::vector<RecipeChange> keep_changes(const nlohmann::json& before, const Recipe& now);

// The precision in which the run computes; nothing where the record does not say.
std::optional<PrecisionRecipe> settled_precision(const nlohmann::json& before);

// UserError E0817 where a Fixed key differs; each is listed, with what it decides of the checkpoint
// that the run goes on from, if there is one.
void refuse_fixed(const std::vector<RecipeChange>& changes, bool has_checkpoint = true);
// The same of what the recipe comes to: `differences` of the checkpoint's model (checkpoint.h).
void refuse_other_model(const std::vector<std::string>& differences);
// Says that --force goes on with other data, and what the keys that name it mean by that.
void say_other_data(std::string_view headline, const std::vector<RecipeChange>& changes);
// Where a run stands that goes on: steps made, and updates applied, which skipped ones are not.
struct StandingRun {
  std::int64_t step = 0, applied = 0;
};
// Says what changes the training to the person at the terminal: one warning, a line a key with what
// it means where the run stands, and what the next update's rate is and would have been; nothing
// there: it begins anew. A second warning says the same of what changes its course alone. With it
// train.steps, where a schedule spans them: `now` knows its length (run_length.h), `before` is of
// run.json.
void say_changes(const std::vector<RecipeChange>& changes, const nlohmann::json& before,
                 const Recipe& now, std::optional<StandingRun> stands);

}  // namespace aloft
