#include "tasks/features.h"

#include <fmt/format.h>

#include "base/error.h"

namespace aloft {

bool takes_features(const models::ModelFamily& f) { return static_cast<bool>(f.make_classifier); }

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
