// config.json of transformers, for every family that has one: what is written of settings that
// follow from others, and that nothing is taken which is not known.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "models/huggingface_config.h"
#include "models/llama.h"
#include "models/qwen2.h"
#include "parity/parity_row.h"
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
    for (const char* key : {"logit_scale", "rope_scaling", "rope_scaling.alpha", "qk_norm"})
      for (const json& value : {json(0.5), json(true), json("linear")}) {
        const std::string name(key);
        const auto dot = name.find('.');
        json config = plain;
        if (dot == std::string::npos)
          config[name] = value;
        else
          config[name.substr(0, dot)][name.substr(dot + 1)] = value;
        const std::string said = refusal_of(config);
        EXPECT_NE(said.find(name + " is " + value.dump() + ", which is not known here"),
                  std::string::npos)
            << spec.family->name << ": " << said;
      }
    json empty = plain;  // says nothing
    empty["rope_scaling"] = nullptr;
    EXPECT_EQ(refusal_of(empty), "none");
    json nested = plain;
    nested["rope_scaling"] = {{"type", "ntk"}, {"factor", 2.0}};
    EXPECT_NE(refusal_of(nested).find("rope_scaling."), std::string::npos) << spec.family->name;
  }
}

// How a value of config.json is named once it was read.
SettingValue read_setting(const ModelSpec& spec, const char* key) { return *spec.find(key); }

// transformers 4 and 5 say the same in different places.
TEST_F(PublishedConfig, BothSpellingsAreTheSameModel) {
  const struct {
    json older, newer;
  } pairs[] = {
      {{{"model_type", "llama"},
        {"torch_dtype", "bfloat16"},
        {"rope_theta", 500000.0},
        {"rope_scaling",
         {{"rope_type", "llama3"},
          {"factor", 8.0},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 8192}}}},
       {{"model_type", "llama"},
        {"dtype", "bfloat16"},
        {"rope_parameters",
         {{"rope_type", "llama3"},
          {"rope_theta", 500000.0},
          {"factor", 8.0},
          {"low_freq_factor", 1.0},
          {"high_freq_factor", 4.0},
          {"original_max_position_embeddings", 8192}}}}},
      {{{"model_type", "qwen2"},
        {"rope_theta", 1e6},
        {"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}},
       {{"model_type", "qwen2"},
        {"rope_parameters", {{"rope_type", "linear"}, {"rope_theta", 1e6}, {"factor", 2.0}}}}},
      {{{"model_type", "gpt_neox"}, {"rotary_emb_base", 20000}, {"rotary_pct", 0.5}},
       {{"model_type", "gpt_neox"},
        {"rope_parameters",
         {{"rope_type", "default"}, {"rope_theta", 20000}, {"partial_rotary_factor", 0.5}}}}},
      {{{"model_type", "gemma3_text"},
        {"rope_theta", 1e6},
        {"rope_local_base_freq", 5000.0},
        {"rope_scaling", {{"rope_type", "linear"}, {"factor", 8.0}}}},
       {{"model_type", "gemma3_text"},
        {"rope_parameters",
         {{"full_attention", {{"rope_type", "linear"}, {"rope_theta", 1e6}, {"factor", 8.0}}},
          {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 5000.0}}}}}}},
      {{{"model_type", "phi3"},
        {"original_max_position_embeddings", 4096},
        {"max_position_embeddings", 131072},
        {"hidden_size", 32},
        {"num_attention_heads", 4},
        {"partial_rotary_factor", 0.5},
        {"rope_scaling", {{"type", "su"}, {"short_factor", {1.0, 1.5}}, {"long_factor", {2, 8}}}}},
       {{"model_type", "phi3"},
        {"original_max_position_embeddings", 4096},
        {"max_position_embeddings", 131072},
        {"hidden_size", 32},
        {"num_attention_heads", 4},
        {"rope_parameters",
         {{"rope_type", "longrope"},
          {"rope_theta", 10000.0},
          {"partial_rotary_factor", 0.5},
          {"original_max_position_embeddings", 4096},
          {"short_factor", {1.0, 1.5}},
          {"long_factor", {2, 8}}}}}},
  };
  parity::ParityRow row("config.json", "spellings of transformers 4 and 5 that are two models", 0);
  for (const auto& [older, newer] : pairs) {
    const ModelSpec spec = read_huggingface_config(write(older));
    const bool is_same = read_huggingface_config(write(newer)).settings == spec.settings;
    row.see(is_same ? 0 : 1, 0, 1, older.dump());
    // Angles that are said twice, and not alike.
    json both = older;
    both["rope_parameters"] = {{"factor", 3.0}};
    if (older.contains("rope_scaling") && older["rope_scaling"].contains("factor"))
      EXPECT_NE(refusal_of(both).find("rope_parameters.factor"), std::string::npos) << older;
    // What is written is read as the same, and has no key that is not needed.
    const json written = huggingface_config(spec);
    const ModelSpec again = read_huggingface_config(write(written));
    for (const ModelSetting& s : spec.family->settings)
      if (!s.role.derived) EXPECT_EQ(*again.find(s.key), *spec.find(s.key)) << s.key;
    EXPECT_FALSE(written.contains("rope_parameters")) << written;
  }
}

