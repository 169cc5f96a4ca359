#include "train/loop_words.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <variant>

#include "base/json_number.h"
#include "frontend/programs.h"
#include "optim/kind.h"
#include "scalar/float_formats.h"

namespace aloft {

namespace {

// The numbers of a formula under the names that recipes and the collector give them.
std::vector<std::pair<std::string, nlohmann::ordered_json>> settings_of(const Attrs& options) {
  std::vector<std::pair<std::string, nlohmann::ordered_json>> all;
  nlohmann::ordered_json betas = nlohmann::ordered_json::array();
  for (const auto& [name, value] : options.all()) {
    nlohmann::ordered_json number;
    if (const auto* v = std::get_if<double>(&value)) number = *v;
    if (const auto* v = std::get_if<bool>(&value)) number = *v;
    if (const auto* v = std::get_if<std::int64_t>(&value)) number = *v;
    if (number.is_null()) continue;
    if (name.str() == "beta1" || (name.str() == "beta2" && !betas.empty()))
      betas.push_back(number);
    else
      all.emplace_back(name.str(), number);
  }
  if (betas.size() == 2)
    all.emplace_back("betas", betas);
  else if (!betas.empty())
    all.emplace_back("beta1", betas[0]);
  return all;
}

// Whether a recipe of the kind may come to the formula by saying these settings: then it is called
// by either name.
bool may_be(const optim::OptimizerKind& kind, const UpdateRule& rule) {
  SettingValues values = optim::usual_settings(kind);
  for (const auto& [name, value] : rule.options.all()) {
    if (!kind.find(name.str())) return false;
    if (const auto* v = std::get_if<double>(&value)) values[name.str()] = *v;
    if (const auto* v = std::get_if<bool>(&value)) values[name.str()] = *v;
    if (const auto* v = std::get_if<std::int64_t>(&value)) values[name.str()] = *v;
  }
  return !kind.misfit(values) && kind.rule(values).formula == rule.formula;
}

// "adamw" of AMSGrad's formula, too; "" where two kinds compute the same, as Momentum and Sgd with
// a momentum do, and who compares should not take one for another.
std::string kind_of(const UpdateRule& rule) {
  std::string found;
  for (const optim::OptimizerKind& kind : optim::optimizer_kinds()) {
    const bool is_own = std::ranges::any_of(
        kind.formulas, [&](const optim::FormulaRecord& f) { return f.name == rule.name(); });
    if (!is_own && (rule.options.empty() || !may_be(kind, rule))) continue;
    if (!found.empty()) return "";
    found = kind.name;
  }
  return found;
}

nlohmann::ordered_json optimizer_of(const OptimizerSpec& spec) {
  nlohmann::ordered_json optimizer = nlohmann::ordered_json::object();
  if (const std::string kind = kind_of(spec.rule); !kind.empty()) optimizer["kind"] = kind;
  for (const auto& [key, value] : settings_of(spec.rule.options)) optimizer[key] = value;
  optimizer["weight_decay"] = spec.weight_decay;
  return optimizer;
}

// Of the gradients that the update takes; nothing where it is not known what is left of them.
std::optional<double> taken_norm(double norm, const OptimizerSpec& spec) {
  const bool has_own = std::ranges::any_of(spec.groups, [](const ParameterGroup& g) {
    return g.clip_norm || g.clip_value || g.clip_adaptive;
  });
  if (spec.clip_adaptive > 0 || spec.clip_value > 0 || has_own) return std::nullopt;
  return spec.clip_norm > 0 ? std::min(norm, spec.clip_norm) : norm;
}

// Of one number; a loss may be of a low type.
std::optional<double> number_at(const Programs& programs, const std::string& program,
                                const Tap& tap) {
  switch (tap.type.dtype) {
    case DType::F32:
      return programs.output<float>(program, tap.name).item();
    case DType::F64:
      return programs.output<double>(program, tap.name).item();
    case DType::F16:
      return scalar::f32_of(programs.output<scalar::F16>(program, tap.name).item());
    case DType::BF16:
      return scalar::f32_of(programs.output<scalar::Bf16>(program, tap.name).item());
    case DType::I32:
      return programs.output<std::int32_t>(program, tap.name).item();
    default:
      return std::nullopt;
  }
}

double mean(const std::vector<double>& all) {
  double sum = 0;
  for (const double v : all) sum += v;
  return sum / static_cast<double>(all.size());
}

}  // namespace

void LoopWords::hear(LoopWord word, const Tensor& value, const UpdatedBy* by) {
  if (!value.held()) return;  // of a function that is traced, and does not run now
  Said said{word, std::nullopt, value, std::nullopt};
  if (by) said.by = *by;
  // What is in a variable is another number when the step is over.
  if (word == LoopWord::LossScale) said.number = value.item(), said.value = {};
  said_.push_back(std::move(said));
}

void LoopWords::add(const Programs& programs, const std::string& program, Onlooker& onlooker) {
  std::vector<std::pair<std::size_t, Said>> all;
  for (const Tap& tap : programs.taps(program)) {
    if (!is_loop_tap(tap.name)) continue;
    const LoopWord word = word_of_loop_tap(tap.name);
    Said said{word, std::nullopt, {}, std::nullopt};
    said.number = number_at(programs, program, tap);
    all.emplace_back(number_of_loop_tap(tap.name), std::move(said));
  }
  std::ranges::sort(all, {}, [](const auto& one) { return one.first; });
  const std::vector<UpdatedBy>& updates = onlooker.updates(programs, program);
  auto next = updates.begin();
  for (auto& [number, said] : all) {
    if (said.word == LoopWord::UpdateLoss && next != updates.end()) said.by = *next++;
    said_.push_back(std::move(said));
  }
}

nlohmann::ordered_json LoopWords::training() const {
  struct Update {
    const UpdatedBy* by = nullptr;
    std::optional<double> loss, scale, rate, norm;
    bool is_finite = true;
  };
  std::vector<Update> updates;
  std::vector<double> parts, scaled;
  std::optional<double> scale;
  for (const Said& said : said_) {
    std::optional<double> number = said.number;
    if (said.value.is_defined()) number = said.value.item();
    if (said.word == LoopWord::UpdateLoss) {
      updates.push_back({said.by ? &*said.by : nullptr, number});
      continue;
    }
    if (!number) continue;
    if (said.word == LoopWord::Loss) parts.push_back(*number);
    if (said.word == LoopWord::ScaledLoss) scaled.push_back(*number);
    if (said.word == LoopWord::LossScale) scale = number;
    if (updates.empty()) continue;
    Update& update = updates.back();
    if (said.word == LoopWord::UpdateScale) update.scale = number;
    if (said.word == LoopWord::Rate) update.rate = number;
    if (said.word == LoopWord::Norm) update.norm = number;
    if (said.word == LoopWord::Finite) update.is_finite = *number != 0;
  }
  // A step of a scaler is seldom told of a loss: NaN, or the last one, stands for it there.
  std::vector<double>& losses = scaled.empty() ? parts : scaled;
  if (scaled.empty())
    for (const Update& u : updates)
      if (u.loss && !(std::isnan(*u.loss) && u.is_finite)) losses.push_back(*u.loss);
  nlohmann::ordered_json training;
  if (!losses.empty()) training["loss"] = json_number(mean(losses));
  if (scaled.size() > 1) training["losses"] = scaled.size();
  if (!updates.empty() && !scale) scale = updates[0].scale;
  if (updates.empty()) {
    if (scale) training["loss_scale"] = *scale;
    return training;
  }
  const Update& first = updates[0];
  if (first.rate) training["learning_rate"] = *first.rate;
  if (scale) training["loss_scale"] = *scale;
  training["skipped"] = std::ranges::none_of(updates, &Update::is_finite);
  if (!first.by) return training;
  training["micro_batches"] = first.by->micro_batches;
  training["optimizer"] = optimizer_of(first.by->spec);
  double squares = 0;
  for (const Update& u : updates) {
    const auto norm = u.by && u.norm ? taken_norm(*u.norm, u.by->spec) : std::nullopt;
    if (!norm) return training;
    squares += *norm * *norm;
  }
  training["gradient_norm"] = json_number(
      updates.size() == 1 ? *taken_norm(*first.norm, first.by->spec) : std::sqrt(squares));
  return training;
}

}  // namespace aloft
