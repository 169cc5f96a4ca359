#include "recipe/choose_layers.h"

#include <gtest/gtest.h>

#include <limits>

#include "checkpoint/choices_json.h"
#include "recipe/settle_precision.h"

namespace aloft {
namespace {

using enum DType;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

LayerErrors layer(const char* name, double bf16, double f16) {
  return {name, {{BF16, {bf16, bf16 / 2}}, {F16, {f16 / 2, f16}}}};
}

std::string chosen(const std::vector<LayerErrors>& errors, const MeasuredRates& rates,
                   const char* asked = "adaptive") {
  const PrecisionRecipe recipe = parse_precision(asked);
  return print_precision(resolve_auto(recipe, choose_layers(recipe, errors, rates), ""));
}

// As an accelerator multiplies, and as a processor without f16 products does.
const MeasuredRates kBoth{100, 300, "", 300}, kBf16{100, 300, "", 100};

TEST(ChooseLayers, TakesTheFastestTypeWithinTheBudget) {
  EXPECT_EQ(chosen({layer("a", 0.003, 0.0004), layer("b", 0.004, 0.0005)}, kBoth), "O2:bf16");
  EXPECT_EQ(chosen({layer("a", 0.003, 0.0004), layer("b", 0.02, 0.003)}, kBoth),
            "O2:bf16 fp16_layers=b");
  EXPECT_EQ(chosen({layer("a", 0.003, kInf), layer("b", 0.02, kInf)}, kBoth),
            "O2:bf16 fp32_layers=b");
  EXPECT_EQ(chosen({layer("a", 0.003, kNaN), layer("b", kNaN, kNaN)}, kBoth),
            "O2:bf16 fp32_layers=b");
  EXPECT_EQ(chosen({layer("a", 0.02, 0.002), layer("b", 0.03, 0.003)}, kBoth), "O2:f16");
  EXPECT_EQ(chosen({layer("a", 0.02, 0.02)}, kBoth), "O0");
  // Either phase counts.
  EXPECT_EQ(chosen({layer("a", 0.003, 0), {"b", {{BF16, {0.001, 0.5}}}}}, kBoth),
            "O2:bf16 fp32_layers=b");
}

TEST(ChooseLayers, AsksWhatATypeGains) {
  // f16 multiplies no faster than f32 there, so that no layer gains by it.
  EXPECT_EQ(chosen({layer("a", 0.003, 0.0004), layer("b", 0.02, 0.003)}, kBf16),
            "O2:bf16 fp32_layers=b");
  EXPECT_EQ(chosen({layer("a", 0.003, 0.0004)}, {100, 100, "", 100}), "O0");
}

TEST(ChooseLayers, GainsNothingByCastsAlone) {
  std::vector<LayerErrors> errors = {layer("", 0.003, 0.0004), layer("a", 0.02, 0.02)};
  errors[0].has_products = false;
  EXPECT_EQ(chosen(errors, kBoth), "O0");
  EXPECT_EQ(chosen(errors, kBoth, "adaptive bf16_layers=a"), "O2:bf16 bf16_layers=a");
  // What the recipe lists itself is left to it, and nothing joins it.
  errors.push_back(layer("b", 0.003, 0.0004));
  errors[2].has_products = false;
  EXPECT_EQ(chosen(errors, kBoth, "adaptive bf16_layers=b"),
            "O2:bf16 fp32_layers=.,a bf16_layers=b");
  errors[2].has_products = true;
  EXPECT_EQ(chosen(errors, kBoth), "O2:bf16 fp32_layers=a");
}

TEST(ChooseLayers, GoesByTheBudgetAndLeavesWhatIsListed) {
  const std::vector<LayerErrors> errors = {layer("a", 0.003, 0.0004), layer("b", 0.02, 0.003)};
  EXPECT_EQ(chosen(errors, kBoth, "adaptive error_budget=0.05"), "O2:bf16");
  EXPECT_EQ(chosen(errors, kBoth, "adaptive error_budget=0.001"), "O2:f16 fp32_layers=b");
  EXPECT_EQ(chosen(errors, kBoth, "adaptive bf16_layers=b"), "O2:bf16 bf16_layers=b");
  EXPECT_EQ(chosen(errors, kBoth, "adaptive fp32_layers=*"), "O0:bf16 fp32_layers=*");
}

TEST(ChooseLayers, APatternTakesNoLayerThatTheRecipeLists) {
  std::vector<LayerErrors> errors;
  for (const char* name : {"h.0.mlp", "h.1.mlp", "h.2.mlp"})
    errors.push_back(layer(name, 0.5, 0.5));
  errors.push_back(layer("a", 0.001, 0.5));
  EXPECT_EQ(chosen(errors, kBoth, "adaptive bf16_layers=h.1.mlp"),
            "O2:bf16 fp32_layers=h.0.mlp,h.2.mlp bf16_layers=h.1.mlp");
  EXPECT_EQ(chosen(errors, kBoth, "adaptive fp32_layers=h.1.mlp"),
            "O2:bf16 fp32_layers=h.1.mlp,h.*.mlp");
}

TEST(ChooseLayers, ListsLayersOfAKindOnce) {
  std::vector<LayerErrors> errors;
  for (int i = 0; i < 12; ++i) {
    const std::string block = "h." + std::to_string(i);
    errors.push_back(layer((block + ".mlp").c_str(), 0.5, 0.5));
    errors.push_back(layer((block + ".attn").c_str(), i == 3 ? 0.5 : 0.001, 0.5));
  }
  errors.push_back(layer("", 0.5, 0.5));
  EXPECT_EQ(chosen(errors, kBoth), "O2:bf16 fp32_layers=.,h.*.mlp,h.3.attn");
  // Nor what another pattern takes already.
  errors.clear();
  for (const char* name : {"h.0", "h.0.attn", "h.0.mlp.up", "h.1", "h.1.attn", "h.1.mlp.up"})
    errors.push_back(layer(name, 0.5, 0.5));
  errors.push_back(layer("head", 0.5, 0.5));
  errors.push_back(layer("wte", 0.001, 0.5));
  EXPECT_EQ(chosen(errors, kBoth), "O2:bf16 fp32_layers=h.*,head");
  // Not where the pattern would take others with it.
  EXPECT_EQ(chosen({layer("h.0", 0.5, 0.5), layer("h.0.a", 0.001, 0)}, kBoth),
            "O2:bf16 fp32_layers=h.0");
}

TEST(ChooseLayers, SaysWhatItFound) {
  const std::vector<LayerErrors> errors = {layer("a", 0.003, kInf), layer("b", 0.02, 0.003)};
  const PrecisionRecipe recipe = parse_precision("adaptive");
  const PrecisionRecipe types = choose_layers(recipe, errors, kBoth);
  EXPECT_EQ(describe_choice(types, errors, recipe.error_budget),
            "of 2 layers 1 bf16, 1 fp16 (error budget 1 %); bf16 everywhere: 2 % in b; fp16 "
            "everywhere: an overflow in a");
}

TEST(ChooseLayers, FiguresAreRecordedAndRead) {
  const std::vector<LayerErrors> errors = {layer("", 0.003, kInf), layer("b", 0.02, kNaN)};
  const Figures figures = figures_of(errors);
  EXPECT_EQ(figures.at(".").at("bf16 forward"), 0.003);
  EXPECT_EQ(figures.at("b").at("fp16 backward"), kInf);
  const Choices choices({{"precision", {"O2:bf16", "measured", figures}}});
  EXPECT_EQ(choices_of_json(nlohmann::json::parse(json_of(choices).dump()))->all(), choices.all());
  for (const char* damaged :
       {R"({"p": {"value": "", "because": "", "figures": []}})",
        R"({"p": {"value": "", "because": "", "figures": {"a": 1}}})",
        R"({"p": {"value": "", "because": "", "figures": {"a": {"b": "x"}}}})"})
    EXPECT_FALSE(choices_of_json(nlohmann::json::parse(damaged))) << damaged;
}

}  // namespace
}  // namespace aloft
