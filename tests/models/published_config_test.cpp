// config.json of transformers, for every family that has one: what is written of settings that
// follow from others, and that nothing is taken which is not known.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "models/huggingface_config.h"
#include "models/llama.h"
#include "models/qwen2.h"
#include "temporary_folder.h"

namespace aloft::models {
namespace {

using nlohmann::json;
using I = std::int64_t;

class PublishedConfig : public testing::Test {
 protected:
  Path write(const json& config) {
    TemporaryFolder::put(folder_ / "config.json", config.dump());
    return folder_ / "config.json";
  }

  std::string refusal_of(const json& config) {
    try {
      read_huggingface_config(write(config));
    } catch (const DataError& e) {
      EXPECT_EQ(e.code(), "E0631");
      return e.what();
    }
    return "none";
  }

 private:
  TemporaryFolder folder_;
};

std::vector<ModelSpec> published_specs() {
  std::vector<ModelSpec> all;
  for (const ModelFamily& f : families())
    if (!f.published.model_type.empty()) {
      all.push_back({&f, f.defaults()});
      if (f.find("vocab")) all.back().settings["vocab"] = I{300};
    }
  EXPECT_GE(all.size(), 3U);
  return all;
}

TEST_F(PublishedConfig, AKeyThatNobodyKnowsIsRefusedByName) {
  for (const ModelSpec& spec : published_specs()) {
    const json plain = huggingface_config(spec);
    EXPECT_EQ(refusal_of(plain), "none") << plain;
    for (const char* key : {"logit_scale", "rope_scaling", "final_logit_softcapping", "qk_norm"})
      for (const json& value : {json(0.5), json(true), json("linear")}) {
        json config = plain;
        config[key] = value;
        const std::string said = refusal_of(config);
        EXPECT_NE(said.find(std::string(key) + " is " + value.dump() + ", which is not known here"),
                  std::string::npos)
            << spec.family->name << ": " << said;
      }
    json empty = plain;  // says nothing
    empty["rope_scaling"] = nullptr;
    EXPECT_EQ(refusal_of(empty), "none");
    json nested = plain;
    nested["rope_scaling"] = {{"type", "linear"}, {"factor", 2.0}};
    EXPECT_NE(refusal_of(nested).find("rope_scaling."), std::string::npos) << spec.family->name;
  }
}

// 0 is ours: what stands in the file is what the model has.
TEST_F(PublishedConfig, WhatFollowsFromOthersIsWrittenAsItIs) {
  for (const I heads : {1, 4, 8})
    for (ModelSpec& spec : published_specs()) {
      if (!spec.find("kv_heads")) continue;
      spec.settings["heads"] = heads, spec.settings["dim"] = I{64};
      spec.settings["kv_heads"] = spec.settings["hidden"] = I{0};
      EXPECT_EQ(spec.whole("kv_heads"), heads);
      const json config = huggingface_config(spec);
      EXPECT_EQ(config.at("num_key_value_heads"), heads) << spec.family->name;
      EXPECT_EQ(config.at("intermediate_size"), gated_width(64));
      const ModelSpec read = read_huggingface_config(write(config));
      EXPECT_EQ(read.whole("kv_heads"), heads);
      EXPECT_EQ(parameter_count(read), parameter_count(spec));
    }
}

// transformers assumes other things of each family where a file does not say.
TEST_F(PublishedConfig, WhatIsMissingIsWhatTheFamilyAssumes) {
  const auto kv_heads = [&](const char* type) {
    return read_huggingface_config(write({{"model_type", type}, {"num_attention_heads", 64}}))
        .whole("kv_heads");
  };
  EXPECT_EQ(kv_heads("llama"), 64);
  EXPECT_EQ(kv_heads("qwen2"), 32);
  const json all_heads{
      {"model_type", "qwen2"}, {"num_attention_heads", 64}, {"num_key_value_heads", nullptr}};
  EXPECT_EQ(read_huggingface_config(write(all_heads)).whole("kv_heads"), 64);
  const json mistral{{"model_type", "mistral"}, {"sliding_window", nullptr}};
  EXPECT_EQ(read_huggingface_config(write(mistral)).whole("kv_heads"), 8);
  EXPECT_NE(refusal_of({{"model_type", "mistral"}}).find("sliding_window is missing"),
            std::string::npos);
  EXPECT_NE(refusal_of({{"model_type", "mistral"}, {"sliding_window", 64}}).find("64"),
            std::string::npos);
}

// A family's published size and its config's defaults are said once.
template <class C>
void expect_begins_as(const char* family, const char* size) {
  const SettingValues row = settings_of_size(*find_family(family), size);
  EXPECT_EQ(config_of<C>(row), C{}) << size;
  const ModelSize* named = find_family(family)->size(size);
  for (const char* key : {"layers", "heads", "kv_heads", "dim", "hidden", "context", "vocab"})
    EXPECT_TRUE(named->settings.contains(key)) << key;
}

TEST_F(PublishedConfig, AConfigBeginsAsTheSizeThatItIsOf) {
  expect_begins_as<LlamaConfig>("llama", "llama-100m");
  expect_begins_as<Qwen2Config>("qwen2", "qwen2-0.5b");
  EXPECT_EQ(find_family("llama")->defaults().at("dim"), find_family("qwen2")->defaults().at("dim"));
}

}  // namespace
}  // namespace aloft::models
