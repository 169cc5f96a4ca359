#include "models/model_spec.h"

#include "base/error.h"
#include "frontend/description.h"
#include "ops/extents.h"

namespace aloft::models {

const SettingValue* ModelSpec::find(std::string_view key) const {
  const auto it = settings.find(key);
  return it == settings.end() ? nullptr : &it->second;
}

std::int64_t ModelSpec::whole(std::string_view key, std::int64_t otherwise) const {
  const SettingValue* value = find(key);
  if (!value || !std::holds_alternative<std::int64_t>(*value)) return otherwise;
  const std::int64_t said = std::get<std::int64_t>(*value);
  const auto derived = family->find(key)->role.derived;
  return said == 0 && derived ? derived(settings) : said;
}

std::string describe(const ModelSpec& spec) {
  std::string out(spec.family->name);
  const char* between = ": ";
  for (const ModelSetting& s : spec.family->settings) {
    const SettingValue* found = spec.find(s.key);
    if (!found) continue;
    const SettingValue& said = *found;
    const bool is_list = std::holds_alternative<std::vector<std::int64_t>>(said) &&
                         said != SettingValue(std::vector<std::int64_t>());
    const bool is_whole = std::holds_alternative<std::int64_t>(said);
    if (!is_list && (!is_whole || spec.whole(s.key) == 0)) continue;
    out += between + std::string(s.key) + " " +
           (is_list ? str(said) : std::to_string(spec.whole(s.key)));
    between = ", ";
  }
  return out;
}

namespace {
[[noreturn]] void refuse(const ModelFamily& family, const char* need) {
  throw UserError("E0718", "the model is not of the kind that is asked for")
      .saw(std::string(family.name) + ": " + std::string(family.meaning))
      .need(need);
}

template <class M>
std::unique_ptr<M> made(std::unique_ptr<M> model, const ModelFamily& family) {
  if (!model) refuse(family, "a model from its maker, which gave null");
  return model;
}
}  // namespace

std::unique_ptr<CausalLm> make_causal_lm(const ModelSpec& spec) {
  if (!spec.family->make_causal_lm) refuse(*spec.family, "a language model");
  return made(spec.family->make_causal_lm(spec.settings), *spec.family);
}

std::unique_ptr<Classifier> make_classifier(const ModelSpec& spec) {
  if (!spec.family->make_classifier) refuse(*spec.family, "a classifier");
  return made(spec.family->make_classifier(spec.settings), *spec.family);
}

std::int64_t classes_of(const ModelSpec& spec) {
  if (spec.find("classes")) return spec.whole("classes");
  const OnlyDescribed scope;
  return make_classifier(spec)->classes();
}

std::unique_ptr<nn::Layer> make_module(const ModelSpec& spec) {
  if (spec.family->make_causal_lm) return make_causal_lm(spec);
  return make_classifier(spec);
}

std::int64_t parameter_count(const nn::Module& model) {
  std::int64_t count = 0;
  for (const VariablePtr& v : model.parameters())
    count = extent_sum(count, v->type.shape.max_numel());
  return count;
}

std::int64_t parameter_count(const ModelSpec& spec) {
  const OnlyDescribed scope;
  return parameter_count(*make_module(spec));
}

}  // namespace aloft::models
