#include "tasks/features.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "frontend/description.h"
#include "models/text_classifier.h"

namespace aloft {

bool takes_features(const models::ModelFamily& f) {
  return f.make_classifier && !models::reads_text(f);
}

namespace {
// Kinds of tokens that a classifier of texts knows, of whatever data.
std::int64_t token_types_of(models::ModelSpec spec) {
  for (const models::ModelSetting& s : spec.family->settings)
    if (s.role.is_of_data && spec.whole(s.key) == 0)
      spec.settings[std::string(s.key)] =
          std::max<std::int64_t>(1, static_cast<std::int64_t>(s.limits.least));
  const OnlyDescribed scope;
  return models::make_classifier(spec)->of_texts()->token_types();
}
}  // namespace

std::vector<Column> input_columns(const models::ModelSpec& spec, const SettingValues& facts) {
  if (!models::reads_text(*spec.family)) return {features_column(spec, facts)};
  const auto said = facts.find("length");
  const std::int64_t length =
      said == facts.end() ? spec.whole("context") : std::get<std::int64_t>(said->second);
  return {{"tokens", DType::I32, {length}, spec.whole("vocab")},
          {"types", DType::I32, {length}, token_types_of(spec)},
          {"lengths", DType::I32, {}, length + 1}};
}

Column features_column(const models::ModelSpec& spec, const SettingValues& facts) {
  const auto known = [&](std::string_view key) -> std::int64_t {
    if (const std::int64_t own = spec.whole(key);
        own > 0 && spec.family->find(key)->role.is_of_data)
      return own;
    const auto it = facts.find(key);
    return it == facts.end() ? 0 : std::get<std::int64_t>(it->second);
  };
  const bool reads_images = spec.find("channels") != nullptr;
  const std::int64_t features = known("features");
  if (!reads_images && features > 0) return {"features", DType::F32, {features}, 0};
  std::vector<std::int64_t> image{known("channels"), known("height"), known("width")};
  if (reads_images && image[0] > 0 && image[1] > 0 && image[2] > 0)
    return {"features", DType::F32, image, 0};
  throw UserError("E0726", "what an example's features are is not known")
      .saw("a " + std::string(spec.family->name) + ", and data that does not say")
      .need(reads_images ? "channels, height and width" : "model.features")
      .advice(reads_images ? "--set data.shape=[1,28,28]" : "--set model.features=N");
}

Column targets_column(const models::ModelSpec& spec, const SettingValues& facts) {
  const std::int64_t numbers = spec.whole("classes");
  // A class more than the data has is never right; a number more has no target.
  if (const auto said = facts.find("classes");
      numbers > 0 && said != facts.end() && std::get<std::int64_t>(said->second) != numbers)
    throw UserError("E0716", "the data does not fit the model's classes")
        .saw(fmt::format("model.classes = {}, and {} numbers an example", numbers,
                         str(said->second)))
        .need("exactly " + str(said->second));
  return {"targets", DType::F32, {numbers}, 0};
}

}  // namespace aloft
