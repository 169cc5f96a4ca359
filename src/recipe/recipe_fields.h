// The keys of a recipe: name, meaning, where the value lies, what is allowed.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "recipe/recipe.h"

namespace aloft {

// A group in run.json and in a recipe's inline table: the keys that it sets.
void to_json(nlohmann::json& json, const ParameterGroup& group);

// What another value means for a run that goes on from a checkpoint (resume_changes.h).
enum class OnResume {
  Free,     // nothing that is learnt depends on it, and nothing that the run leaves
  Course,   // nothing that is learnt, but when the run ends or what it leaves: said, and recorded
  Changes,  // the training goes on otherwise from here: said, and recorded
  Data,     // allowed where the data behind it is the same
  Fixed,    // the weights or their state would mean something else: refused
};

struct RecipeField {
  using Target = std::variant<std::int64_t*, std::uint64_t*, double*, bool*, std::string*,
                              std::vector<std::string>*, std::vector<double>*,
                              std::vector<std::int64_t>*, std::vector<ParameterGroup>*>;
  OnResume on_resume;
  std::string key;  // "train.batch"
  std::string_view doc;
  Target target;
  double least = 0, most = 0;                  // numbers: allowed range, where least < most
  std::vector<std::string_view> choices = {};  // strings: allowed words; empty: any
  bool or_none = false;                        // strings: "" is allowed besides the words
  std::string_view resumed = {};               // of a setting: what meaning_on_resume() says
  std::vector<std::string_view> kinds = {};    // the kinds that alone read it; empty: any
  bool is_below = false;                       // a number: `most` itself is too much
};

// What another value of the key means for a run that goes on, or why it is refused; "" where it
// means nothing (OnResume::Free).
std::string_view meaning_on_resume(const RecipeField& field);

// Every key but those of [precision], which precision/ reads; of [model] those of its family.
std::vector<RecipeField> recipe_fields(Recipe& recipe);

}  // namespace aloft
