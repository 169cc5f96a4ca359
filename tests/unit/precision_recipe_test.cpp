#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "base/error.h"
#include "base/text.h"
#include "precision/recipe.h"
#include "precision/recipe_json.h"
#include "precision/recipe_words.h"

namespace aloft {
namespace {

using enum DType;
using nlohmann::json;

TEST(Recipe, ShortForms) {
  const struct {
    const char* text;
    Level level;
    DType low;
  } rows[] = {{"O0", Level::O0, BF16},        {"O1", Level::O1, BF16},
              {"O2", Level::O2, BF16},        {"o3", Level::O3, BF16},
              {"O2:fp16", Level::O2, F16},    {"o2:BF16", Level::O2, BF16},
              {"O1:float16", Level::O1, F16}, {"O1:bfloat16", Level::O1, BF16},
              {"O3:half", Level::O3, F16},    {"fp16", Level::O2, F16},
              {"bf16", Level::O2, BF16},      {"f16", Level::O2, F16},
              {"bfloat16", Level::O2, BF16},  {"fp32", Level::O0, BF16},
              {"float32", Level::O0, BF16},   {" O2:f16 ", Level::O2, F16}};
  for (const auto& row : rows) {
    const PrecisionRecipe r = parse_precision(row.text);
    EXPECT_EQ(r.level, row.level) << row.text;
    EXPECT_EQ(r.low, row.low) << row.text;
    EXPECT_TRUE(r.is_resolved()) << row.text;
  }
}

TEST(Recipe, SplitProductsAreForF32Alone) {
  for (const char* text : {"O0 matmul=bf16x6", "O1:fp16 matmul=bf16x3", "O0 matmul=F32"}) {
    const PrecisionRecipe r = parse_precision(text);
    EXPECT_EQ(parse_precision(print_precision(r)), r) << print_precision(r);
  }
  EXPECT_EQ(parse_precision("O0 matmul=bf16x6").matmul, ProductForm::Bf16x6);
  EXPECT_EQ(parse_precision("O0").matmul, ProductForm::Plain);
  const struct {
    const char *text, *says;
  } refused[] = {{"O2 matmul=bf16x6", "use level O0"},
                 {"O3:fp16 matmul=bf16x3", "use level O0"},
                 {"auto matmul=bf16x6", "settled"},
                 {"O0 matmul=bf16x5", "did you mean"},
                 {"O0 matmul=true", "need a text"}};
  for (const auto& row : refused) {
    std::vector<RecipeMistake> mistakes;
    parse_precision(row.text, mistakes);
    ASSERT_EQ(mistakes.size(), 1u) << row.text;
    EXPECT_EQ(mistakes[0].key, "matmul");
    EXPECT_NE(mistakes[0].text.find(row.says), std::string::npos) << mistakes[0].text;
  }
}

TEST(Recipe, AutoIsKeptUntilResolved) {
  const PrecisionRecipe both = parse_precision("auto");
  EXPECT_TRUE(both.level_is_auto && both.low_is_auto);
  const PrecisionRecipe type = parse_precision("O1:auto");
  EXPECT_TRUE(!type.level_is_auto && type.low_is_auto);
  const PrecisionRecipe level = parse_precision("auto:fp16");
  EXPECT_TRUE(level.level_is_auto && !level.low_is_auto);
  const PrecisionRecipe done =
      resolve_auto(type, parse_precision("O2:fp16"), "f16 1.4x f32, bf16 1.1x");
  EXPECT_TRUE(done.is_resolved());
  EXPECT_EQ(done.level, Level::O1);
  EXPECT_EQ(done.low, F16);
  EXPECT_EQ(done.auto_reason, "f16 1.4x f32, bf16 1.1x");
  EXPECT_EQ(resolve_auto(parse_precision("O2"), parse_precision("O0"), "x"), parse_precision("O2"));
}

TEST(Recipe, LongTextAndTableAgree) {
  const PrecisionRecipe text = parse_precision(
      "O2:bf16 backward=fp16 update=fp32 deny_params=h.0.*,head.weight allow_ops=softmax "
      "keep_norms_fp32=false loss_scale=dynamic(init=1024,growth_interval=100)");
  std::vector<RecipeMistake> mistakes;
  const PrecisionRecipe table = precision_of_json(json::parse(R"({
    "level": "O2", "type": "bfloat16", "backward": "half", "update": "float32",
    "deny_params": ["h.0.*", "head.weight"], "allow_ops": ["softmax"], "keep_norms_fp32": false,
    "loss_scale": {"kind": "dynamic", "init": 1024, "growth_interval": 100}})"),
                                                  mistakes);
  EXPECT_TRUE(mistakes.empty());
  EXPECT_EQ(text, table);
  EXPECT_EQ(text.scale_values.init, 1024.0f);
  EXPECT_EQ(text.scale_values.growth_interval, 100);
  EXPECT_EQ(precision_of_json("O2:fp16", mistakes), parse_precision("O2:fp16"));
}

TEST(Recipe, PrintsWhatParsesBack) {
  for (const char* text :
       {"O0",
        "O1:bf16",
        "O2:f16",
        "O3:bf16",
        "auto",
        "auto:f16",
        "O2:auto",
        "O2:bf16 forward=bf16 backward=f16 update=f32",
        "O0:f16",
        "O2:bf16 allow_ops=exp,log deny_ops=mat* allow_params=a.b deny_params=h.*.attn.*",
        "O1:f16 allow_ops=relu only_allowed=true",
        "O1:bf16 only_allowed=true",
        "O2:f16 keep_norms_fp32=true loss_scale=none",
        "O3:f16 loss_scale=fixed",
        "O2:f16 loss_scale=fixed(init=64.0)",
        "O2:f16 loss_scale=dynamic",
        "O1:f16 loss_scale=dynamic(growth=3.0,max=1048576.0)",
        "O2:bf16 fp32_layers=.,h.*.attn bf16_layers=a fp16_layers=b.c",
        "adaptive",
        "adaptive:bf16",
        "adaptive error_budget=0.02",
        "adaptive deny_ops=exp fp32_layers=head"}) {
    const PrecisionRecipe r = parse_precision(text);
    EXPECT_EQ(print_precision(r), text);
    std::vector<RecipeMistake> mistakes;
    EXPECT_EQ(precision_of_json(json::parse(json_of(r).dump()), mistakes), r) << text;
    EXPECT_TRUE(mistakes.empty()) << text;
  }
}

TEST(Recipe, LayersHaveTypesOfTheirOwn) {
  const PrecisionRecipe r = parse_precision(
      "O2:bf16 backward=f32 fp32_layers=head,h.*.mlp fp16_layers=h.* bf16_layers=.");
  using Types = std::pair<DType, DType>;
  const auto types = [&](const PrecisionRecipe& of, std::string_view layer) {
    return Types{of.type_in(Phase::Forward, layer), of.type_in(Phase::Backward, layer)};
  };
  EXPECT_EQ(types(r, "head"), (Types{F32, F32}));
  EXPECT_EQ(types(r, "h.0.mlp"), (Types{F32, F32}));  // the first list that matches
  EXPECT_EQ(types(r, "h.0.attn"), (Types{F16, F16}));
  EXPECT_EQ(types(r, ""), (Types{BF16, BF16}));
  EXPECT_EQ(types(r, "wte"), (Types{BF16, F32}));
  EXPECT_EQ(r.type_in(Phase::Update, "h.0.attn"), F32);
  PrecisionRecipe wide = r;
  wide.level = Level::O0;
  EXPECT_EQ(types(wide, "h.0.attn"), (Types{F32, F32}));
  EXPECT_EQ(layer_of_parameter("h.0.attn.weight"), "h.0.attn");
  EXPECT_EQ(layer_of_parameter("weight"), "");
  // What governs one layer says nothing of the others, and means the same there.
  for (const char* layer : {"head", "h.0.attn", "", "wte"}) {
    const PrecisionRecipe own = r.in_layer(layer);
    EXPECT_EQ(types(own, layer), types(r, layer)) << layer;
    EXPECT_EQ(own.in_layer(layer), own) << layer;
  }
  EXPECT_EQ(r.in_layer("head"), r.in_layer("h.3.mlp"));
  EXPECT_EQ(print_precision(r.in_layer("h.0.attn")), "O2:f16");
}

TEST(Recipe, AdaptiveIsKeptUntilResolved) {
  const PrecisionRecipe asked = parse_precision("adaptive error_budget=0.02 bf16_layers=wte");
  EXPECT_TRUE(asked.layers_are_auto && asked.low_is_auto && !asked.is_resolved());
  EXPECT_EQ(asked.error_budget, 0.02);
  for (const char* same : {"adaptive error_budget=2%", "adaptive error_budget=2.0%"})
    EXPECT_EQ(parse_precision(same).error_budget, 0.02);
  const PrecisionRecipe done =
      resolve_auto(asked, parse_precision("O2:f16 fp32_layers=head"), "measured");
  EXPECT_EQ(print_precision(done), "O2:f16 fp32_layers=head bf16_layers=wte");
  EXPECT_EQ(done.auto_reason, "measured");
  EXPECT_TRUE(parse_precision("adaptive:fp16").low == F16);
}

TEST(Recipe, IsShownWithTheTypesThatRecipesWrite) {
  EXPECT_EQ(shown_precision(parse_precision("O2:f16 backward=f32 deny_params=f16.*")),
            "O2:fp16 backward=fp32 deny_params=f16.*");
  EXPECT_EQ(in_recipe_words("f32 as bf16x6, O1: f32 in and f16 out, self16 f32x"),
            "fp32 as bf16x6, O1: fp32 in and fp16 out, self16 f32x");
}

// Each text has one mistake, at the key, and the sentence holds the word.
TEST(Recipe, MistakesAreNamed) {
  const struct {
    const char *text, *key, *word;
  } rows[] = {{"", "level", "empty"},
              {"  ", "level", "empty"},
              {"02", "level", "letter O"},
              {"O4", "level", "no precision level \"O4\""},
              {"O9", "level", "one of O0, O1, O2, O3, auto, adaptive"},
              {"Adaptve", "level", "no precision level \"Adaptve\": did you mean \"adaptive\""},
              {"O2:fp8", "level", "fp16"},
              {"O2:fp32", "level", "not a low type"},
              {"O2:", "level", "no low type"},
              {"O2:bf16:x", "level", "LEVEL:TYPE"},
              {"fp16:fp16", "level", "no precision level"},
              {"O2 backwards=f16", "backwards", "\"backward\""},
              {"O2 backward=f17", "backward", "did you mean"},
              {"O2 update=fp16", "update", "always"},
              {"O2 type=f16 type=f16", "type", "twice"},
              {"O2:f16 type=bf16", "type", "already"},
              {"O2 fp16", "", "KEY=VALUE"},
              {"O2 deny_ops=", "deny_ops", "not a name pattern"},
              {"O2 deny_ops=a,,b", "deny_ops", "not a name pattern"},
              {"O2 keep_norms_fp32=yes", "keep_norms_fp32", "true or false"},
              {"O1 only_allowed=1", "only_allowed", "true or false"},
              {"adaptive error_budget=2", "error_budget", "part of 1"},
              {"adaptive error_budget=x", "error_budget", "part of 1"},
              {"adaptive error_budget=0%", "error_budget", "1%"},
              {"adaptive error_budget=x%", "error_budget", "1%"},
              {"adaptive error_budget=%", "error_budget", "1%"},
              {"O2 error_budget=0.01", "error_budget", "adaptive"},
              {"adaptive:fp32", "level", "not a low type"},
              {"adaptive matmul=bf16x3", "matmul", "settled"},
              {"O2 fp32_layers=", "fp32_layers", "not a name pattern"},
              {"O2 loss_scale=dinamic", "loss_scale", "\"dynamic\""},
              {"O2 loss_scale=0", "loss_scale", "positive"},
              {"O2 loss_scale=-8", "loss_scale", "positive"},
              {"O2 loss_scale=nan", "loss_scale", "positive"},
              {"O2 loss_scale=1e300", "loss_scale", "positive"},
              {"O2 loss_scale=dynamic(inti=1)", "loss_scale.inti", "\"init\""},
              {"O2 loss_scale=dynamic(init=x)", "loss_scale.init", "number"},
              {"O2 loss_scale=dynamic(growth_interval=0)", "loss_scale.growth_interval", "count"},
              {"O2 loss_scale=fixed(growth=2)", "loss_scale.growth", "no effect"},
              {"O2 loss_scale=dynamic(backoff=2)", "loss_scale", "backoff"},
              {"O2 loss_scale=dynamic(kind=2)", "loss_scale.kind=", "no such key"}};
  for (const auto& row : rows) {
    std::vector<RecipeMistake> mistakes;
    parse_precision(row.text, mistakes);
    ASSERT_EQ(mistakes.size(), 1u) << row.text;
    EXPECT_EQ(mistakes[0].key, row.key) << row.text << ": " << mistakes[0].text;
    EXPECT_NE(mistakes[0].text.find(row.word), std::string::npos)
        << row.text << ": " << mistakes[0].text;
  }
}

TEST(Recipe, AllMistakesComeAtOnce) {
  try {
    parse_precision("O7:fp8 backward=int8 update=bf16 denyops=x loss_scale=much");
    FAIL();
  } catch (const UserError& e) {
    EXPECT_EQ(e.code(), "E0711");
    const std::string text = e.what();
    for (const char* word : {"O7", "fp8", "int8", "update", "deny_ops", "much"})
      EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  std::vector<RecipeMistake> mistakes;
  precision_of_json(json::parse(R"({"level": 2, "type": [], "forward": {}, "deny_ops": "x",
    "allow_ops": [1, "a b"], "keep_norms_fp32": 1, "loss_scale": true, "auto_reason": 3})"),
                    mistakes);
  EXPECT_EQ(mistakes.size(), 9u);
  precision_of_json(json(3), mistakes);
  EXPECT_EQ(mistakes.size(), 10u);
}

TEST(Recipe, PatternsThatMatchNothingAreSeen) {
  const std::vector<std::string> ops = {"matmul", "softmax"};
  const std::vector<std::string> params = {"h.0.attn.weight", "head.weight"};
  const std::vector<std::string> layers = {".", "h.0.attn", "head"};
  EXPECT_TRUE(unmatched_patterns(parse_precision("O2 deny_ops=soft* deny_params=h.*.attn.*"), ops,
                                 params, layers)
                  .empty());
  const auto found = unmatched_patterns(
      parse_precision("O2 deny_ops=sofmax deny_params=g.*,head.wieght"), ops, params, layers);
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NE(found[0].text.find("\"softmax\""), std::string::npos);
  EXPECT_EQ(found[1].key, "deny_params");
  EXPECT_NE(found[2].text.find("\"head.weight\""), std::string::npos);
}

// Random texts from the parser's own words and from noise: it answers with a recipe that prints and
// parses back, or with mistakes; it never throws and never crashes.
TEST(Recipe, RandomTexts) {
  const char* pieces[] = {"O2",
                          "O0",
                          ":",
                          "bf16",
                          "f16",
                          "fp32",
                          "auto",
                          " ",
                          " ",
                          "=",
                          ",",
                          "(",
                          ")",
                          "forward=",
                          "backward=",
                          "update=f32",
                          "allow_ops=",
                          "deny_params=",
                          "keep_norms_fp32=true",
                          "only_allowed=true",
                          "loss_scale=",
                          "dynamic",
                          "fixed",
                          "none",
                          "init=",
                          "growth=",
                          "1024",
                          "1e3",
                          "-1",
                          "nan",
                          "1e999",
                          "h.*",
                          "?",
                          "\xff",
                          "\"",
                          "\\",
                          "\n",
                          "kind"};
  std::mt19937 random(17);
  int accepted = 0;
  for (int i = 0; i < 60000; ++i) {
    std::string text = random() % 4 ? "O2:f16 " : "";
    for (unsigned n = random() % 9; n > 0; --n) text += pieces[random() % std::size(pieces)];
    if (random() % 8 == 0 && !text.empty())
      text[random() % text.size()] = static_cast<char>(random());
    std::vector<RecipeMistake> mistakes;
    const PrecisionRecipe r = parse_precision(text, mistakes);
    if (!mistakes.empty()) continue;
    ++accepted;
    ASSERT_EQ(parse_precision(print_precision(r)), r) << in_quotes(text) << print_precision(r);
    ASSERT_EQ(precision_of_json(json_of(r), mistakes), r) << in_quotes(text);
  }
  EXPECT_GT(accepted, 300);
}

}  // namespace
}  // namespace aloft
