// The JSON form of a recipe: every key is checked, every mistake is collected.
#include "precision/recipe_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace aloft {
namespace {

using nlohmann::json;
using scalar::ScalerKind;
using scalar::ScalerRule;

const std::vector<std::string> kKeys = {
    "level",    "type",         "forward",     "backward",        "update",      "allow_ops",
    "deny_ops", "allow_params", "deny_params", "keep_norms_fp32", "loss_scale",  "auto_reason",
    "matmul",   "only_allowed", "fp32_layers", "bf16_layers",     "fp16_layers", "error_budget"};
const std::vector<std::string> kScaleKeys = {
    "kind", "init", "growth", "backoff", "growth_interval", "max", "min", "give_up_after"};

// ": did you mean ...?" where a name is near, else the names there are.
std::string suggestion(std::string_view word, const std::vector<std::string>& names) {
  const std::string near = nearest_name(word, names);
  if (!near.empty()) return fmt::format("did you mean \"{}\"?", near);
  return "one of: " + join(names, ", ");
}

// Lists and tables are not spelled out: they may be nested without end.
std::string seen(const json& value) {
  if (value.is_structured()) return value.is_array() ? "a list" : "a table";
  return in_quotes(value.dump(-1, ' ', true, json::error_handler_t::replace), 60);
}

// Reads one recipe and collects what is wrong with it.
class Reader {
 public:
  explicit Reader(std::vector<RecipeMistake>& mistakes) : mistakes_(mistakes) {}

  PrecisionRecipe read(const json& table) {
    if (!table.is_object()) {
      wrong("", "a precision recipe is a text such as \"O2:bf16\" or a table");
      return recipe_;
    }
    // The level first: "auto" alone leaves the type open as well, and a type after it closes it.
    if (const auto level = table.find("level"); level != table.end()) read_level(*level);
    for (const auto& [key, value] : table.items())
      if (key != "level") read_key(key, value);
    check_matmul(table.contains("level"));
    if (table.contains("error_budget") && !recipe_.layers_are_auto)
      wrong("error_budget", "only level \"adaptive\" measures errors: use it, or leave this out");
    return recipe_;
  }

 private:
  void wrong(std::string key, std::string text) {
    mistakes_.push_back({std::move(key), std::move(text)});
  }

  void read_key(const std::string& key, const json& value) {
    if (key == "type") {
      if (level_names_type_) return wrong(key, "the level names a type already: say it once");
      return read_low(key, value);
    }
    if (key == "forward") return read_phase(key, value, recipe_.forward);
    if (key == "backward") return read_phase(key, value, recipe_.backward);
    if (key == "update") return read_update(value);
    if (key == "allow_ops") return read_patterns(key, value, recipe_.allow_ops);
    if (key == "deny_ops") return read_patterns(key, value, recipe_.deny_ops);
    if (key == "allow_params") return read_patterns(key, value, recipe_.allow_params);
    if (key == "deny_params") return read_patterns(key, value, recipe_.deny_params);
    if (key == "fp32_layers") return read_patterns(key, value, recipe_.fp32_layers);
    if (key == "bf16_layers") return read_patterns(key, value, recipe_.bf16_layers);
    if (key == "fp16_layers") return read_patterns(key, value, recipe_.fp16_layers);
    if (key == "error_budget") return read_budget(value);
    if (key == "loss_scale") return read_scale(value);
    if (key == "matmul") return read_matmul(value);
    if (key == "keep_norms_fp32") return read_flag(key, value, recipe_.keep_norms_fp32);
    if (key == "only_allowed") return read_flag(key, value, recipe_.only_allowed);
    if (key == "auto_reason") {
      if (!value.is_string()) return wrong(key, "need a text");
      recipe_.auto_reason = value.get<std::string>();
      return;
    }
    wrong(key.substr(0, 60), fmt::format("no such key: {}", suggestion(key.substr(0, 60), kKeys)));
  }

  void read_budget(const json& value) {
    double number = value.is_number() ? value.get<double>() : 0;
    if (value.is_string() && value.get_ref<const std::string&>().ends_with('%')) {
      std::string_view text = value.get_ref<const std::string&>();
      text.remove_suffix(1);
      while (text.ends_with(' ')) text.remove_suffix(1);
      number = parse_double(text).value_or(0) / 100;
    }
    if (!(number > 0 && number < 1))
      return wrong("error_budget",
                   fmt::format("need a part of 1, such as 0.01, or \"1%\", got {}", seen(value)));
    recipe_.error_budget = number;
  }

