// What apex's options come to, and which are refused.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/refusal.h"
#include "frontend/amp_options.h"
#include "frontend/amp_state.h"

namespace aloft::e2e {
namespace {

using amp::Options;
using nlohmann::json;

json levels_of_apex() {
  std::ifstream file("tests/fixtures/apex_signatures.json");
  return json::parse(file).at("levels");
}

std::string printed(const Options& o) { return print_precision(amp::resolve(o).recipe); }

TEST(ApexOptions, ComeToThePrecisionOfTheirLevel) {
  const std::string scale = "loss_scale=dynamic";
  EXPECT_EQ(amp::resolve({}).recipe.level, Level::O1);
  EXPECT_EQ(amp::resolve({}).recipe.low, DType::F16);
  EXPECT_EQ(printed({.opt_level = "O0"}), "O0:f16 loss_scale=none");
  EXPECT_EQ(printed({.opt_level = "O3"}), "O3:f16 keep_norms_fp32=false loss_scale=none");
  EXPECT_EQ(printed({.opt_level = "O2", .loss_scale = 64}),
            "O2:f16 keep_norms_fp32=true loss_scale=fixed(init=64.0)");
  EXPECT_EQ(printed({.opt_level = "O2", .loss_scale = "64.0"}),
            printed({.opt_level = "O2", .loss_scale = 64}));
  EXPECT_EQ(printed({.opt_level = "O2", .keep_batchnorm_fp32 = "False", .loss_scale = 64}),
            "O2:f16 keep_norms_fp32=false loss_scale=fixed(init=64.0)");
  EXPECT_EQ(printed({.opt_level = "O2:bf16", .loss_scale = 1.0}),
            printed({.opt_level = "O2", .cast_model_type = DType::BF16, .loss_scale = 1}));
  EXPECT_NE(printed({.opt_level = "O2"}).find(scale), std::string::npos);
  for (const char* level : {"O0", "O1", "O2", "O3"}) {
    const Options o{.opt_level = level};
    EXPECT_EQ(parse_precision(printed(o)), amp::resolve(o).recipe) << level;
  }
}

// A level is a name for the rest: with its options given, another one is the same.
TEST(ApexOptions, AreWhatTheySayUnderAnyLevel) {
  const auto same = [](const Options& a, const Options& b) { EXPECT_EQ(printed(a), printed(b)); };
  same({.opt_level = "O3",
        .keep_batchnorm_fp32 = true,
        .master_weights = true,
        .loss_scale = "dynamic"},
       {.opt_level = "O2"});
  same({.opt_level = "O2", .keep_batchnorm_fp32 = false, .master_weights = false, .loss_scale = 1},
       {.opt_level = "O3"});
  same({.opt_level = "O0", .cast_model_type = DType::F16}, {.opt_level = "O3"});
  same({.opt_level = "O2", .cast_model_type = DType::F32, .loss_scale = 1}, {.opt_level = "O0"});
  same({.opt_level = "O1", .patch_torch_functions = false, .loss_scale = 1}, {.opt_level = "O0"});
  same({.opt_level = "O1", .cast_model_type = DType::F32}, {.opt_level = "O1"});
  EXPECT_EQ(amp::resolve({.opt_level = "O1:bf16"}).recipe.low, DType::BF16);
}

TEST(ApexOptions, CastOutputsAsApexDoes) {
  EXPECT_EQ(amp::resolve({.opt_level = "O1"}).outputs, std::nullopt);
  for (const char* level : {"O0", "O2", "O3"})
    EXPECT_EQ(amp::resolve({.opt_level = level}).outputs, DType::F32) << level;
  EXPECT_EQ(amp::resolve({.opt_level = "O1", .cast_model_outputs = DType::F16}).outputs,
            DType::F16);
}

TEST(ApexOptions, HaveTheDefaultsOfApexsLevels) {
  const json levels = levels_of_apex();
  ASSERT_EQ(levels.size(), 4u);
  for (const auto& [name, want] : levels.items()) {
    const amp::LevelDefaults d = amp::level_defaults(*parse_level(name));
    const auto flag = [](const std::optional<bool>& f) { return f ? json(*f) : json(); };
    const json type = !d.cast_model_type                 ? json()
                      : *d.cast_model_type == DType::F16 ? json("torch.float16")
                                                         : json("torch.float32");
    EXPECT_EQ(type, want.at("cast_model_type")) << name;
    EXPECT_EQ(json(d.patch_torch_functions), want.at("patch_torch_functions")) << name;
    EXPECT_EQ(flag(d.keep_batchnorm_fp32), want.at("keep_batchnorm_fp32")) << name;
    EXPECT_EQ(flag(d.master_weights), want.at("master_weights")) << name;
    EXPECT_EQ(d.loss_scale ? json(*d.loss_scale) : json("dynamic"), want.at("loss_scale")) << name;
  }
}

TEST(ApexOptions, RefuseWhatApexRefuses) {
  const auto refused = [](const Options& o, const std::vector<std::string>& words) {
    const std::string text = refusal([&] { amp::resolve(o); });
    EXPECT_NE(text.find("E0711"), std::string::npos) << text;
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  refused({.opt_level = "01"}, {"opt_level", "\"01\"", "the letter O"});
  refused({.opt_level = "O2:f32"}, {"opt_level"});
  refused({.opt_level = "O1", .cast_model_type = DType::BF16}, {"cast_model_type", "O1:bf16"});
  refused({.opt_level = "O2", .patch_torch_functions = true}, {"patch_torch_functions", "O1"});
  refused({.opt_level = "O1", .keep_batchnorm_fp32 = true}, {"keep_batchnorm_fp32"});
  refused({.opt_level = "O2", .keep_batchnorm_fp32 = "false"}, {"\"false\"", "True"});
  refused({.opt_level = "O1", .master_weights = false}, {"master_weights", "their own masters"});
  refused({.opt_level = "O2:bf16", .cast_model_type = DType::F16}, {"f16", "bf16"});
  refused({.cast_model_outputs = DType::I32}, {"cast_model_outputs"});
  refused({.loss_scale = "dynamik"}, {"loss_scale", "dynamik"});
  refused({.loss_scale = 0}, {"loss_scale", "positive"});
  refused({.min_loss_scale = 8, .max_loss_scale = 4}, {"dynamic", "min"});
  refused({.scale_window = 0}, {"dynamic", "growth_interval"});
  refused({.num_losses = 0}, {"num_losses"});
  refused({.combine_ddp = true}, {"combine_ddp", "one process"});
  refused({.opt_level = "O1",
           .cast_model_type = DType::F16,
           .keep_batchnorm_fp32 = false,
           .num_losses = -1},
          {"cast_model_type", "keep_batchnorm_fp32", "num_losses"});
  EXPECT_EQ(refusal([] { amp::resolve({.enabled = false, .opt_level = "nothing"}); }), "");
  EXPECT_EQ(refusal([] {
              amp::resolve({.combine_grad = true,
                            .ddp_replica_count = 8,
                            .user_cast_preferred = true,
                            .check_combined_tensors = true});
            }),
            "");
}

TEST(ApexOptions, AreSaidInWords) {
  const std::string text = amp::describe({.opt_level = "O2", .loss_scale = 128});
  for (const char* word : {"O2:f16", "master_weights         true", "loss_scale             128"})
    EXPECT_NE(text.find(word), std::string::npos) << text;
}

TEST(ApexState, IsReadWithTheNumbersThatApexHas) {
  using amp::AmpState;
  const auto one = [](const std::string& scale, const std::string& unskipped) {
    return R"({"loss_scale": )" + scale + R"(, "unskipped": )" + unskipped + "}";
  };
  const auto state = [](const std::string& first, const std::string& second) {
    return R"({"loss_scaler0": )" + first + R"(, "loss_scaler1": )" + second + "}";
  };
  const std::string good = one("65536.0", "7");
  EXPECT_EQ(AmpState::parse(state(good, one("1", "9007199254740992"))),
            (AmpState{{{65536, 7}, {1, 9007199254740992}}}));
  EXPECT_EQ(AmpState::parse(state(one("0.5", "3.0"), good)), (AmpState{{{0.5, 3}, {65536, 7}}}));
  for (const char* scale :
       {"0", "0.0", "-1", "-65536.0", "1e999", "Infinity", "NaN", "null", "true"})
    EXPECT_EQ(code_of([&] { AmpState::parse(state(good, one(scale, "7"))); }), "E0832") << scale;
  for (const char* unskipped : {"-1", "1.5", "9007199254740993", "9223372036854775807",
                                "18446744073709551615", "1e300", "true", "null", "\"7\""})
    EXPECT_EQ(code_of([&] { AmpState::parse(state(one("2", unskipped), good)); }), "E0832")
        << unskipped;
  const std::string gap = R"({"loss_scaler0": )" + good + R"(, "loss_scaler2": )" + good + "}";
  EXPECT_EQ(code_of([&] { AmpState::parse(gap); }), "E0832");
  try {
    AmpState::parse(state(good, one("-2.0", "7")));
  } catch (const DataError& e) {
    expect_words(e.what(), {"loss_scaler1", "-2", "positive"});
    return;
  }
  FAIL() << "a negative scale was taken";
}

}  // namespace
}  // namespace aloft::e2e
