#include "frontend/amp_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "scalar/loss_scaler.h"

namespace aloft::amp {
namespace {

// Each loss has a scale of its own, which every step goes over and every checkpoint holds.
constexpr int kMostLosses = 1024;

// opt_level in its parts.
struct Chosen {
  std::optional<Level> level;
  std::optional<DType> low;  // where it names one
  bool is_understood = false;
};

Chosen chosen(std::string_view text) {
  const std::size_t colon = text.find(':');
  Chosen c;
  c.level = parse_level(text.substr(0, colon));
  c.is_understood = c.level.has_value();
  if (colon == std::string_view::npos) return c;
  c.low = parse_float_type(text.substr(colon + 1));
  c.is_understood = c.is_understood && c.low && is_low(*c.low);
  return c;
}

// Options with a level's defaults in the place of what was left out.
struct Filled {
  Level level;
  std::optional<DType> cast_model_type;
  bool patch_torch_functions;
  std::optional<bool> keep_batchnorm_fp32, master_weights;
  LossScale loss_scale;
};

Filled filled(const Options& o, const Chosen& c) {
  const LevelDefaults d = level_defaults(*c.level);
  std::optional<DType> type = d.cast_model_type;
  if (type && is_low(*type) && c.low) type = c.low;
  if (o.cast_model_type) type = o.cast_model_type;
  std::optional<bool> keep = d.keep_batchnorm_fp32;
  if (o.keep_batchnorm_fp32) keep = o.keep_batchnorm_fp32->is_on();
  return {*c.level,
          type,
          o.patch_torch_functions.value_or(d.patch_torch_functions),
          keep,
          o.master_weights ? o.master_weights : d.master_weights,
          o.loss_scale.value_or(d.loss_scale ? LossScale(*d.loss_scale) : LossScale("dynamic"))};
}

scalar::ScalerRule rule_of(const Options& o, const LossScale& scale) {
  if (!scale.is_dynamic()) {
    const auto number = static_cast<float>(scale.number().value_or(1));
    return number == 1 ? scalar::no_scaler() : scalar::fixed_scaler(number);
  }
  scalar::ScalerRule rule = scalar::dynamic_scaler();
  rule.max = static_cast<float>(std::min<double>(o.max_loss_scale, scalar::kNoCeiling));
  rule.min = o.min_loss_scale ? static_cast<float>(*o.min_loss_scale) : scalar::kNoFloor;
  rule.init = std::min(static_cast<float>(o.dynamic_init_scale), rule.max);
  rule.growth = o.scale_growth_factor, rule.backoff = o.scale_backoff_factor;
  rule.growth_interval = scalar::interval_of(o.scale_window);
  return rule;
}

class Mistakes {
 public:
  void add(std::string_view option, std::string_view text) {
    lines_.push_back(std::string(option) + ": " + std::string(text));
  }
  void raise() const {
    if (lines_.empty()) return;
    UserError e("E0711", "the options of amp::initialize do not go together");
    for (const std::string& line : lines_) e.add_line("saw", line);
    throw e;
  }

