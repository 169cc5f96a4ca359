#include "recipe/recipe_names.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "models/family.h"

namespace aloft {
namespace {

// What other programs call our keys, in any section or in that one.
constexpr std::pair<std::string_view, std::string_view> kOtherWords[] = {
    {"model.kind", "model.family"},
    {"model.type", "model.family"},
    {"model.name", "model.size"},
    {"learning_rate", "optimizer.lr"},
    {"rate", "optimizer.lr"},
    {"min_lr", "schedule.final_lr"},
    {"wd", "optimizer.weight_decay"},
    {"decay_rate", "optimizer.weight_decay"},
    {"beta1", "optimizer.betas"},
    {"beta2", "optimizer.betas"},
    {"clip", "optimizer.clip_norm"},
    {"grad_clip", "optimizer.clip_norm"},
    {"max_grad_norm", "optimizer.clip_norm"},
    {"lr_scheduler", "schedule.kind"},
    {"warmup_steps", "schedule.warmup"},
    {"warmup_iters", "schedule.warmup"},
    {"batch_size", "train.batch"},
    {"bs", "train.batch"},
    {"gradient_accumulation_steps", "train.accumulate"},
    {"max_steps", "train.steps"},
    {"max_iters", "train.steps"},
    {"iterations", "train.steps"},
    {"iters", "train.steps"},
    {"epoch", "train.epochs"},
    {"num_epochs", "train.epochs"},
    {"max_epochs", "train.epochs"},
    {"num_train_epochs", "train.epochs"},
    {"eval_interval", "train.eval_every"},
    {"save_every", "train.checkpoint_every"},
    {"save_steps", "train.checkpoint_every"},
    {"on_nan", "train.on_nonfinite"},
    {"on_overflow", "train.on_nonfinite"},
    {"t_max", "schedule.steps"},
    {"t_0", "schedule.cycle"},
    {"eta_min", "schedule.final_lr"},
    {"factor", "schedule.gamma"},
    {"pct_start", "schedule.warmup"},
    {"etas", "optimizer.eta_minus"},
    {"step_sizes", "optimizer.least_size"},
    {"ema", "optimizer.average"},
    {"ema_decay", "optimizer.average_decay"},
    {"initial_accumulator_value", "optimizer.initial_sum"},
    {"decoupled_weight_decay", "optimizer.decoupled_decay"},
    {"trust_coefficient", "optimizer.trust"},
    {"clip_threshold", "optimizer.clip"},
    {"adjust_lr_fn", "optimizer.match_adamw"},
    {"tf", "optimizer.tensorflow"},
    {"opt_level", "precision.level"},
    {"num_layers", "model.layers"},
    {"depth", "model.layers"},
    {"num_heads", "model.heads"},
    {"d_model", "model.dim"},
    {"width", "model.dim"},
    {"block_size", "model.context"},
    {"seq_len", "model.context"},
    {"max_length", "data.length"},
    {"max_seq_length", "data.length"},
    {"cutoff_len", "data.length"},
    {"model_name_or_path", "model.init"},
    {"pretrained", "model.init"},
    {"init_from", "model.init"},
    {"seq", "model.context"},
    {"data.tokenizer.size", "data.tokenizer.vocab"},
    {"data.tokenizer.vocab_size", "data.tokenizer.vocab"},
    {"sequence_length", "model.context"},
    {"level", "precision.level"},
    {"dtype", "precision"},
    {"amp", "precision"},
};

std::string_view own_name(std::string_view key) { return key.substr(key.rfind('.') + 1); }

// "Batch-Size" as "batch_size".
std::string plain(std::string_view word) {
  std::string out = lower(word);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

// The keys of that name in whatever section, those of the run itself first: "a or b".
std::string elsewhere(const std::string& name, std::span<const RecipeField> fields) {
  std::vector<std::string> found;
  for (const RecipeField& f : fields)
    if (own_name(f.key) == name)
      found.insert(f.key.starts_with("train.") ? found.begin() : found.end(), std::string(f.key));
  return join(found, " or ");
}

// What config.json of some family calls one of our keys: "n_embd" is model.dim.
std::string published_key(std::string_view name) {
  for (const models::ModelFamily& family : models::families())
    for (const models::ModelSetting& s : family.settings)
      if (!name.empty() && (s.role.published == name || s.role.published_before == name))
        return "model." + std::string(s.key);
  return "";
}

}  // namespace

std::string named_key(std::string_view written, std::span<const RecipeField> fields) {
  const std::string key = plain(written), name(own_name(key));
  for (const auto& [word, ours] : kOtherWords)
    if (word == key) return std::string(ours);
  if (std::string found = elsewhere(name, fields); !found.empty()) return found;
  for (const auto& [word, ours] : kOtherWords)
    if (word == name) return std::string(ours);
  return published_key(name);
}

std::string meant_key(std::string_view written, std::span<const RecipeField> fields) {
  if (std::string found = named_key(written, fields); !found.empty()) return found;
  const std::string key = plain(written), name(own_name(key));
  const std::string section = key.substr(0, key.size() - name.size());
  std::vector<std::string> here, names, whole{"precision"};
  for (const RecipeField& f : fields) {
    whole.emplace_back(f.key);
    names.emplace_back(own_name(f.key));
    if (!section.empty() && f.key.starts_with(section))
      here.emplace_back(f.key.substr(section.size()));
  }
  if (const std::string near = nearest_name(name, here); !near.empty()) return section + near;
  if (!here.empty()) return "";
  if (std::string near = nearest_name(key, whole); !near.empty()) return near;
  // Nearly every short word is near some other.
  constexpr std::size_t kTellsEnough = 4;
  if (name.size() < kTellsEnough) return "";
  return elsewhere(nearest_name(name, names), fields);
}

std::string families_with(std::string_view key) {
  constexpr std::string_view kSection = "model.";
  std::vector<std::string> names;
  if (key.starts_with(kSection))
    for (const models::ModelFamily& family : models::families())
      if (family.find(key.substr(kSection.size()))) names.emplace_back(family.name);
  constexpr std::size_t kMost = 2;
  const std::size_t more = names.size() - std::min(names.size(), kMost);
  names.resize(names.size() - more);
  return join(names, ", ") + (more == 0 ? "" : " and " + std::to_string(more) + " more");
}

}  // namespace aloft