  template <class Flag>
  void read_flag(const std::string& key, const json& value, Flag& into) {
    if (!value.is_boolean())
      return wrong(key, fmt::format("need true or false, got {}", seen(value)));
    into = value.get<bool>();
  }

  // "O2", "O2:fp16", "fp16", "auto", "auto:fp16", "O2:auto".
  void read_level(const json& value) {
    if (!value.is_string())
      return wrong("level", fmt::format("need a text such as \"O2:bf16\", got {}", seen(value)));
    const std::string typed(trim(value.get_ref<const std::string&>()));
    const std::string text = lower(typed);
    const auto parts = split(text, ':');
    if (parts.size() > 2)
      return wrong("level", fmt::format("need LEVEL or LEVEL:TYPE, got {}", in_quotes(typed)));
    level_names_type_ = parts.size() == 2;
    if (parts.size() == 2) read_low("level", json(std::string(trim(parts[1]))));
    const std::string_view head = trim(parts[0]);
    const std::string named = in_quotes(trim(split(typed, ':')[0]));  // as it was typed
    if (head == "auto") {
      recipe_.level_is_auto = true;
      if (parts.size() == 1) recipe_.low_is_auto = true;
    } else if (head == "adaptive") {
      recipe_.layers_are_auto = true;
      if (parts.size() == 1) recipe_.low_is_auto = true;
    } else if (const auto level = parse_level(head)) {
      recipe_.level = *level;
    } else if (const auto type = parse_float_type(head); type && parts.size() == 1) {
      recipe_.level = *type == DType::F32 ? Level::O0 : Level::O2;
      if (*type != DType::F32) recipe_.low = *type;
      level_names_type_ = *type != DType::F32;
    } else if (head.size() == 2 && head[0] == '0' && head[1] >= '0' && head[1] <= '3') {
      wrong("level",
            fmt::format("{} starts with a zero: write the letter O, \"O{}\"", named, head[1]));
    } else if (head.size() == 2 && head[0] == 'o' && head[1] >= '4' && head[1] <= '9') {
      wrong("level",
            fmt::format("no precision level {}: one of O0, O1, O2, O3, auto, adaptive", named));
    } else {
      static const std::vector<std::string> names = {"O0",       "O1",   "O2",   "O3",  "auto",
                                                     "adaptive", "fp16", "bf16", "fp32"};
      wrong("level", fmt::format("no precision level {}: {}", named, suggestion(head, names)));
    }
  }

  void read_low(const std::string& key, const json& value) {
    static const std::vector<std::string> names = {"bf16", "fp16", "auto"};
    if (!value.is_string())
      return wrong(key, fmt::format("need a type, bf16 or fp16, got {}", seen(value)));
    const std::string& text = value.get_ref<const std::string&>();
    recipe_.low_is_auto = lower(text) == "auto";
    if (recipe_.low_is_auto) return;
    if (const auto type = parse_float_type(text); type && is_low(*type)) {
      recipe_.low = *type;
    } else if (type) {
      wrong(key, fmt::format("{} is not a low type: bf16 or fp16 (level O0 trains in fp32)",
                             in_quotes(text)));
    } else {
      wrong(key, fmt::format("no low type {}: one of {}", in_quotes(text), join(names, ", ")));
    }
  }

  void read_phase(const std::string& key, const json& value, std::optional<DType>& into) {
    static const std::vector<std::string> names = {"bf16", "fp16", "fp32"};
    if (!value.is_string())
      return wrong(key, fmt::format("need a type, bf16, fp16 or fp32, got {}", seen(value)));
    const std::string& text = value.get_ref<const std::string&>();
    into = parse_float_type(text);
    if (!into)
      wrong(key, fmt::format("no type {}: {}", in_quotes(text), suggestion(lower(text), names)));
  }

  void read_update(const json& value) {
    read_phase("update", value, recipe_.update);
    if (recipe_.update && *recipe_.update != DType::F32)
      wrong("update", "the update is always computed in fp32; leave the key out or write \"fp32\"");
  }

  void read_matmul(const json& value) {
    std::vector<std::string> names;
    for (const ProductForm form : kAllProductForms) names.emplace_back(matmul_word(form));
    const std::string text =
        value.is_string() ? lower(trim(value.get_ref<const std::string&>())) : "";
    for (const ProductForm form : kAllProductForms)
      if (text == matmul_word(form)) {
        recipe_.matmul = form;
        return;
      }
    if (text.empty()) return wrong("matmul", fmt::format("need a text, got {}", seen(value)));
    wrong("matmul",
          fmt::format("no way to multiply fp32 {}: {}", in_quotes(text), suggestion(text, names)));
  }

