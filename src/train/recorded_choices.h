// What runs chose by measurement (plan/choices.h), as run.json and checkpoints have it:
//   "choices": {"precision": {"value": "O2:bf16", "because": "bf16 1210 GFLOP/s, f32 410 ..."}}
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "plan/choices.h"
#include "precision/recipe.h"

namespace aloft {

nlohmann::json json_of(const Choices& choices);

// Nothing where the JSON is not of that form.
std::optional<Choices> choices_of_json(const nlohmann::json& json);

// Those of a run's record; of a run of programs before, which recorded none, what its recipe says
// that `auto` precision became. DataError E0643, at `name`, where they are damaged.
Choices recorded_choices(const nlohmann::json& record, const std::string& name);

// For a new run that is to choose as an earlier one did, whose directory is `run`. UserError E0829
// where that is empty, chose nothing, or cannot have chosen what is recorded; the errors of
// read_run_record().
Choices choices_of_run(const std::string& run);
// Whether a new run of the precision `asked` can take them, if any: UserError E0829 where that
// leaves nothing to choose, or one has a name that nothing here chooses.
void check_choices(const Choices& choices, const PrecisionRecipe& asked);

}  // namespace aloft
