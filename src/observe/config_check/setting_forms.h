// Settings that the other side says in another form: two numbers in a list or one by one, the type
// that is computed in as a level, a flag or a word. Brought to one form before they are compared.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "observe/config_check/side.h"

namespace aloft::config_check {

// Whether they are of a recipe, of which is known on which of its keys a run depends.
bool is_of_recipe(const std::vector<Setting>& settings);

// Two sides' settings, ready to be paired: of a recipe without the keys that nothing reads, where
// the other side is none; with the values that count where one says that nothing is set
// (unset_values.h); without the low type of two recipes of which one has none (O0); `betas` by
// their numbers where the other side says beta1 and beta2.
std::pair<std::vector<Setting>, std::vector<Setting>> in_one_form(const std::vector<Setting>& a,
                                                                  const std::vector<Setting>& b);

// The type that products are computed in, and who says it.
struct ComputeType {
  std::string type;   // "bf16"
  Setting said;       // the setting that decides it, "bf16 = true"
  std::string value;  // for people: "O2:bf16", "true"
};
// Of both sides, taken out of their settings with all that speaks of it: a recipe's
// precision.level, `--bf16`, `fp16: {enabled: true}`, `precision: 16-mixed`, `torch_dtype`. Nothing
// where one side does not say it, both are recipes, or both say it by one name.
std::optional<std::pair<ComputeType, ComputeType>> take_compute_types(std::vector<Setting>& a,
                                                                      std::vector<Setting>& b);

// The optimizer that a name stands for: "adamw" of "adamw_torch_fused", "torch.optim.AdamW".
std::string plain_optimizer(std::string_view name);

}  // namespace aloft::config_check
