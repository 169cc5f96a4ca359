#include "observe/config_check/unset_values.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/text.h"
#include "observe/config_check/setting_forms.h"
#include "observe/config_check/setting_pairs.h"
#include "observe/config_check/setting_values.h"
#include "scalar/schedule.h"

namespace aloft::config_check {

namespace {

using Settings = std::vector<Setting>;

struct Unset {
  std::string_view name;
  double most;
  std::string_view value, decided_by, otherwise;
};
constexpr Unset kUnset[] = {
#define UNSET(name, most, value, decided_by, otherwise) {name, most, value, decided_by, otherwise},
#include "observe/config_check/unset_values.inc"
#undef UNSET
};

struct Default {
  std::string_view program, name, value;
};
constexpr Default kDefaults[] = {
#define PROGRAM_DEFAULT(program, name, value) {program, name, value},
#include "observe/config_check/program_defaults.inc"
#undef PROGRAM_DEFAULT
};
// Names that no other program's settings have.
constexpr std::string_view kOfTransformers[] = {"num_train_epochs", "per_device_train_batch_size"};

bool is_called(const Setting& s, std::string_view name) {
  const std::string_view common = common_name(s.key);
  return common.empty() ? last_part(s.key) == name : common == name;
}

// The first that is called so and is set.
const Setting* find(const Settings& settings, std::string_view name) {
  const auto it = std::ranges::find_if(settings, [&](const Setting& s) {
    return is_called(s, name) && s.written.empty() && s.decided_by.empty() && s.is_read;
  });
  return it == settings.end() ? nullptr : &*it;
}

Setting* find_last_part(Settings& settings, std::string_view name) {
  const auto it =
      std::ranges::find_if(settings, [&](const Setting& s) { return last_part(s.key) == name; });
  return it == settings.end() ? nullptr : &*it;
}

double number_of(const Setting& s) { return parse_double(value_text(s)).value_or(std::nan("")); }

bool is_true(const Setting& s) { return lower(value_text(s)) == "true"; }
bool is_false(const Setting& s) { return lower(value_text(s)) == "false"; }

const Unset* unset_of(const Setting& s) {
  const auto it =
      std::ranges::find_if(kUnset, [&](const Unset& u) { return is_called(s, u.name); });
  if (it == std::end(kUnset) || !(is_none(s) || number_of(s) <= it->most)) return nullptr;
  return &*it;
}

void put(Setting& s, nlohmann::ordered_json value, std::string note = "") {
  s.written = value_text(s);
  s.value = std::move(value);
  s.note = std::move(note);
}

nlohmann::ordered_json value_of(std::string_view text) {
  const auto number = parse_int(text);
  return number ? nlohmann::ordered_json(*number) : nlohmann::ordered_json(text);
}

// Which setting has the value of one that has none: its value, where it is the same number.
void decide(Setting& s, const Unset& u, const Settings& settings) {
  const bool is_a_length = u.name == "train_steps" || u.name == "epochs";
  if (const Setting* const by = u.decided_by.empty() ? nullptr : find(settings, u.decided_by)) {
    if (!is_a_length) return put(s, by->value);
    s.decided_by = said_by(*by);
  } else {
    s.decided_by = u.otherwise;
    for (const Setting& one : settings)  // what would have it is decided by another one
      if (is_called(one, u.decided_by) && !one.decided_by.empty() && !is_a_length)
        s.decided_by = one.decided_by;
  }
  s.written = value_text(s);
}

// A recipe's length is in epochs where these are above 0; then its steps are not read.
void settle_recipe(Settings& recipe) {
  const auto at = [&](std::string_view key) {
    const auto it = std::ranges::find(recipe, key, &Setting::key);
    return it == recipe.end() ? nullptr : &*it;
  };
  Setting* const steps = at("train.steps");
  const Setting* const epochs = at("train.epochs");
  if (steps && epochs && number_of(*epochs) > 0) steps->decided_by = said_by(*epochs);
  Setting* const last = at("schedule.final_lr");
  const Setting *const rate = at("optimizer.lr"), *const kind = at("schedule.kind");
  if (!last || !rate || !kind || !(number_of(*last) < 0)) return;
  const auto schedule = scalar::parse_schedule_kind(value_text(*kind));
  if (!schedule) return;
  const double peak = number_of(*rate);
  if (std::isfinite(peak)) put(*last, scalar::falls_freely(*schedule) ? 0 : peak / 10);
}

// Hugging Face and Lightning: a number of steps comes before one of epochs; Hugging Face's schedule
// "constant" makes no warm-up.
void settle_transformers(Settings& settings) {
  const Setting* const steps = find_last_part(settings, "max_steps");
  if (steps && number_of(*steps) > 0)
    std::erase_if(settings,
                  [](const Setting& s) { return last_part(s.key) == "num_train_epochs"; });
  const Setting* const schedule = find_last_part(settings, "lr_scheduler_type");
  if (!schedule || lower(value_text(*schedule)) != "constant") return;
  for (Setting& s : settings)
    if (last_part(s.key) == "warmup_steps" && number_of(s) > 0)
      put(s, 0, schedule->key + " constant makes no warm-up, constant_with_warmup does");
  std::erase_if(settings, [](const Setting& s) { return last_part(s.key) == "warmup_ratio"; });
}

// nanoGPT's word for its only schedule, a cosine with a warm-up.
void settle_nanogpt(Settings& settings) {
  Setting* const decays = find_last_part(settings, "decay_lr");
  if (!decays || !(is_true(*decays) || is_false(*decays))) return;
  const bool is_constant = is_false(*decays);
  const std::string note = decays->key + " says that the rate stays as it is";
  put(*decays, is_constant ? "constant" : "cosine");
  if (!is_constant) return;
  for (Setting& s : settings)
    if (last_part(s.key) == "warmup_iters" && number_of(s) > 0) put(s, 0, note);
  std::erase_if(settings, [](const Setting& s) {
    return last_part(s.key) == "lr_decay_iters" || last_part(s.key) == "min_lr";
  });
}

// Megatron has groups of queries only where it is told to.
void settle_megatron(Settings& settings) {
  const Setting* const grouped = find_last_part(settings, "group_query_attention");
  if (!grouped || !is_false(*grouped)) return;
  const Setting* const heads = find(settings, "num_heads");
  for (Setting& s : settings)
    if (heads && last_part(s.key) == "num_query_groups")
      put(s, heads->value, grouped->key + " is false");
}

bool is_of_transformers(const Settings& settings) {
  return std::ranges::any_of(settings, [](const Setting& s) {
    return std::ranges::find(kOfTransformers, std::string_view(last_part(s.key))) !=
           std::end(kOfTransformers);
  });
}

}  // namespace

std::string said_by(const Setting& s) { return s.key + " = " + value_text(s); }

bool is_none(const Setting& s) {
  if (s.value.is_null()) return true;
  if (!s.value.is_string() || s.is_quoted) return false;
  const std::string word = lower(trim(s.value.get_ref<const std::string&>()));
  return word == "none" || word == "null";
}

std::vector<Setting> with_values_that_count(const std::vector<Setting>& settings) {
  Settings all = settings;
  if (is_of_recipe(all)) {
    settle_recipe(all);
  } else {
    settle_transformers(all);
    settle_nanogpt(all);
    settle_megatron(all);
  }
  // Lengths first: others go by them.
  for (const bool is_of_lengths : {true, false})
    for (Setting& s : all) {
      const Unset* const u = s.written.empty() && s.decided_by.empty() ? unset_of(s) : nullptr;
      if (!u || is_of_lengths != (u->name == "train_steps" || u->name == "epochs")) continue;
      if (u->value.empty())
        decide(s, *u, all);
      else
        put(s, value_of(u->value));
    }
  return all;
}

std::optional<ProgramDefault> default_of(const std::vector<Setting>& settings, const Setting& s) {
  if (!is_of_transformers(settings) || s.key.find(".groups.") != std::string::npos)
    return std::nullopt;
  for (const Default& d : kDefaults)
    if (is_called(s, d.name)) return ProgramDefault{d.program, d.value};
  return std::nullopt;
}

}  // namespace aloft::config_check
