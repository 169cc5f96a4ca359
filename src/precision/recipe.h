// What a user asks for in mixed precision: a value with a one-line text form and a JSON form.
//
//   "O2"  "O2:fp16"  "o1:bf16"  "fp16" (= O2:fp16)  "fp32" (= O0)  "auto"  "O2:auto"
//   "O2:bf16 backward=f16 deny_params=h.0.*,head.weight loss_scale=dynamic(init=1024)"
//   {"level": "O2", "type": "bf16", "backward": "f16", "deny_params": ["h.0.*"], ...}
//
// The second form is a recipe file's [precision] table; README of the forms: docs/precision.md.
// What the recipe means for an op is decided in decide.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scalar/loss_scaler.h"
#include "types/dtype.h"
#include "types/phase.h"
#include "types/product_form.h"

namespace aloft {

// The levels of apex: O0 all in f32, O1 the ops that gain by it in the low type, O2 the model in
// the low type with f32 masters, O3 all in the low type (docs/precision.md).
enum class Level : std::uint8_t { O0, O1, O2, O3 };

// "O0" .. "O3".
constexpr std::string_view name_of(Level level) {
  constexpr std::string_view names[] = {"O0", "O1", "O2", "O3"};
  return names[static_cast<int>(level)];
}

// How the loss is scaled. Auto: what the level and the types call for (scaler_rule()).
enum class ScalePolicy : std::uint8_t { Auto, None, Fixed, Dynamic };

// What lists of layers call the model itself, whose module path is empty.
inline constexpr std::string_view kRootLayer = ".";
// What they call the module of that path.
constexpr std::string_view listed_layer(std::string_view path) {
  return path.empty() ? kRootLayer : path;
}
// The layer that has the parameter: its name up to the last dot.
std::string_view layer_of_parameter(std::string_view parameter);

// How far from f32 `adaptive` lets a layer be where a recipe says nothing: a part of its norm.
inline constexpr double kErrorBudget = 0.01;

// What the key `matmul` calls a form of the products of f32: "f32" for the plain one, "bf16x6",
// "bf16x3".
constexpr std::string_view matmul_word(ProductForm form) {
  return form == ProductForm::Plain ? "f32" : name_of(form);
}

// Which op computes, and which parameter is kept, in which type.
struct PrecisionRecipe {
  Level level = Level::O0;  // what is not said below follows from it
  DType low = DType::BF16;  // BF16 or F16

  // The type used instead of `low` in one phase: BF16, F16 or F32. Update is F32 or nothing:
  // moments and master weights do not survive less.
  std::optional<DType> forward = {}, backward = {}, update = {};

  // Patterns (base/text.h, glob_match) of op names and of parameter names. Denied is kept in f32,
  // allowed is narrowed where its class alone would not be; deny wins over allow.
  std::vector<std::string> allow_ops = {}, deny_ops = {};
  // The same of parameters.
  std::vector<std::string> allow_params = {}, deny_params = {};
  // Patterns of layers (module paths; kRootLayer is the model itself): what such a module computes
  // between its children, and the parameters of its own, have this type instead of `low`, in both
  // phases. Of a layer that several match the first list decides.
  std::vector<std::string> fp32_layers = {}, bf16_layers = {}, fp16_layers = {};
  // A white list: an op of the model that is not allowed is kept in f32, whatever its class, and
  // gradients are computed in the types of what they are gradients of.
  bool only_allowed = false;

  std::optional<bool> keep_norms_fp32 = {};  // unset: the level's default (keeps_norms_fp32())

  ProductForm matmul = ProductForm::Plain;  // of products of f32; otherwise O0 or O1 only

  ScalePolicy scale = ScalePolicy::Auto;  // Auto: dynamic with f16 at O1 and O2, else none
  scalar::ScalerRule scale_values = {};   // for Fixed and Dynamic; kind is set to match

  // `auto`: to be chosen by measurement, before anything is decided with this recipe.
  bool level_is_auto = false, low_is_auto = false;
  // `adaptive`: the layers' lists are to be chosen by measurement, under O2. `low_is_auto` beside
  // it: of both low types.
  bool layers_are_auto = false;
  // What `adaptive` allows: a layer takes a type in which none of its results and gradients is
  // further from f32's than this part of its norm.
  double error_budget = kErrorBudget;
  // How an `auto` was resolved, with the measured numbers. In the JSON form only.
  std::string auto_reason = {};

  // Whether nothing is `auto` any more: amp::prepare refuses what is not (E0804).
  bool is_resolved() const { return !level_is_auto && !low_is_auto && !layers_are_auto; }
  // The low type of a phase; F32 where the recipe keeps the phase wide (O0, an override, Update).
  DType type_in(Phase phase) const;
  // The same of an op in the layer.
  DType type_in(Phase phase, std::string_view layer) const;
  // The type that the lists give the layer; nothing: none has it.
  std::optional<DType> layer_type(std::string_view layer) const;
  bool lists_layers() const {
    return !fp32_layers.empty() || !bf16_layers.empty() || !fp16_layers.empty();
  }
  // What governs the layer's own ops: without lists of others, so that layers of a type are
  // governed by the same.
  PrecisionRecipe in_layer(std::string_view layer) const;
  // Whether parameters of norms stay f32: all levels but O3, if nothing else is said.
  bool keeps_norms_fp32() const { return keep_norms_fp32.value_or(level != Level::O3); }

  friend bool operator==(const PrecisionRecipe&, const PrecisionRecipe&) = default;
};

// Inside: a mistake in a recipe: the key it stands at ("level", "loss_scale.init", ...) and a
// sentence that says what was seen and what would do.
struct RecipeMistake {
  std::string key;
  std::string text;
  friend bool operator==(const RecipeMistake&, const RecipeMistake&) = default;
};

// Inside: reads as much as it can and appends every mistake it finds; the result means nothing when
// it found one.
PrecisionRecipe parse_precision(std::string_view text, std::vector<RecipeMistake>& mistakes);

// The recipe of a text; all mistakes in one UserError E0711.
PrecisionRecipe parse_precision(std::string_view text);

// The text of a recipe: parse_precision(print_precision(r)) == r, but for auto_reason.
std::string print_precision(const PrecisionRecipe& recipe);

// Inside: patterns that match none of the names there are, each with the nearest: surely a slip,
// since they would do nothing.
std::vector<RecipeMistake> unmatched_patterns(const PrecisionRecipe& recipe,
                                              std::span<const std::string> op_names,
                                              std::span<const std::string> parameter_names,
                                              std::span<const std::string> layer_names);

// The recipe with every `auto` replaced by what was measured best: of `chosen` the level, the type
// and the layers.
PrecisionRecipe resolve_auto(PrecisionRecipe recipe, const PrecisionRecipe& chosen,
                             std::string reason);

// f32 and fp32, float32, float; f16 and fp16, float16, half; bf16 and bfloat16; in any case.
std::optional<DType> parse_float_type(std::string_view text);
// O0 .. O3, in any case.
std::optional<Level> parse_level(std::string_view text);

}  // namespace aloft
