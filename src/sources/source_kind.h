// Where a run's examples may come from: a kind is a record; catalog.inc lists them.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "recipe/resume_changes.h"
#include "sources/run_data.h"

namespace aloft {

// What a run that goes on knows of its data.
struct KnownData {
  Path run;                                  // its directory
  const nlohmann::json& record;              // data.json, or what else says it; perhaps null
  const std::vector<RecipeChange>& changes;  // of its recipe
};

struct SourceKind {
  std::string_view name;
  bool is_usual = false;  // whose examples a recipe lacks that names none: one kind is
  // Whether the recipe names examples of this kind. No two kinds say so of one recipe.
  bool (*is_named)(const Recipe& recipe);
  // Opens them; says what is odd about them. DataError and UserError of data/; Interrupted
  // (interrupt.h), and what was half made is removed.
  std::unique_ptr<RunData> (*open)(const Recipe& recipe, bool quiet);
  // The same of a run that goes on: its own examples, where they can still be had.
  std::unique_ptr<RunData> (*reopen)(const Recipe& recipe, const KnownData& known, bool quiet);
  // What they say (RunData::facts), where no run is made: without opening more than must be. What
  // is not there is assumed, and that is said.
  SettingValues (*facts)(const Recipe& recipe);
};

const std::vector<SourceKind>& source_kinds();
// The kind that the recipe names, or the one that is_usual.
const SourceKind& source_of(const Recipe& recipe);

}  // namespace aloft