  void check_matmul(bool has_level) {
    if (recipe_.matmul == ProductForm::Plain) return;
    const bool fits = recipe_.level == Level::O0 || recipe_.level == Level::O1;
    if (recipe_.level_is_auto || recipe_.layers_are_auto)
      wrong("matmul", fmt::format("{} needs a level that is settled: O0, or O1 for what stays fp32",
                                  matmul_word(recipe_.matmul)));
    else if (!fits)
      wrong("matmul", fmt::format("{} splits products of fp32, and {} multiplies {}: {} level O0 "
                                  "(or O1), or leave the key out",
                                  matmul_word(recipe_.matmul),
                                  has_level ? std::string(name_of(recipe_.level))
                                            : "O2, which a table without a level means,",
                                  name_of(recipe_.low), has_level ? "use" : "add"));
  }

  void read_patterns(const std::string& key, const json& value, std::vector<std::string>& into) {
    if (!value.is_array())
      return wrong(key, fmt::format("need a list of name patterns, got {}", seen(value)));
    for (const json& entry : value) {
      if (!entry.is_string()) {
        wrong(key, fmt::format("need texts in the list, got {}", seen(entry)));
        continue;
      }
      const std::string& pattern = entry.get_ref<const std::string&>();
      // Blanks and commas separate patterns in the text form; names never hold them.
      const bool plain = std::all_of(pattern.begin(), pattern.end(),
                                     [](char c) { return c > ' ' && c <= '~' && c != ','; });
      if (pattern.empty() || !plain)
        wrong(key, fmt::format("{} is not a name pattern", in_quotes(pattern, 60)));
      else
        into.push_back(pattern);
    }
  }

  void read_scale(const json& value) {
    const std::string key = "loss_scale";
    if (value.is_number()) {
      recipe_.scale = ScalePolicy::Fixed;
      recipe_.scale_values = scalar::fixed_scaler(value.get<float>());
    } else if (value.is_string()) {
      if (!read_scale_kind(key, value.get_ref<const std::string&>())) return;
    } else if (value.is_object()) {
      const auto kind = value.find("kind");
      const std::string word =
          kind == value.end() || !kind->is_string() ? "dynamic" : kind->get<std::string>();
      if (kind != value.end() && !kind->is_string()) wrong(key + ".kind", "need a text");
      if (!read_scale_kind(key + ".kind", word)) return;
      for (const auto& [name, entry] : value.items())
        if (name != "kind") read_scale_value(name, entry);
    } else {
      return wrong(key, fmt::format("need a number, a word or a table, got {}", seen(value)));
    }
    if (const auto problem = problem_of(recipe_.scale_values); !problem.empty())
      wrong(key, std::string(problem) + scale_in_words());
  }

  // The numbers that a dynamic scale has, defaults included.
  std::string scale_in_words() const {
    const ScalerRule& r = recipe_.scale_values;
    if (r.kind != ScalerKind::Dynamic) return fmt::format(" (init is {:g})", r.init);
    return fmt::format(" (init is {:g}, min {:g}, max {:g}, growth {:g}, backoff {:g})", r.init,
                       r.min, r.max, r.growth, r.backoff);
  }

  bool read_scale_kind(const std::string& key, const std::string& text) {
    const std::string word = lower(text);
    recipe_.scale_values = {};
    if (word == "auto") {
      recipe_.scale = ScalePolicy::Auto;
    } else if (word == "none") {
      recipe_.scale = ScalePolicy::None;
    } else if (word == "fixed" || word == "static") {
      recipe_.scale = ScalePolicy::Fixed;
      recipe_.scale_values = scalar::fixed_scaler();
    } else if (word == "dynamic") {
      recipe_.scale = ScalePolicy::Dynamic;
      recipe_.scale_values = scalar::dynamic_scaler();
    } else {
      static const std::vector<std::string> names = {"auto", "none", "fixed", "dynamic"};
      wrong(key,
            fmt::format("no loss-scale policy {}: {}", in_quotes(text), suggestion(word, names)));
      return false;
    }
    return true;
  }

