// The records of a run's directory (run.json, data.json) from any bytes: refused as damaged, or
// compared with what is now without more than a refusal.
#include <cstdint>

#include "base/error.h"
#include "base/json.h"
#include "checkpoint/data_record.h"
#include "models/model_json.h"
#include "recipe/resume_changes.h"
#include "run/run_directory.h"

namespace {

using namespace aloft;

void compare_run(std::string_view text) {
  const nlohmann::json record = parse_run_record(text, "fuzz");
  run_name(record);
  const nlohmann::json& before = record["recipe"];
  if (const auto settled = settled_precision(before))
    ensure(settled->is_resolved(), "a settled precision is one");
  const auto changes = recipe_changes(before, Recipe());
  for (const RecipeChange& c : changes) ensure(!c.str().empty(), "a change is shown");
  try {
    refuse_fixed(changes);
  } catch (const UserError&) {
  }
}

void compare_data(std::string_view text) {
  const nlohmann::json record = parse_data_record(text, "fuzz");
  const nlohmann::json now = {{"train", {{"tokens", 9}, {"xxh3", "0123456789abcdef"}}},
                              {"validation", nullptr},
                              {"tokenizer", nullptr},
                              {"files", {{"a.txt", 9, 1}}}};
  ensure(is_same_data(record, record), "it is what it is");
  is_same_data(record, now);
  for (const auto* other : {&now, &record})
    for (const std::string& line : data_differences(record, *other))
      ensure(!line.empty(), "a difference is shown");
}

void describe_model(std::string_view text) {
  const models::ModelSpec spec = models::model_of_json(parse_json(text));
  ensure(!spec.family->misfit || !spec.family->misfit(spec.settings), "a model that can be built");
  ensure(models::json_of(models::model_of_json(models::json_of(spec))) == models::json_of(spec),
         "it is what it is");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto read : {compare_run, compare_data, describe_model}) {
    try {
      read(text);
    } catch (const DataError&) {
    }
  }
  return 0;
}
