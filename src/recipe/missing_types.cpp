#include "recipe/missing_types.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "runtime/current_device.h"

namespace aloft {
namespace {

void add(std::vector<std::string>& all, const std::string& one) {
  if (std::ranges::find(all, one) == all.end()) all.push_back(one);
}

// Of `from`, what `others` do not have.
std::vector<std::string> only_in(const std::vector<std::string>& from,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> out;
  for (const std::string& one : from)
    if (std::ranges::find(others, one) == others.end()) out.push_back(one);
  return out;
}

}  // namespace

std::vector<std::string> missing_types(const PrecisionRecipe& recipe, const Capability& here) {
  std::vector<std::string> missing;
  std::vector<DType> types = {recipe.type_in(Phase::Forward), recipe.type_in(Phase::Backward)};
  if (recipe.level != Level::O0 && !recipe.bf16_layers.empty()) types.push_back(DType::BF16);
  if (recipe.level != Level::O0 && !recipe.fp16_layers.empty()) types.push_back(DType::F16);
  for (const DType low : types) {
    const std::string name(name_of(low));
    if (!here.stores(low))
      add(missing, name);
    else if (!here.computes(low))
      add(missing, "products of " + name);
  }
  return missing;
}

std::vector<std::string> missing_types(const nn::Module& model) {
  const Capability here = current_device().features().capability;
  std::vector<std::string> missing;
  const auto look_at = [&](Policy policy) {
    if (!policy) return;
    for (const std::string& one : missing_types(policy.recipe(), here)) add(missing, one);
  };
  look_at(model.policy());
  for (const auto& [path, policy] : model.policies_below()) look_at(policy);
  return missing;
}

std::vector<std::string> type_differences(const std::vector<std::string>& before,
                                          const std::vector<std::string>& now) {
  std::vector<std::string> lines;
  if (const auto gone = only_in(now, before); !gone.empty())
    lines.push_back(join(gone, ", ") + ": not on " + current_device().name() +
                    ", and there where the checkpoint was trained");
  if (const auto come = only_in(before, now); !come.empty())
    lines.push_back(join(come, ", ") + ": on " + current_device().name() +
                    ", and missing where the checkpoint was trained");
  return lines;
}

void refuse_other_types(const std::vector<std::string>& before, const std::vector<std::string>& now,
                        const std::string& device) {
  const std::vector<std::string> lines = type_differences(before, now);
  if (lines.empty()) return;
  UserError e("E0817", "this recipe cannot go on with the run: the device has other types");
  for (const std::string& line : lines) e.add_line("saw", line);
  e.add_line("because",
             "what was f32 would be of the low type from here on, or the other way round");
  e.add_line("try", "a device with the same types" +
                        (device.empty() ? "" : ", such as the run's, --device " + device) +
                        "; or a new run: another --out, without --resume");
  throw e;
}

}  // namespace aloft