  void read_scale_value(const std::string& name, const json& value) {
    ScalerRule& rule = recipe_.scale_values;
    const std::string key = "loss_scale." + name.substr(0, 60);
    const bool dynamic = rule.kind == ScalerKind::Dynamic;
    if (std::find(kScaleKeys.begin(), kScaleKeys.end(), name) == kScaleKeys.end())
      return wrong(key, "no such key: " + suggestion(name.substr(0, 60), kScaleKeys));
    if (!dynamic &&
        !(rule.kind == ScalerKind::Fixed && (name == "init" || name == "give_up_after")))
      return wrong(key, "has no effect with this kind of loss scale");
    if (name == "growth_interval" || name == "give_up_after") {
      if (!value.is_number_integer() || value < 1 || value > 1000000000)
        return wrong(key, fmt::format("need a count of steps, got {}", seen(value)));
      (name == "growth_interval" ? rule.growth_interval : rule.give_up_after) = value.get<int>();
      return;
    }
    if (!value.is_number()) return wrong(key, fmt::format("need a number, got {}", seen(value)));
    const auto number = value.get<double>();
    if (name == "growth" || name == "backoff") {
      (name == "growth" ? rule.growth : rule.backoff) = number;
      return;
    }
    float& into = name == "init" ? rule.init : name == "max" ? rule.max : rule.min;
    into = static_cast<float>(number);
  }

  std::vector<RecipeMistake>& mistakes_;
  PrecisionRecipe recipe_{.level = Level::O2};  // a table without a level
  bool level_names_type_ = false;
};

json json_of_scale(const PrecisionRecipe& recipe) {
  const ScalerRule& r = recipe.scale_values;
  if (recipe.scale == ScalePolicy::Auto) return "auto";
  if (recipe.scale == ScalePolicy::None) return "none";
  const bool dynamic = recipe.scale == ScalePolicy::Dynamic;
  const ScalerRule usual = dynamic ? scalar::dynamic_scaler() : scalar::fixed_scaler();
  json out = {{"kind", dynamic ? "dynamic" : "fixed"}};
  // Only what differs: a reader sees at a glance what was changed.
  auto put = [&](const char* name, auto value, auto usual_value) {
    if (value != usual_value) out[name] = value;
  };
  put("init", r.init, usual.init);
  put("give_up_after", r.give_up_after, usual.give_up_after);
  put("growth", r.growth, usual.growth);
  put("backoff", r.backoff, usual.backoff);
  put("growth_interval", r.growth_interval, usual.growth_interval);
  put("max", r.max, usual.max);
  put("min", r.min, usual.min);
  if (out.size() == 1) return out["kind"];
  return out;
}

}  // namespace

PrecisionRecipe precision_of_json(const json& value, std::vector<RecipeMistake>& mistakes) {
  if (value.is_string()) return parse_precision(value.get_ref<const std::string&>(), mistakes);
  return Reader(mistakes).read(value);
}

json json_of(const PrecisionRecipe& recipe) {
  json out;
  out["level"] = recipe.layers_are_auto ? "adaptive"
                 : recipe.level_is_auto ? "auto"
                                        : std::string(name_of(recipe.level));
  out["type"] = recipe.low_is_auto ? "auto" : std::string(name_of(recipe.low));
  auto put_type = [&](const char* key, const std::optional<DType>& type) {
    if (type) out[key] = std::string(name_of(*type));
  };
  put_type("forward", recipe.forward);
  put_type("backward", recipe.backward);
  put_type("update", recipe.update);
  auto put_list = [&](const char* key, const std::vector<std::string>& list) {
    if (!list.empty()) out[key] = list;
  };
  put_list("allow_ops", recipe.allow_ops);
  put_list("deny_ops", recipe.deny_ops);
  put_list("allow_params", recipe.allow_params);
  put_list("deny_params", recipe.deny_params);
  put_list("fp32_layers", recipe.fp32_layers);
  put_list("bf16_layers", recipe.bf16_layers);
  put_list("fp16_layers", recipe.fp16_layers);
  if (recipe.layers_are_auto && recipe.error_budget != kErrorBudget)
    out["error_budget"] = recipe.error_budget;
  if (recipe.only_allowed) out["only_allowed"] = true;
  if (recipe.keep_norms_fp32) out["keep_norms_fp32"] = *recipe.keep_norms_fp32;
  if (recipe.matmul != ProductForm::Plain) out["matmul"] = std::string(matmul_word(recipe.matmul));
  if (recipe.scale != ScalePolicy::Auto) out["loss_scale"] = json_of_scale(recipe);
  if (!recipe.auto_reason.empty()) out["auto_reason"] = recipe.auto_reason;
  return out;
}

}  // namespace aloft
