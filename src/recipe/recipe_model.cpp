// What [model] means.
#include <fmt/format.h>

#include "base/error.h"
#include "recipe/recipe.h"

namespace aloft {

ModelSection::ModelSection()
    : family(models::usual_family().name), settings(models::usual_family().defaults()) {}

std::int64_t ModelSection::whole(std::string_view key, std::int64_t otherwise) const {
  return models::ModelSpec{models::find_family(family), settings}.whole(key, otherwise);
}

models::ModelSpec model_spec(const Recipe& r) {
  return {models::find_family(r.model.family), r.model.settings};
}

models::ModelSpec model_spec(const Recipe& r, const SettingValues& of_data) {
  models::ModelSpec spec = model_spec(r);
  for (const models::ModelSetting& s : spec.family->settings) {
    const auto said = of_data.find(s.key);
    if (!s.role.is_of_data || said == of_data.end()) continue;
    auto& value = std::get<std::int64_t>(spec.settings.find(s.key)->second);
    const auto of_data_value = std::get<std::int64_t>(said->second);
    SettingValue checked = of_data_value;
    if (const std::string need = need_of(s, checked); !need.empty())
      throw UserError("E0716", fmt::format("the data does not fit the model's {}", s.key))
          .saw(fmt::format("the data's {}: {}", s.key, of_data_value))
          .need(need);
    if (value == 0) value = of_data_value;
    if (value == of_data_value || (s.role.may_exceed && value > of_data_value)) continue;
    throw UserError("E0716", fmt::format("the data does not fit the model's {}", s.key))
        .saw(fmt::format("model.{} = {}, the data's: {}", s.key, value, of_data_value))
        .need(fmt::format("{} {}, or 0 to take the data's",
                          s.role.may_exceed ? "at least" : "exactly", of_data_value));
  }
  return spec;
}

const TaskKind& task_kind(const Recipe& r) {
  if (const TaskKind* named = find_task(r.task.kind)) return *named;
  return usual_task(*models::find_family(r.model.family));
}

std::int64_t tokens_an_example(const Recipe& r) {
  const std::int64_t context = r.model.whole("context", 0);
  if (context == 0) return 1;
  return r.data.length > 0 ? r.data.length : context;
}

std::int64_t units_an_example(const Recipe& r) {
  return task_kind(r).unit == "tokens" ? tokens_an_example(r) : 1;
}

}  // namespace aloft
