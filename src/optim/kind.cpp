#include "optim/kind.h"

#include <algorithm>

#include "base/error.h"

namespace aloft {
namespace optim {

#define OPTIMIZER(stem, Options) OptimizerKind stem##_kind();
#include "optim/catalog.inc"
#undef OPTIMIZER

const OptimizerSetting* OptimizerKind::find(std::string_view key) const {
  const auto it = std::ranges::find(settings, key, &OptimizerSetting::key);
  return it == settings.end() ? nullptr : &*it;
}

const std::vector<OptimizerKind>& optimizer_kinds() {
  static const std::vector<OptimizerKind> all = {
#define OPTIMIZER(stem, Options) stem##_kind(),
#include "optim/catalog.inc"
#undef OPTIMIZER
  };
  return all;
}

const OptimizerKind* find_optimizer_kind(std::string_view name) {
  const auto& all = optimizer_kinds();
  const auto it = std::ranges::find(all, name, &OptimizerKind::name);
  return it == all.end() ? nullptr : &*it;
}

const OptimizerKind& optimizer_kind(std::string_view name) {
  const OptimizerKind* kind = find_optimizer_kind(name);
  ensure(kind != nullptr, "an optimizer of the catalogue: " + std::string(name));
  return *kind;
}

const std::vector<const FormulaRecord*>& formulas() {
  static const std::vector<const FormulaRecord*> all = [] {
    std::vector<const FormulaRecord*> out;
    for (const OptimizerKind& kind : optimizer_kinds())
      for (const FormulaRecord& formula : kind.formulas) out.push_back(&formula);
    return out;
  }();
  return all;
}

const FormulaRecord& formula_named(std::string_view name) {
  const auto& all = formulas();
  const auto it = std::ranges::find(all, name, &FormulaRecord::name);
  ensure(it != all.end(), "a formula of the catalogue: " + std::string(name));
  return **it;
}

std::vector<OptimizerSetting> all_optimizer_settings() {
  std::vector<OptimizerSetting> all;
  for (const OptimizerKind& kind : optimizer_kinds())
    for (const OptimizerSetting& s : kind.settings)
      if (std::ranges::find(all, s.key, &OptimizerSetting::key) == all.end()) all.push_back(s);
  return all;
}

std::vector<std::string_view> kinds_with(std::string_view key) {
  std::vector<std::string_view> names;
  for (const OptimizerKind& kind : optimizer_kinds())
    if (kind.find(key)) names.push_back(kind.name);
  return names;
}

SettingValues usual_settings(const OptimizerKind& kind) {
  SettingValues values;
  for (const OptimizerSetting& s : kind.settings) values.emplace(s.key, s.fallback);
  for (const OptimizerSetting& s : all_optimizer_settings()) values.emplace(s.key, s.fallback);
  return values;
}

}  // namespace optim

std::string_view UpdateRule::name() const { return formula ? formula->name : std::string_view(); }

std::vector<std::string_view> UpdateRule::states() const {
  return formula ? formula->states : std::vector<std::string_view>();
}

}  // namespace aloft