 private:
  std::vector<std::string> lines_;
};

bool is_type(const std::optional<DType>& type) {
  return !type || is_low(*type) || *type == DType::F32;
}

// O1 keeps the model as it is, and casts what ops read.
void check_level(const Options& o, const Chosen& c, Mistakes& m) {
  const bool is_o1 = c.level == Level::O1;
  if (is_o1 && o.cast_model_type && *o.cast_model_type != DType::F32)
    m.add(
        "cast_model_type",
        fmt::format("O1 casts what ops read, and weights stay f32; for a model of {0} it is O2 or "
                    "O3, for ops that read {0} opt_level = \"O1:{0}\"",
                    name_of(*o.cast_model_type)));
  if (!is_o1 && o.patch_torch_functions.value_or(false))
    m.add("patch_torch_functions", "ops are cast one by one at O1 alone: opt_level = \"O1\"");
  if (is_o1 && o.keep_batchnorm_fp32)
    m.add("keep_batchnorm_fp32", "at O1 norms are computed in f32 anyway: leave it out");
  if (is_o1 && o.master_weights)
    m.add("master_weights", "at O1 weights are f32, which are their own masters: leave it out");
  if (c.low && o.cast_model_type && is_low(*o.cast_model_type) && c.low != o.cast_model_type)
    m.add("cast_model_type", fmt::format("{}, and opt_level says {}: one of them",
                                         name_of(*o.cast_model_type), name_of(*c.low)));
}

void check_numbers(const Options& o, const LossScale& scale, Mistakes& m) {
  if (!scale.is_dynamic() && !scale.number())
    m.add("loss_scale",
          fmt::format("{} is neither a number nor \"dynamic\"", in_quotes(scale.str(), 40)));
  else if (const std::string_view problem = problem_of(rule_of(o, scale)); !problem.empty())
    m.add(scale.is_dynamic() ? "the dynamic loss scale" : "loss_scale", problem);
  if (o.num_losses < 1 || o.num_losses > kMostLosses)
    m.add("num_losses", fmt::format("{}; need 1 to {}", o.num_losses, kMostLosses));
  if (o.verbosity < 0) m.add("verbosity", fmt::format("{}; need 0 or more", o.verbosity));
  if (o.ddp_replica_count < 1)
    m.add("ddp_replica_count", fmt::format("{}; need 1 or more", o.ddp_replica_count));
}

void check(const Options& o, const Chosen& c) {
  Mistakes m;
  if (!c.is_understood)
    m.add("opt_level", fmt::format("{} is none of O0, O1, O2, O3 (the letter O, not the number "
                                   "zero), or such with a low type, O2:bf16",
                                   in_quotes(o.opt_level, 40)));
  check_level(o, c, m);
  for (const auto& [name, type] : {std::pair{"cast_model_type", o.cast_model_type},
                                   {"cast_model_outputs", o.cast_model_outputs}})
    if (!is_type(type)) m.add(name, fmt::format("{}; need f16, bf16 or f32", name_of(*type)));
  if (o.keep_batchnorm_fp32 && !o.keep_batchnorm_fp32->is_on() &&
      o.keep_batchnorm_fp32->str() != "False")
    m.add("keep_batchnorm_fp32", fmt::format("{} is neither a bool nor \"True\" or \"False\"",
                                             in_quotes(o.keep_batchnorm_fp32->str(), 40)));
  check_numbers(o, o.loss_scale.value_or(LossScale("dynamic")), m);
  if (o.combine_ddp.value_or(false))
    m.add("combine_ddp", "gradients of several processes are not summed: one process trains");
  m.raise();
}

// On the levels that there are: which follows from what is low, not from what it was called.
Level level_of(const Filled& f) {
  if (f.patch_torch_functions) return Level::O1;
  if (!f.cast_model_type || !is_low(*f.cast_model_type)) return Level::O0;
  return f.master_weights.value_or(false) ? Level::O2 : Level::O3;
}

std::string text_of(const std::optional<bool>& flag) {
  return !flag ? "none" : *flag ? "true" : "false";
}
std::string text_of(const std::optional<DType>& type) {
  return type ? std::string(name_of(*type)) : "none";
}

}  // namespace

Flag::Flag(const char* word) : text_(word) {}
bool Flag::is_on() const { return text_ == "True"; }

LossScale::LossScale(const char* word) : LossScale(std::string(word)) {}
bool LossScale::is_dynamic() const { return !number_ && text_ == "dynamic"; }

LossScale::LossScale(const std::string& word) : text_(word) {
  if (text_ == "dynamic") return;
  number_ = parse_double(text_);
}

std::string LossScale::str() const { return text_.empty() && number_ ? shortest(*number_) : text_; }

Resolved resolve(const Options& o) {
  Resolved r;
  r.enabled = o.enabled;
  if (!o.enabled) return r;
  const Chosen c = chosen(o.opt_level);
  check(o, c);
  const Filled f = filled(o, c);
  PrecisionRecipe& recipe = r.recipe;
  recipe.level = level_of(f);
  recipe.low = f.cast_model_type && is_low(*f.cast_model_type) ? *f.cast_model_type
                                                               : c.low.value_or(DType::F16);
  if (recipe.level > Level::O1) recipe.keep_norms_fp32 = f.keep_batchnorm_fp32.value_or(false);
  recipe.allow_ops = o.half_ops, recipe.deny_ops = o.float_ops;
  const scalar::ScalerRule rule = rule_of(o, f.loss_scale);
  recipe.scale = rule.kind == scalar::ScalerKind::None    ? ScalePolicy::None
                 : rule.kind == scalar::ScalerKind::Fixed ? ScalePolicy::Fixed
                                                          : ScalePolicy::Dynamic;
  if (rule.kind != scalar::ScalerKind::None) recipe.scale_values = rule;
  r.outputs = o.cast_model_outputs;
  if (!r.outputs && f.cast_model_type) r.outputs = DType::F32;
  r.num_losses = static_cast<std::size_t>(o.num_losses);
  return r;
}

std::string describe(const Options& o) {
  const Resolved r = resolve(o);
  if (!r.enabled) return "amp::initialize: not enabled\n";
  const Filled f = filled(o, chosen(o.opt_level));
  std::string text = fmt::format("amp::initialize: precision {}\n", print_precision(r.recipe));
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {:<22} {}\n", name, value);
  };
  line("opt_level", std::string(name_of(f.level)));
  line("cast_model_type", text_of(f.cast_model_type));
  line("patch_torch_functions", f.patch_torch_functions ? "true" : "false");
  line("keep_batchnorm_fp32", text_of(f.keep_batchnorm_fp32));
  line("master_weights", text_of(f.master_weights));
  line("loss_scale", f.loss_scale.str());
  line("cast_model_outputs", text_of(r.outputs));
  line("num_losses", std::to_string(r.num_losses));
  return text;
}

}  // namespace aloft::amp
