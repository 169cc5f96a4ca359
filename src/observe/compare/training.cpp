#include "observe/compare/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace aloft::compare {

namespace {

using Kind = ForeignJson::Kind;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
// A rate in float32 beside one in double.
constexpr double kRateNoise = 2e-6;

std::optional<double> number_at(const ForeignJson& v, std::string_view key) {
  const ForeignJson* const found = v.find(key);
  if (!found) return std::nullopt;
  if (found->kind == Kind::Number || found->kind == Kind::Bool) return found->number;
  return found->kind == Kind::Text ? parse_double(lower(found->text)) : std::nullopt;
}

double apart(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double size = std::max(std::abs(a), std::abs(b));
  return std::isfinite(a) && std::isfinite(b) ? std::abs(a - b) / size : kInfinite;
}

std::string in_brackets(const std::vector<double>& values) {
  std::string text;
  for (const double v : values) text += (text.empty() ? "" : ", ") + fmt::format("{:g}", v);
  return values.size() == 1 ? text : "[" + text + "]";
}

}  // namespace

double Training::gradient_factor() const {
  return loss_scale.value_or(1) * static_cast<double>(micro_batches);
}

Training read_training(const ForeignJson* v) {
  Training t;
  if (!v || v->kind != Kind::Object) return t;
  t.loss = number_at(*v, "loss");
  t.learning_rate = number_at(*v, "learning_rate");
  t.loss_scale = number_at(*v, "loss_scale");
  if (t.loss_scale && !(std::isfinite(*t.loss_scale) && *t.loss_scale > 0)) t.loss_scale.reset();
  t.gradient_norm = number_at(*v, "gradient_norm");
  if (const auto skipped = number_at(*v, "skipped")) t.is_skipped = *skipped != 0;
  const double parts = number_at(*v, "micro_batches").value_or(1);
  if (parts >= 1 && parts <= 1e9) t.micro_batches = static_cast<std::int64_t>(parts);
  const double losses = number_at(*v, "losses").value_or(0);
  if (losses >= 1 && losses <= 1e9) t.losses = static_cast<std::int64_t>(losses);
  const ForeignJson* const optimizer = v->find("optimizer");
  if (!optimizer || optimizer->kind != Kind::Object) return t;
  t.optimizer = lower(optimizer->text_of("kind"));
  for (std::size_t i = 0; i < optimizer->keys.size(); ++i) {
    const ForeignJson& value = optimizer->items[i];
    std::vector<double> numbers;
    if (value.kind == Kind::Number || value.kind == Kind::Bool) numbers = {value.number};
    for (const ForeignJson& part : value.items)
      if (part.kind == Kind::Number) numbers.push_back(part.number);
    if (!numbers.empty()) t.settings[optimizer->keys[i]] = std::move(numbers);
  }
  return t;
}

double ratio_of_scales(const Training& npu, const Training& bench) {
  return npu.loss_scale && bench.loss_scale ? *npu.loss_scale / *bench.loss_scale : 0;
}

std::vector<TrainingDifference> training_differences(const Training& npu, const Training& bench,
                                                     double noise, double scales, double of_loss) {
  std::vector<TrainingDifference> found;
  const auto compare = [&](const char* place, const char* what, const std::optional<double>& n,
                           const std::optional<double>& b, double allowed) {
    if (!n || !b) return;
    if (const double size = apart(*n, *b); size > allowed)
      found.push_back(
          {place, size, allowed, fmt::format("{} is {:.7g} against {:.7g}", what, *n, *b)});
  };
  compare("loss", "the loss", npu.loss, bench.loss, noise + of_loss);
  if (npu.optimizer == bench.optimizer)
    for (const auto& [key, value] : npu.settings) {
      const auto it = bench.settings.find(key);
      if (it == bench.settings.end() || it->second.size() != value.size()) continue;
      for (std::size_t i = 0; i < value.size(); ++i) {
        const double size = apart(value[i], it->second[i]);
        if (size <= kRateNoise) continue;
        found.push_back({"optimizer", size, kRateNoise,
                         fmt::format("{} of {} is {} against {}", key, npu.optimizer,
                                     in_brackets(value), in_brackets(it->second))});
        break;
      }
    }
  else if (!npu.optimizer.empty() && !bench.optimizer.empty())
    found.push_back(
        {"optimizer", kInfinite, 0,
         fmt::format("the optimizer is {} against {}", npu.optimizer, bench.optimizer)});
  compare("schedule", "the learning rate", npu.learning_rate, bench.learning_rate, kRateNoise);
  // How large a scale is, is no part of the mathematics; that both follow the same rule is.
  if (const double ratio = ratio_of_scales(npu, bench); ratio > 0 && scales > 0 && ratio != scales)
    compare("loss scale", "the loss scale", npu.loss_scale, bench.loss_scale, 0);
  compare("gradient norm", "the norm of all gradients that the update takes", npu.gradient_norm,
          bench.gradient_norm, noise);
  if (npu.is_skipped && bench.is_skipped && *npu.is_skipped != *bench.is_skipped)
    found.push_back({"update", kInfinite, 0,
                     *npu.is_skipped ? "the first run skipped its update, the second did not"
                                     : "the second run skipped its update, the first did not",
                     (*npu.is_skipped ? npu : bench).loss_scale.value_or(0)});
  return found;
}

}  // namespace aloft::compare