TEST_F(PublishedConfig, AnglesThatCannotBeAreRefused) {
  const auto refused = [&](const json& scaling) {
    return refusal_of({{"model_type", "llama"}, {"rope_scaling", scaling}});
  };
  EXPECT_EQ(refused({{"rope_type", "dynamic"}, {"factor", 2.0}}), "none");
  EXPECT_NE(refused({{"rope_type", "linear"}}).find("needs a positive factor"), std::string::npos);
  // Without a factor transformers opens none of these, though the lengths would give one.
  for (const char* kind : {"yarn", "llama3"}) {
    const std::string said =
        refused({{"rope_type", kind}, {"original_max_position_embeddings", 1024}});
    EXPECT_NE(said.find("needs a positive factor"), std::string::npos) << said;
    EXPECT_NE(said.find(kind), std::string::npos) << said;
  }
  EXPECT_EQ(refused({{"rope_type", "yarn"}, {"factor", 2.0}}), "none");
  EXPECT_NE(refused({{"rope_type", "llama3"}, {"factor", 8.0}}).find("0 < low < high"),
            std::string::npos);
  EXPECT_NE(refused({{"rope_type", "longrope"}, {"short_factor", {1.0}}}).find("one a pair"),
            std::string::npos);
  EXPECT_NE(refusal_of({{"model_type", "llama"}, {"partial_rotary_factor", 0.5}})
                .find("partial_rotary_factor is 0.5, which is not known here"),
            std::string::npos);
}

// What stands in the files of models that people have, besides sizes and what every family says.
TEST_F(PublishedConfig, FilesOfKnownModelsAreTaken) {
  const auto files = parse_json(R"({
    "SmolLM2": {"model_type": "llama", "is_llama_config": true, "rope_interleaved": false,
                "pretraining_tp": 1, "rope_scaling": null, "attention_bias": false,
                "mlp_bias": false, "hidden_act": "silu", "num_key_value_heads": 3,
                "num_attention_heads": 9, "hidden_size": 576, "rope_theta": 100000,
                "transformers.js_config": {"kv_cache_dtype": {"q4f16": "float16"}}},
    "Qwen2.5": {"model_type": "qwen2", "max_window_layers": 21, "sliding_window": 32768,
                "use_mrope": false, "use_sliding_window": false, "rope_theta": 1000000.0},
    "Qwen3": {"model_type": "qwen3", "attention_bias": false, "head_dim": 128,
              "max_window_layers": 28, "sliding_window": null, "use_sliding_window": false,
              "rope_scaling": null},
    "Phi-3-mini": {"model_type": "phi3", "attention_bias": false, "attention_dropout": 0.0,
                   "auto_map": {"AutoConfig": "configuration_phi3.Phi3Config"},
                   "embd_pdrop": 0.0, "resid_pdrop": 0.0, "sliding_window": 2047,
                   "original_max_position_embeddings": 4096, "rope_scaling": null},
    "Phi-4-mini": {"model_type": "phi3", "full_attn_mod": 1, "interpolate_factor": 1,
                   "lm_head_bias": false, "mlp_bias": false, "attention_bias": false,
                   "partial_rotary_factor": 0.75, "hidden_size": 3072,
                   "num_attention_heads": 24, "num_key_value_heads": 8},
    "Gemma 2": {"model_type": "gemma2", "cache_implementation": "hybrid", "hidden_act":
                "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh",
                "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0,
                "query_pre_attn_scalar": 256, "sliding_window": 4096},
    "Gemma 3": {"model_type": "gemma3_text", "attn_logit_softcapping": null,
                "cache_implementation": "hybrid", "final_logit_softcapping": null,
                "rope_local_base_freq": 10000, "rope_scaling": null, "sliding_window": 512,
                "sliding_window_pattern": 6},
    "SmolLM3": {"model_type": "smollm3", "max_window_layers": 28, "mlp_bias": false,
                "no_rope_layer_interval": 4, "pretraining_tp": 2, "sliding_window": null,
                "use_sliding_window": false},
    "StarCoder 2": {"model_type": "starcoder2", "embedding_dropout": 0.1, "mlp_type": "default",
                    "norm_type": "layer_norm", "residual_dropout": 0.1, "sliding_window": 4096,
                    "use_bias": true},
    "Pythia": {"model_type": "gpt_neox", "hidden_act": "gelu", "rotary_emb_base": 10000,
               "rotary_pct": 0.25, "use_parallel_residual": true}
  })");
  for (const auto& [name, config] : files.items()) EXPECT_EQ(refusal_of(config), "none") << name;
  const auto changed = [&](const char* name, const char* key, const json& value) {
    json config = files.at(name);
    config[key] = value;
    return refusal_of(config);
  };
  EXPECT_NE(changed("SmolLM2", "rope_interleaved", true).find("rope_interleaved is true"),
            std::string::npos);
  EXPECT_NE(changed("Phi-4-mini", "lm_head_bias", true).find("lm_head_bias is true"),
            std::string::npos);
  EXPECT_NE(changed("Qwen2.5", "use_mrope", true).find("use_mrope is true"), std::string::npos);
  EXPECT_NE(changed("Qwen3", "quantization_config", {{"quant_method", "gptq"}})
                .find("quantization_config.quant_method is \"gptq\""),
            std::string::npos);
}

