// The one-line text form of a recipe: read by turning it into the JSON form, so that there is one
// set of rules.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "precision/recipe.h"
#include "precision/recipe_json.h"

namespace aloft {
namespace {

using nlohmann::json;

// No real recipe is longer; bounds what a hostile one costs.
constexpr std::size_t kMaxText = 64 * 1024;

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t i = 0; i < text.size();) {
    if (is_blank(text[i])) {
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && !is_blank(text[end])) ++end;
    words.push_back(text.substr(i, end - i));
    i = end;
  }
  return words;
}

json list_of(std::string_view text) {
  json list = json::array();
  for (std::string_view part : split(text, ',')) list.push_back(std::string(part));
  return list;
}

json number_or_text(std::string_view text) {
  if (const auto i = parse_int(text)) return *i;
  if (const auto d = parse_double(text)) return *d;
  return std::string(text);
}

// "dynamic", "128", "dynamic(init=1024,max=65536)".
json scale_of(std::string_view text) {
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos || text.back() != ')') return number_or_text(text);
  json out = {{"kind", std::string(text.substr(0, open))}};
  const std::string_view inside = text.substr(open + 1, text.size() - open - 2);
  if (inside.empty()) return out;
  for (std::string_view part : split(inside, ',')) {
    const std::size_t equal = part.find('=');
    const std::string name(part.substr(0, equal));
    out[name == "kind" ? "kind=" : name] =
        equal == std::string_view::npos ? json("") : number_or_text(part.substr(equal + 1));
  }
  return out;
}

json value_of(const std::string& key, std::string_view text) {
  if (key == "loss_scale") return scale_of(text);
  if (key.starts_with("allow_") || key.starts_with("deny_") || key.ends_with("_layers"))
    return list_of(text);
  if (key == "error_budget") return number_or_text(text);
  if (text == "true") return true;
  if (text == "false") return false;
  return std::string(text);
}

std::string print_scale(const json& scale) {
  if (scale.is_string()) return scale.get<std::string>();
  std::string inside;
  for (const auto& [name, value] : scale.items())
    if (name != "kind") inside += (inside.empty() ? "" : ",") + name + "=" + value.dump();
  return fmt::format("{}({})", scale["kind"].get<std::string>(), inside);
}

}  // namespace

PrecisionRecipe parse_precision(std::string_view text, std::vector<RecipeMistake>& mistakes) {
  const auto words = text.size() > kMaxText ? std::vector<std::string_view>{} : words_of(text);
  if (words.empty()) {
    mistakes.push_back({"level", text.empty() || text.size() <= kMaxText
                                     ? "empty: need a recipe such as \"O2:bf16\""
                                     : "the text is too long for a recipe"});
    return {};
  }
  json table = {{"level", std::string(words[0])}};
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equal = words[i].find('=');
    const std::string key(words[i].substr(0, equal));
    if (equal == std::string_view::npos)
      mistakes.push_back({"", fmt::format("need KEY=VALUE, got {}", in_quotes(words[i], 60))});
    else if (key == "level" || key == "auto_reason" || table.contains(key))
      mistakes.push_back({key.substr(0, 60), "stands twice or has no place in a text"});
    else
      table[key] = value_of(key, words[i].substr(equal + 1));
  }
  return precision_of_json(table, mistakes);
}

PrecisionRecipe parse_precision(std::string_view text) {
  std::vector<RecipeMistake> mistakes;
  PrecisionRecipe recipe = parse_precision(text, mistakes);
  if (mistakes.empty()) return recipe;
  UserError error("E0711", "this is not a precision recipe");
  error.add_line("saw", in_quotes(text));
  for (const RecipeMistake& m : mistakes)
    error.add_line("need", m.key.empty() ? m.text : in_quotes(m.key) + ": " + m.text);
  error.add_line("try", "\"O2:bf16\", or the forms in docs/precision.md");
  throw error;
}

std::string print_precision(const PrecisionRecipe& recipe) {
  const json table = json_of(recipe);
  std::string out = table["level"].get<std::string>() + ":" + table["type"].get<std::string>();
  if (recipe.level_is_auto && recipe.low_is_auto) out = "auto";
  if (recipe.layers_are_auto && recipe.low_is_auto) out = "adaptive";
  PrecisionRecipe plain;  // why it was chosen is no part of it
  plain.auto_reason = recipe.auto_reason;
  if (recipe == plain) return "O0";
  for (const char* key : {"forward", "backward", "update", "matmul"})
    if (table.contains(key)) out += fmt::format(" {}={}", key, table[key].get<std::string>());
  for (const char* key : {"allow_ops", "deny_ops", "allow_params", "deny_params", "fp32_layers",
                          "bf16_layers", "fp16_layers"})
    if (table.contains(key))
      out += fmt::format(" {}={}", key, join(table[key].get<std::vector<std::string>>(), ","));
  if (recipe.only_allowed) out += " only_allowed=true";
  if (recipe.keep_norms_fp32)
    out += fmt::format(" keep_norms_fp32={}", *recipe.keep_norms_fp32 ? "true" : "false");
  if (table.contains("error_budget")) out += fmt::format(" error_budget={}", recipe.error_budget);
  if (table.contains("loss_scale")) out += " loss_scale=" + print_scale(table["loss_scale"]);
  return out;
}

}  // namespace aloft
