#include "recipe/choose_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "precision/recipe_words.h"
#include "recipe/settle_precision.h"

namespace aloft {
namespace {

constexpr DType kLowTypes[] = {DType::BF16, DType::F16};

// The parts of a path that are numbers, as "*".
std::string kind_of_layer(const std::string& layer) {
  std::vector<std::string> parts;
  for (std::string_view part : split(layer, '.')) {
    const bool is_number = !part.empty() && std::ranges::all_of(part, [](char c) {
      return std::isdigit(static_cast<unsigned char>(c)) != 0;
    });
    parts.emplace_back(is_number ? "*" : std::string(part));
  }
  return join(parts, ".");
}

std::string listed(const std::string& layer) { return std::string(listed_layer(layer)); }

// Without patterns whose every layer another one takes: "h.*" takes what "h.*.attn" does.
std::vector<std::string> without_contained(const std::vector<std::string>& patterns) {
  std::vector<std::string> kept;
  for (const std::string& one : patterns)
    if (std::ranges::none_of(patterns, [&](const std::string& other) {
          return other != one && glob_match(other, one);  // a star takes a star, too
        }))
      kept.push_back(one);
  return kept;
}

// Patterns that match the layers of the type and none of another: those that `asked` lists are left
// to it.
std::vector<std::string> patterns_of(const std::map<std::string, DType>& types, DType type,
                                     const PrecisionRecipe& asked) {
  std::vector<std::string> patterns;
  for (const auto& [layer, its] : types) {
    if (its != type || asked.layer_type(layer)) continue;
    const std::string kind = kind_of_layer(layer);
    const bool is_all = std::ranges::all_of(types, [&, type = type](const auto& other) {
      return other.second == type || !glob_match(kind, other.first);
    });
    const std::string& pattern = is_all ? kind : layer;
    if (std::ranges::find(patterns, listed(pattern)) == patterns.end())
      patterns.push_back(listed(pattern));
  }
  return without_contained(patterns);
}

double rate_of(DType type, const MeasuredRates& rates) {
  return type == DType::BF16  ? rates.bf16_gflops
         : type == DType::F16 ? rates.f16_gflops
                              : rates.f32_gflops;
}

// The low types in the order of their products' rates.
std::vector<DType> fastest_first(const MeasuredRates& rates) {
  std::vector<DType> types(std::begin(kLowTypes), std::end(kLowTypes));
  std::ranges::stable_sort(types,
                           [&](DType a, DType b) { return rate_of(a, rates) > rate_of(b, rates); });
  return types;
}

DType type_of_layer(const LayerErrors& layer, double budget, const MeasuredRates& rates) {
  for (const DType type : fastest_first(rates)) {
    const auto errors = layer.by_type.find(type);
    if (errors == layer.by_type.end() || !errors->second.is_within(budget)) continue;
    if (rate_of(type, rates) >= kWorthIt * rates.f32_gflops) return type;
  }
  return DType::F32;
}

std::string percent(double part) {
  return std::isfinite(part) ? fmt::format("{:.2g} %", 100 * part) : "an overflow";
}

}  // namespace

PrecisionRecipe choose_layers(const PrecisionRecipe& asked, std::span<const LayerErrors> errors,
                              const MeasuredRates& rates) {
  std::map<std::string, DType> types;
  for (const LayerErrors& e : errors)
    types[e.layer] =
        asked.layer_type(e.layer).value_or(type_of_layer(e, asked.error_budget, rates));
  // Without products there is nothing to gain but casts.
  const bool is_product_low = std::ranges::any_of(errors, [&](const LayerErrors& e) {
    return e.has_products && types.at(e.layer) != DType::F32;
  });
  if (!is_product_low)
    for (auto& [layer, type] : types)
      if (!asked.layer_type(layer)) type = DType::F32;
  const auto count = [&](DType type) {
    return std::ranges::count_if(
        types, [&](const auto& one) { return one.second == type && !asked.layer_type(one.first); });
  };
  PrecisionRecipe chosen;
  const std::ptrdiff_t bf16 = count(DType::BF16), f16 = count(DType::F16);
  const bool lists_low = !asked.bf16_layers.empty() || !asked.fp16_layers.empty();
  if (bf16 + f16 == 0 && !lists_low) return chosen;
  chosen.level = Level::O2;
  chosen.low = f16 > bf16 ? DType::F16 : DType::BF16;
  chosen.fp32_layers = patterns_of(types, DType::F32, asked);
  if (chosen.low != DType::BF16) chosen.bf16_layers = patterns_of(types, DType::BF16, asked);
  if (chosen.low != DType::F16) chosen.fp16_layers = patterns_of(types, DType::F16, asked);
  return chosen;
}

std::string describe_choice(const PrecisionRecipe& chosen, std::span<const LayerErrors> errors,
                            double budget) {
  std::map<DType, int> layers;
  for (const LayerErrors& e : errors) ++layers[chosen.type_in(Phase::Forward, e.layer)];
  std::vector<std::string> parts;
  for (const DType type : {DType::BF16, DType::F16, DType::F32})
    if (layers[type] > 0) parts.push_back(fmt::format("{} {}", layers[type], recipe_word(type)));
  std::string text = fmt::format("of {} layers {} (error budget {})", errors.size(),
                                 join(parts, ", "), percent(budget));
  for (const DType type : kLowTypes) {
    const LayerErrors* worst = nullptr;
    double most = -1;
    for (const LayerErrors& e : errors)
      if (const auto it = e.by_type.find(type); it != e.by_type.end())
        if (const double of = std::max(it->second.forward, it->second.backward); of > most)
          most = of, worst = &e;
    if (worst)
      text += fmt::format("; {} everywhere: {} in {}", recipe_word(type), percent(most),
                          listed_layer(worst->layer));
  }
  return text;
}

Figures figures_of(std::span<const LayerErrors> errors) {
  Figures figures;
  const auto shown = [](double error) {
    return std::isfinite(error) ? error : std::numeric_limits<double>::infinity();
  };
  for (const LayerErrors& e : errors)
    for (const auto& [type, of] : e.by_type) {
      const std::string name(recipe_word(type));
      figures[listed(e.layer)][name + " forward"] = shown(of.forward);
      figures[listed(e.layer)][name + " backward"] = shown(of.backward);
    }
  return figures;
}

}  // namespace aloft