TEST_F(PublishedConfig, BlocksAreOfTwoKinds) {
  const json gemma{{"model_type", "gemma2"}, {"num_hidden_layers", 2}};
  json listed = gemma;
  listed["layer_types"] = {"full_attention", "sliding_attention"};
  EXPECT_EQ(read_setting(read_huggingface_config(write(gemma)), "layer_windows"),
            SettingValue(std::vector<I>()));
  const ModelSpec spec = read_huggingface_config(write(listed));
  EXPECT_EQ(read_setting(spec, "layer_windows"), SettingValue(std::vector<I>{0, 1}));
  EXPECT_EQ(huggingface_config(spec).at("layer_types"), listed["layer_types"]);
  listed["layer_types"] = {"full_attention"};
  EXPECT_NE(refusal_of(listed).find("layer_types: 1 entries are not one for each of 2 layers"),
            std::string::npos);
  listed["layer_types"] = {"full_attention", "chunked_attention"};
  EXPECT_NE(refusal_of(listed).find("chunked_attention"), std::string::npos);
}

// By the names that the file has, and words in one pair of quotes.
TEST_F(PublishedConfig, KeysAreNamedAsTheyAreWritten) {
  json config{{"model_type", "llama"}, {"rope_parameters", {{"rope_type", "mrope"}}}};
  EXPECT_NE(refusal_of(config).find("rope_parameters.rope_type is \"mrope\"\n"), std::string::npos)
      << refusal_of(config);
  config["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", "many"}};
  EXPECT_NE(refusal_of(config).find("rope_parameters.rope_theta is \"many\"\n"), std::string::npos)
      << refusal_of(config);
}

// 0 is ours: what stands in the file is what the model has.
TEST_F(PublishedConfig, WhatFollowsFromOthersIsWrittenAsItIs) {
  for (const I heads : {1, 4, 8})
    for (ModelSpec& spec : published_specs()) {
      if (!spec.find("kv_heads")) continue;
      spec.settings["heads"] = heads, spec.settings["dim"] = I{64};
      spec.settings["kv_heads"] = spec.settings["hidden"] = spec.settings["head_width"] = I{0};
      EXPECT_EQ(spec.whole("kv_heads"), heads);
      const json config = huggingface_config(spec);
      EXPECT_EQ(config.at("num_key_value_heads"), heads) << spec.family->name;
      EXPECT_EQ(config.at("intermediate_size"), spec.whole("hidden"));
      EXPECT_EQ(config.at("head_dim"), 64 / heads);
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
  const auto window = [&](const json& config) {
    return read_huggingface_config(write(config)).whole("window");
  };
  EXPECT_EQ(window(mistral), 0);
  EXPECT_EQ(window({{"model_type", "mistral"}}), 4096);
  EXPECT_EQ(window({{"model_type", "mistral"}, {"sliding_window", 64}}), 64);
}

TEST_F(PublishedConfig, EncodersAreReadInBothSpellings) {
  const json labels{{"0", "no"}, {"1", "perhaps"}, {"2", "yes"}};
  const json five{{"model_type", "bert"},         {"id2label", labels},
                  {"dtype", "float32"},           {"tie_word_embeddings", true},
                  {"is_decoder", false},          {"add_cross_attention", false},
                  {"classifier_dropout", nullptr}};
  const json four{{"model_type", "bert"},
                  {"id2label", labels},
                  {"torch_dtype", "float32"},
                  {"position_embedding_type", "absolute"},
                  {"gradient_checkpointing", false},
                  {"hidden_dropout_prob", 0.1},
                  {"use_cache", true}};
  const ModelSpec spec = read_huggingface_config(write(five));
  EXPECT_EQ(spec, read_huggingface_config(write(four)));
  EXPECT_EQ(spec.whole("classes"), 3);
  EXPECT_EQ(spec.whole("context"), 512);
  EXPECT_EQ(*spec.find("head_dropout"), SettingValue(-1.0));
  EXPECT_EQ(*spec.find("dropout"), SettingValue(0.1));
  json other = five;
  other["num_labels"] = 2;
  EXPECT_NE(refusal_of(other).find("id2label names 3"), std::string::npos);
  // What no text has a row for; what says nothing of classes leaves them to the data.
  const ModelSpec roberta = read_huggingface_config(
      write({{"model_type", "roberta"}, {"max_position_embeddings", 514}, {"pad_token_id", 1}}));
  EXPECT_EQ(roberta.whole("context"), 512);
  EXPECT_EQ(roberta.whole("classes"), 0);
  EXPECT_NE(refusal_of({{"model_type", "roberta"}, {"max_position_embeddings", 2}}), "none");
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
