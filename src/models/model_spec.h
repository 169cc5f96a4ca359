// Which model, in a word: a family and its settings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "models/family.h"

namespace aloft::models {

struct ModelSpec {
  const ModelFamily* family = nullptr;
  SettingValues settings;  // values of all of the family's

  // The value of a setting; null where the family has none of the key.
  const SettingValue* find(std::string_view key) const;
  // That of a whole number, or what 0 of it stands for; `otherwise` where the family has none.
  std::int64_t whole(std::string_view key, std::int64_t otherwise = 0) const;
  friend bool operator==(const ModelSpec&, const ModelSpec&) = default;
};

// Of a config, and of the name of its family.
template <class C>
ModelSpec spec_of(std::string_view family, const C& config) {
  return {find_family(family), values_of(config)};
}

// For people: "gpt2: layers 6, heads 8, dim 256": the settings that are whole numbers, as they are
// meant; what only the data knows is left out.
std::string describe(const ModelSpec& spec);

// The model of a family of language models, or of classifiers. UserError E0718 where the spec is of
// no such family, and those of the model's class.
std::unique_ptr<CausalLm> make_causal_lm(const ModelSpec& spec);
std::unique_ptr<Classifier> make_classifier(const ModelSpec& spec);

// How many classes it tells apart: as its settings say, or else as the model does. UserErrors as of
// make_classifier().
std::int64_t classes_of(const ModelSpec& spec);
// The model as a tree of parameters, whatever it is for. UserErrors of its class.
std::unique_ptr<nn::Layer> make_module(const ModelSpec& spec);

// Numbers in all parameters of a model; of a spec without making one. UserError E0103 beyond 63
// bits.
std::int64_t parameter_count(const nn::Module& model);
std::int64_t parameter_count(const ModelSpec& spec);

}  // namespace aloft::models
