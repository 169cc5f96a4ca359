#include "checkpoint/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/json.h"
#include "files/safetensors.h"
#include "frontend/eager_emitter.h"
#include "frontend/random.h"
#include "models/family.h"
#include "models/state_dict.h"
#include "precision/recipe.h"
#include "recipe/missing_types.h"

namespace aloft {
namespace {

using nlohmann::json;

constexpr const char* kManifest = "manifest.json";
constexpr const char* kModel = "model.safetensors";
constexpr const char* kAverage = "average.safetensors";

// The file of an optimizer's state.
std::string state_file(std::size_t optimizer) {
  return optimizer == 0 ? "state.safetensors" : fmt::format("state-{}.safetensors", optimizer);
}

// What a checkpoint of so many optimizers consists of, beside its manifest.
std::vector<std::string> files_of(std::size_t optimizers, bool has_average) {
  std::vector<std::string> files{kModel};
  for (std::size_t i = 0; i < optimizers; ++i) files.push_back(state_file(i));
  if (has_average) files.push_back(kAverage);
  return files;
}

// The model's state with means in the weights' place. A parameter that has had no update, or is
// none of an optimizer's that keeps them, is as it is.
std::vector<VariablePtr> averaged(const CheckpointParts& parts) {
  std::map<std::string, VariablePtr> means;  // by the parameter's name
  for (const OptimizerParts& o : parts.optimizers) {
    const std::map<std::string, VariablePtr> tensors(o.tensors.begin(), o.tensors.end());
    if (o.means)
      for (const auto& [parameter, mean] : *o.means) means[parameter] = tensors.at(mean);
  }
  std::vector<VariablePtr> all = parts.model;
  for (VariablePtr& v : all)
    if (const auto mean = means.find(v->name.str()); mean != means.end()) {
      auto named = std::make_shared<Variable>(*mean->second);
      named->name = v->name;
      v = std::move(named);
    }
  return all;
}

std::size_t optimizers_in(const Manifest& manifest) {
  std::size_t count = 1;
  while (manifest.files.contains(state_file(count))) ++count;
  return count;
}

// What of the run stands beside the state of optimizer `i`.
std::vector<VariablePtr> beside(std::size_t i) {
  return i == 0 ? std::vector<VariablePtr>{random_state()} : std::vector<VariablePtr>{};
}

// Hashed piece by piece, each handed back: a checkpoint must not double a run's memory.
FileSeal seal_of(const Path& file) {
  constexpr std::size_t kPiece = std::size_t{4} << 20;
  const MappedFile mapped(file);
  const std::span<const std::byte> bytes = mapped.bytes();
  Hasher hasher;
  for (std::size_t at = 0; at < bytes.size(); at += kPiece) {
    hasher.update(bytes.subspan(at, std::min(kPiece, bytes.size() - at)));
    mapped.release(at, at + kPiece);
  }
  return {bytes.size(), hasher.digest()};
}

// What a model's config says about the meaning of its weights: not what a run may change, such as
// dropout, which is training's business.
json meaning_of(json config) {
  if (!config.is_object()) return config;
  for (const models::ModelFamily& family : models::families())
    for (const models::ModelSetting& s : family.settings)
      if (s.role.may_change) config.erase(std::string(s.key));
  return config;
}

// A precision as it is written now: an earlier version wrote an O0 that `auto` chose otherwise.
std::string as_now(const std::string& policy) {
  std::vector<RecipeMistake> mistakes;
  const PrecisionRecipe recipe = parse_precision(policy, mistakes);
  return policy.empty() || !mistakes.empty() ? policy : print_precision(recipe);
}

// Of several networks below one module, each with its own.
std::vector<std::string> policy_differences(std::map<std::string, std::string> before,
                                            std::map<std::string, std::string> now) {
  std::map<std::string, std::string> all = before;
  all.insert(now.begin(), now.end());
  const auto shown = [](const std::string& policy) { return policy.empty() ? "none" : policy; };
  std::vector<std::string> lines;
  for (const auto& [path, policy] : all)
    if (as_now(before[path]) != now[path])
      lines.push_back(
          fmt::format("precision of {}: {}, now {}", path, shown(before[path]), shown(now[path])));
  return lines;
}

std::map<std::string, std::string> texts_of(const std::map<std::string, Policy>& policies) {
  std::map<std::string, std::string> texts;
  for (const auto& [path, policy] : policies) texts.emplace(path, policy.str());
  return texts;
}

void check_fit(const Path& checkpoint, const CheckpointMeta& meta, const json& model_config,
               const nn::Module& model) {
  auto differences = model_differences(meta, model_config, model.policy().str());
  if (meta.policies)
    for (std::string& line : policy_differences(*meta.policies, texts_of(model.policies_below())))
      differences.push_back(std::move(line));
  for (std::string& line : type_differences(meta.missing_types, missing_types(model)))
    differences.push_back(std::move(line));
  if (!differences.empty())
    unfit_checkpoint(checkpoint, "it is of another model or precision", differences);
}

}  // namespace

std::vector<std::string> model_differences(const CheckpointMeta& meta, const json& model_config,
                                           const std::string& policy) {
  std::vector<std::string> lines;
  if (as_now(meta.policy) != policy)
    lines.push_back(fmt::format("precision: {}, now {}", meta.policy, policy));
  const json before = meaning_of(meta.model), now = meaning_of(model_config);
  if (before == now) return lines;
  if (!before.is_object() || !now.is_object()) {
    lines.push_back(fmt::format("model: {}, now {}", json_text(before), json_text(now)));
    return lines;
  }
  json all = before;
  all.update(now);
  for (const auto& [key, value] : all.items())
    if (const json was = before.value(key, json()), is = now.value(key, json()); was != is)
      lines.push_back(fmt::format("model.{}: {}, now {}", key, json_text(was), json_text(is)));
  return lines;
}

CheckpointParts parts_of(CheckpointMeta meta, const nn::Module& model,
                         const std::vector<Optimizer>& optimizers) {
  CheckpointParts parts{models::state_variables(model), {}, std::move(meta)};
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    parts.optimizers.push_back(parts_of(optimizers[i], beside(i)));
  parts.meta.draws = eager().draws();
  parts.meta.policies = texts_of(model.policies_below());
  parts.meta.missing_types = missing_types(model);
  return parts;
}

void write_checkpoint(const Path& checkpoint, const CheckpointParts& parts,
                      const std::function<std::string()>& problem) {
  Manifest manifest{parts.meta, {}};
  manifest.files[kModel] = models::save_state(checkpoint / kModel, parts.model);
  for (std::size_t i = 0; i < parts.optimizers.size(); ++i)
    manifest.files[state_file(i)] = write_parts(checkpoint / state_file(i), parts.optimizers[i]);
  const bool has_average =
      std::ranges::any_of(parts.optimizers, [](const auto& o) { return o.means.has_value(); });
  if (has_average)
    manifest.files[kAverage] = models::save_state(checkpoint / kAverage, averaged(parts));
  if (problem) manifest.meta.problem = problem();
  write_file_atomic(checkpoint / kManifest, manifest_text(manifest));
  sync_folder(checkpoint);
}

void write_checkpoint(const Path& checkpoint, const CheckpointMeta& meta, const nn::Module& model,
                      const std::vector<Optimizer>& optimizers) {
  write_checkpoint(checkpoint, parts_of(meta, model, optimizers));
}

Manifest read_manifest(const Path& checkpoint) {
  constexpr std::uint64_t kLimit = 16 << 20;
  return parse_manifest(read_file(checkpoint / kManifest, kLimit),
                        (checkpoint / kManifest).string());
}

std::string rewrite_manifest(const Path& checkpoint, const CheckpointMeta& meta) {
  Manifest manifest = read_manifest(checkpoint);
  manifest.meta = meta;
  std::string text = manifest_text(manifest);
  write_file_atomic(checkpoint / kManifest, text);
  sync_folder(checkpoint);
  return text;
}

namespace {
bool is_read(const std::string& file, CheckpointUse use) {
  return use == CheckpointUse::GoingOn || file == kModel ||
         (use == CheckpointUse::Means && file == state_file(0));
}

Manifest checked_manifest(const Path& checkpoint, CheckpointUse use) {
  Manifest manifest = read_manifest(checkpoint);
  // Programs before wrote no means beside the weights.
  const bool has_average = manifest.files.contains(kAverage);
  for (const std::string& file : files_of(optimizers_in(manifest), has_average)) {
    const auto expected = manifest.files.find(file);
    if (expected == manifest.files.end())
      broken_checkpoint(checkpoint, "its manifest does not name " + file);
    if (!is_read(file, use)) {
      std::error_code missing;
      const std::uint64_t bytes = std::filesystem::file_size(checkpoint / file, missing);
      if (!missing && bytes == expected->second.bytes) continue;
      broken_checkpoint(checkpoint, missing ? file + " is missing"
                                            : fmt::format("{} has {} bytes, its manifest says {}",
                                                          file, bytes, expected->second.bytes));
    }
    const FileSeal found = seal_of(checkpoint / file);
    if (found != expected->second)
      broken_checkpoint(checkpoint,
                        fmt::format("{} has {} bytes with the hash {}, its manifest says {} and {}",
                                    file, found.bytes, hex16(found.hash), expected->second.bytes,
                                    hex16(expected->second.hash)));
  }
  return manifest;
}
}  // namespace

CheckpointMeta check_checkpoint(const Path& checkpoint, CheckpointUse use) {
  return checked_manifest(checkpoint, use).meta;
}

CheckpointMeta load_checkpoint(const Path& checkpoint, const json& model_config, nn::Module& model,
                               const std::vector<Optimizer>& optimizers) {
  const Manifest manifest = checked_manifest(checkpoint, CheckpointUse::GoingOn);
  check_fit(checkpoint, manifest.meta, model_config, model);
  if (optimizers_in(manifest) != optimizers.size())
    unfit_checkpoint(checkpoint,
                     fmt::format("it was saved with {} optimizer(s), and there are {} now",
                                 optimizers_in(manifest), optimizers.size()));
  // Refused, a checkpoint changes nothing: everything is looked at first.
  std::vector<SavedOptimizer> saved;
  for (std::size_t i = 0; i < optimizers.size(); ++i)
    saved.emplace_back(checkpoint, state_file(i), optimizers[i], beside(i));
  const Safetensors weights = Safetensors::open(checkpoint / kModel);
  models::load_state(weights, model);
  bool has_new_masters = false;
  for (SavedOptimizer& s : saved) has_new_masters |= s.unfreeze();
  if (has_new_masters) models::load_state(weights, model);
  for (SavedOptimizer& s : saved) s.restore();
  eager().draws() = manifest.meta.draws;
  return manifest.meta;
}

}  // namespace aloft
