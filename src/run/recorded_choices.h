// What a run chose by measurement, as its record says, and as another run takes it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "plan/choices.h"
#include "precision/recipe.h"

namespace aloft {

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
