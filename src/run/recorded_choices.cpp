#include "run/recorded_choices.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "checkpoint/choices_json.h"
#include "recipe/resume_changes.h"
#include "recipe/settle_precision.h"
#include "run/run_directory.h"

namespace aloft {

using nlohmann::json;

Choices recorded_choices(const json& record, const std::string& name) {
  if (!record.is_object()) return {};
  if (const auto it = record.find("choices"); it != record.end()) {
    if (auto choices = choices_of_json(*it)) return *std::move(choices);
    throw DataError("E0643", "the run's record is damaged: its choices")
        .at(name)
        .need("an object of names, each with the texts \"value\" and \"because\"")
        .advice(
            "bring run.json back as it was; or move it away: its run goes on without it, too, "
            "with what its checkpoints say");
  }
  if (!record.contains("recipe")) return {};
  const auto settled = settled_precision(record["recipe"]);
  if (!settled || settled->auto_reason.empty()) return {};
  return Choices({{std::string(kPrecisionChoice), precision_choice(*settled)}});
}

namespace {
// What no measurement gives, and the run did not train in.
void refuse_edited(const json& record, const Choices& choices, const std::string& name) {
  const auto it = choices.all().find(std::string(kPrecisionChoice));
  if (it == choices.all().end()) return;
  std::vector<std::string> possible = {"O0", "O2:bf16"};
  const auto settled = settled_precision(record.value("recipe", json()));
  if (settled) possible.push_back(precision_choice(*settled).value);
  if (std::ranges::find(possible, it->second.value) != possible.end()) return;
  throw UserError("E0829", "the run's choice is not one that it can have made")
      .at(name)
      .saw(in_quotes(it->first) + " = " + in_quotes(it->second.value))
      .need("what `auto` chooses, O0 or O2:bf16, or what the run trained in")
      .advice("bring run.json back as it was, or leave --choices out");
}
}  // namespace

Choices choices_of_run(const std::string& run) {
  if (run.empty())
    throw UserError("E0829", "no run is named whose choices are to be taken")
        .saw("--choices \"\"")
        .need("a run directory")
        .advice("leave --choices out");
  const Path path = Path(run) / "run.json";
  const json record = read_run_record(path);
  Choices choices = recorded_choices(record, path.string());
  if (choices.all().empty())
    throw UserError("E0829", "the run chose nothing by measurement")
        .at(path.string())
        .need("a run with choices in its run.json: one whose precision was `auto`")
        .advice("leave --choices out");
  refuse_edited(record, choices, path.string());
  return choices;
}

void check_choices(const Choices& choices, const PrecisionRecipe& asked) {
  if (choices.all().empty()) return;
  for (const auto& [name, choice] : choices.all())
    if (name != kPrecisionChoice)
      throw UserError("E0829", "what was chosen by measurement cannot be taken here")
          .saw(in_quotes(name) + " = " + in_quotes(choice.value))
          .need("the names of this program: " + std::string(kPrecisionChoice))
          .advice("take the choices of a run of this program");
  const bool of_layers = !choices.all().at(std::string(kPrecisionChoice)).figures.empty();
  if (!asked.is_resolved() && of_layers != asked.layers_are_auto)
    throw UserError("E0829", "the choices are of another kind than the recipe asks for")
        .saw(of_layers ? "types of layers, as `adaptive` chooses them"
                       : "a level, as `auto` chooses it")
        .need("what `" + std::string(asked.layers_are_auto ? "adaptive" : "auto") + "` chooses")
        .advice("precision.level = \"" + std::string(of_layers ? "adaptive" : "auto") +
                "\", or the choices of another run");
  if (asked.level_is_auto || asked.layers_are_auto ||
      (asked.low_is_auto && asked.level != Level::O0))
    return;
  throw UserError("E0829", "the recipe leaves nothing to choose")
      .saw("precision " + print_precision(asked))
      .need("precision.level = \"auto\" or \"adaptive\", for choices of another run to be taken")
      .advice("leave --choices out");
}

}  // namespace aloft
