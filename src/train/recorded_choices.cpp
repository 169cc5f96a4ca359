#include "train/recorded_choices.h"

#include "base/error.h"
#include "train/resume_changes.h"
#include "train/run_directory.h"
#include "train/trainer.h"

namespace aloft {

using nlohmann::json;

json json_of(const Choices& choices) {
  json out = json::object();
  for (const auto& [name, choice] : choices.all())
    out[name] = {{"value", choice.value}, {"because", choice.because}};
  return out;
}

std::optional<Choices> choices_of_json(const json& from) {
  if (!from.is_object()) return std::nullopt;
  std::map<std::string, MeasuredChoice> by_name;
  for (const auto& [name, choice] : from.items()) {
    for (const char* key : {"value", "because"})
      if (!choice.is_object() || !choice.contains(key) || !choice[key].is_string())
        return std::nullopt;
    by_name[name] = {choice["value"], choice["because"]};
  }
  return Choices(std::move(by_name));
}

Choices recorded_choices(const json& record, const std::string& name) {
  if (!record.is_object()) return {};
  if (const auto it = record.find("choices"); it != record.end()) {
    if (auto choices = choices_of_json(*it)) return *std::move(choices);
    throw DataError("E0643", "the run's record is damaged: its choices")
        .at(name)
        .need("an object of names, each with the texts \"value\" and \"because\"")
        .advice("bring run.json back as it was, or begin a new run");
  }
  if (!record.contains("recipe")) return {};
  const auto settled = settled_precision(record["recipe"]);
  if (!settled || settled->auto_reason.empty()) return {};
  return Choices({{std::string(kPrecisionChoice), precision_choice(*settled)}});
}

Choices choices_of_run(const std::string& run) {
  const Path record = Path(run) / "run.json";
  Choices choices = recorded_choices(read_run_record(record), record.string());
  if (choices.all().empty())
    throw UserError("E0829", "the run chose nothing by measurement")
        .at(record.string())
        .need("a run with choices in its run.json: one whose precision was `auto`")
        .advice("leave --choices out");
  return choices;
}

}  // namespace aloft
