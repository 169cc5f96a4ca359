#include "recipe/settle_precision.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "passes/low_kernels.h"
#include "precision/recipe_words.h"
#include "precision/rules.h"
#include "recipe/choose_layers.h"
#include "recipe/missing_types.h"

namespace aloft {

namespace {
double ratio_of(const MeasuredRates& rates) {
  return rates.f32_gflops > 0 ? rates.bf16_gflops / rates.f32_gflops : 0;
}

std::string numbers_of(const MeasuredRates& rates) {
  return fmt::format("bf16 {:.0f} GFLOP/s, f32 {:.0f} GFLOP/s on a large product ({:.2f}x)",
                     rates.bf16_gflops, rates.f32_gflops, ratio_of(rates));
}

MeasuredChoice measured_choice(const MeasuredRates& rates, const Capability& here) {
  PrecisionRecipe best;
  const bool has_low = here.stores(best.low);
  best.level = has_low && ratio_of(rates) >= kWorthIt ? Level::O2 : Level::O0;
  best.auto_reason = has_low ? numbers_of(rates) : std::string(text_of(Reason::NoLowType));
  return precision_choice(best);
}

// On one line, and no command to a terminal: records come from anybody.
std::string plain(const std::string& text) {
  const std::string quoted = in_quotes(text, text.size());
  return quoted.substr(1, quoted.size() - 2);
}

// Records of programs before do not say what was asked for.
void say_kept(const MeasuredChoice& choice, const std::string& asked) {
  if (choice.asked.empty() || choice.asked == asked) return;
  log_warning(
      "precision {}: what was chosen for {} is kept, and nothing is measured; a new run (another "
      "--out, without --choices) chooses anew",
      asked, plain(choice.asked));
}

UserError cannot_hold(const MeasuredChoice& choice) {
  UserError e("E0829", "what was chosen by measurement cannot be taken here");
  e.add_line("saw", fmt::format("{} = {}", kPrecisionChoice, plain(choice.value)));
  e.add_line("because", choice.because.empty() ? "nothing is recorded" : plain(choice.because));
  return e;
}

// The low types that `adaptive` may give a layer: those that the device has and the recipe names.
std::vector<DType> low_types(const PrecisionRecipe& asked, const Capability& here) {
  std::vector<DType> types;
  for (const DType type : {DType::BF16, DType::F16})
    if (here.stores(type) && here.computes(type) && (asked.low_is_auto || asked.low == type))
      types.push_back(type);
  return types;
}

MeasuredChoice measured_layers(const PrecisionRecipe& asked, const Measuring& measuring,
                               const Capability& here) {
  const std::vector<DType> low = low_types(asked, here);
  if (low.empty()) {
    PrecisionRecipe wide;
    wide.auto_reason = text_of(Reason::NoLowType);
    return precision_choice(wide);
  }
  const MeasuredRates rates = measuring.rates();
  const std::vector<LayerErrors> errors = measuring.layers(low);
  PrecisionRecipe chosen = choose_layers(asked, errors, rates);
  chosen.auto_reason = describe_choice(resolve_auto(asked, chosen, ""), errors, asked.error_budget);
  MeasuredChoice choice = precision_choice(chosen);
  choice.figures = figures_of(errors);
  return choice;
}

// The level and the type that a choice names, and nothing else.
PrecisionRecipe named_by(const MeasuredChoice& choice, const Capability& here) {
  std::vector<RecipeMistake> mistakes;
  const PrecisionRecipe named = parse_precision(choice.value, mistakes);
  if (!mistakes.empty() || !named.is_resolved() || precision_choice(named).value != choice.value)
    throw cannot_hold(choice)
        .need("a level and a type, such as O2:bf16")
        .advice("bring the record back as it was, or begin a new run, which measures");
  if (named.level != Level::O0 && !here.stores(named.low))
    throw cannot_hold(choice)
        .need("a device that stores " + std::string(name_of(named.low)))
        .advice("go on where it was chosen, or begin a new run (another --out), which measures");
  return named;
}
}  // namespace

std::string describe(const MeasuredRates& rates) {
  return fmt::format("f32 {:.0f}, bf16 {:.0f} GFLOP/s ({:.2f}x){}{}", rates.f32_gflops,
                     rates.bf16_gflops, ratio_of(rates), rates.source.empty() ? "" : ", ",
                     rates.source);
}

std::string asked_of(const PrecisionRecipe& recipe) {
  const std::string level = recipe.layers_are_auto ? "adaptive"
                            : recipe.level_is_auto ? "auto"
                                                   : std::string(name_of(recipe.level));
  const bool is_either = recipe.layers_are_auto || recipe.level_is_auto;
  std::string asked = level;
  if (!recipe.low_is_auto)
    asked += ":" + std::string(recipe_word(recipe.low));
  else if (!is_either)
    asked += ":auto";
  if (recipe.layers_are_auto) asked += fmt::format(" error_budget={}", recipe.error_budget);
  return asked;
}

MeasuredChoice precision_choice(const PrecisionRecipe& settled) {
  PrecisionRecipe plain;
  plain.level = settled.level;
  if (settled.level == Level::O0) return {print_precision(plain), settled.auto_reason};
  plain.low = settled.low;
  plain.fp32_layers = settled.fp32_layers;
  plain.bf16_layers = settled.bf16_layers;
  plain.fp16_layers = settled.fp16_layers;
  return {print_precision(plain), settled.auto_reason};
}

PrecisionRecipe settle_precision(const PrecisionRecipe& recipe, Choices& choices,
                                 const Measuring& measuring, const Capability& here) {
  if (recipe.is_resolved()) {
    const bool was_chosen = !recipe.auto_reason.empty();  // and so measured before
    if (const auto missing = missing_types(recipe, here); !missing.empty()) {
      log_warning("precision {}: {}: what would be {} is f32", print_precision(recipe),
                  text_of(Reason::NoLowType), join(missing, ", "));
      for (const DType low : {DType::BF16, DType::F16})
        if (!here.stores(low) || !here.computes(low)) no_low_type_is_told(low, here.stores(low));
      return recipe;
    }
    if (was_chosen || recipe.level == Level::O0 || !measuring.rates) return recipe;
    const MeasuredRates rates = measuring.rates();
    if (recipe.low == DType::BF16 && ratio_of(rates) <= 1)
      log_warning("bf16 is no faster than fp32 on this machine: {}. O0 may train faster.",
                  numbers_of(rates));
    return recipe;
  }
  const std::string name(kPrecisionChoice);
  const bool is_wide = !recipe.level_is_auto && recipe.level == Level::O0;
  const bool can_measure = measuring.rates && (!recipe.layers_are_auto || measuring.layers);
  if (is_wide || (!can_measure && !choices.has(name)))
    return resolve_auto(recipe, PrecisionRecipe{}, "nothing was measured");
  const std::string asked = asked_of(recipe);
  if (choices.has(name)) say_kept(choices.all().at(name), asked);
  const MeasuredChoice& choice = choices.choose(name, [&] {
    MeasuredChoice made = recipe.layers_are_auto ? measured_layers(recipe, measuring, here)
                                                 : measured_choice(measuring.rates(), here);
    made.asked = asked;
    return made;
  });
  return resolve_auto(recipe, named_by(choice, here), choice.because);
}

}  // namespace aloft
