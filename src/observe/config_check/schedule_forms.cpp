#include "observe/config_check/schedule_forms.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/text.h"
#include "observe/config_check/setting_pairs.h"
#include "observe/config_check/setting_values.h"

namespace aloft::config_check {

namespace {

constexpr std::pair<std::string_view, std::string_view> kNames[] = {
#define SCHEDULE_NAME(other, own) {other, own},
#include "observe/config_check/schedule_names.inc"
#undef SCHEDULE_NAME
};

// Of transformers and BERT, of all steps; of Megatron, of those in which the rate falls.
constexpr std::string_view kShares[] = {"lr_warmup_fraction", "warmup_proportion", "warmup_ratio"};
constexpr std::string_view kShareOfDecay = "lr_warmup_fraction";
// Steps beyond this are no count of them.
constexpr double kMostSteps = 1e15;

std::optional<double> number_of(const Setting& s) {
  const auto value = parse_double(value_text(s));
  return value && std::isfinite(*value) ? value : std::nullopt;
}

// A share by its name; transformers 5 takes its warmup_steps for one, too, where they are below 1.
bool is_share(const Setting& s) {
  const std::string name = last_part(s.key);
  if (name == "warmup_steps") return number_of(s) > 0.0 && number_of(s) < 1.0;
  return std::ranges::find(kShares, std::string_view(name)) != std::end(kShares) && number_of(s);
}

// The number that a setting of that common name has; nothing where there is none above 0.
const Setting* find_positive(const std::vector<Setting>& settings, std::string_view name) {
  const auto it = std::ranges::find_if(settings, [&](const Setting& s) {
    return common_name(s.key) == name && s.decided_by.empty() && !is_share(s) &&
           number_of(s).value_or(0) > 0;
  });
  return it == settings.end() ? nullptr : &*it;
}

const Setting* find_share(const std::vector<Setting>& settings) {
  const auto it = std::ranges::find_if(settings, is_share);
  return it == settings.end() ? nullptr : &*it;
}

constexpr std::string_view kWarmup = "warmup_steps", kSteps = "train_steps",
                           kDecay = "lr_decay_steps";

// A side's warm-up: the setting that says it, the steps where they are known, and how they come.
struct Warmup {
  Setting said;
  std::optional<double> steps;
  std::string text;
};

std::optional<Warmup> warmup_of(const std::vector<Setting>& settings) {
  if (const Setting* const steps = find_positive(settings, kWarmup))  // before a share
    return Warmup{*steps, number_of(*steps), value_text(*steps)};
  const Setting* const share = find_share(settings);
  if (!share) {
    const auto it = std::ranges::find_if(
        settings, [](const Setting& s) { return common_name(s.key) == kWarmup; });
    if (it == settings.end() || !number_of(*it)) return std::nullopt;
    return Warmup{*it, number_of(*it), value_text(*it)};
  }
  const auto ratio = number_of(*share);
  if (!ratio) return std::nullopt;
  const Setting* total = nullptr;
  if (last_part(share->key) == kShareOfDecay) total = find_positive(settings, kDecay);
  if (!total) total = find_positive(settings, kSteps);
  Warmup w{*share, std::nullopt, value_text(*share)};
  if (*ratio == 0) w.steps = 0;
  if (!total || *ratio == 0) return w;
  // Where a product is whole but for its rounding, that is meant: 0.1 x 30 is 3.0000000000000004.
  const double product = *ratio * *number_of(*total), whole = std::round(product);
  w.steps = std::abs(product - whole) <= 1e-9 * whole ? whole : std::ceil(product);
  if (!(std::abs(*w.steps) < kMostSteps)) return std::nullopt;
  w.text += " x " + value_text(*total) + " = " + shortest(*w.steps);
  return w;
}

}  // namespace

std::string plain_schedule(std::string_view name) {
  std::string word = lower(trim(name));
  word.erase(0, word.rfind('.') + 1);
  std::ranges::replace(word, '_', '-');
  const auto it =
      std::ranges::find(kNames, word, &std::pair<std::string_view, std::string_view>::first);
  return it == std::end(kNames) ? word : std::string(it->second);
}

std::optional<Warmups> take_warmups(std::vector<Setting>& a, std::vector<Setting>& b) {
  if (!find_share(a) && !find_share(b)) return std::nullopt;
  auto x = warmup_of(a), y = warmup_of(b);
  if (!x || !y) return std::nullopt;
  // Two shares of one name are numbers like others, where no steps come before them.
  if (is_share(x->said) && is_share(y->said) && last_part(x->said.key) == last_part(y->said.key))
    return std::nullopt;
  for (std::vector<Setting>* const side : {&a, &b})
    std::erase_if(*side,
                  [](const Setting& s) { return is_share(s) || common_name(s.key) == kWarmup; });
  Warmups both{std::move(x->said), std::move(y->said), x->text, y->text, std::nullopt};
  if (x->steps && y->steps) {
    both.are_equal = *x->steps == *y->steps;
    return both;
  }
  // A share of however many steps is one step at least.
  if (x->steps == 0.0 || y->steps == 0.0 || (!x->steps && !y->steps)) {
    both.are_equal = !x->steps && !y->steps && *number_of(both.a) == *number_of(both.b);
    return both;
  }
  const bool is_a = !x->steps;  // whose share is of nobody knows how many steps
  const double share = *number_of(is_a ? both.a : both.b), steps = *(is_a ? y : x)->steps;
  const std::string who = is_a ? "A" : "B", other = is_a ? "B" : "A";
  both.advice = who + " does not say of how many steps: " + other + "'s warm-up of " +
                shortest(steps) + " is that share of " + shortest(std::round(steps / share)) +
                " steps; check that " + who + " makes as many";
  return both;
}

}  // namespace aloft::config_check
