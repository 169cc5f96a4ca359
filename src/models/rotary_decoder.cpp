#include "models/rotary_decoder.h"

#include "base/error.h"
#include "ops/extents.h"

namespace aloft::models {

std::int64_t gated_width(std::int64_t dim) {
  constexpr std::int64_t kMultiple = 256;
  const std::int64_t width = extent_product(8, dim) / 3;
  return extent_product((width + kMultiple - 1) / kMultiple, kMultiple);
}

std::optional<Misfit> list_misfit(std::string_view key, const std::vector<std::int64_t>& list,
                                  std::int64_t layers) {
  if (list.empty() || static_cast<std::int64_t>(list.size()) == layers) return std::nullopt;
  const std::string name(key);
  return Misfit{key, std::to_string(list.size()) + " entries{?" + name +
                         "} are not one for each of {layers} layers{?layers}"};
}

void need_share(double share, std::string_view family) {
  if (share > 0 && share <= 1) return;
  throw UserError("E0210", std::string(family) + ": rotary_share is out of range")
      .saw(std::to_string(share))
      .need("above 0, at most 1");
}

SettingValues rotary_start(bool shares_keys) {
  using I = std::int64_t;
  SettingValues out = {{"layers", I{6}}, {"heads", I{8}},     {"dim", I{256}},
                       {"hidden", I{0}}, {"context", I{256}}, {"vocab", I{0}}};
  if (shares_keys) out["kv_heads"] = out["head_width"] = I{0};
  return out;
}

PublishedForm rotary_published(std::string_view model_type, std::string_view architecture) {
  PublishedForm p;
  p.model_type = model_type;
  p.architecture = architecture;
  p.prefix = "model.";
  p.ignored = {"layers.*.self_attn.rotary_emb.inv_freq"};  // of older files
  p.harmless = {"attention_dropout"};
  // transformers 5 gathers what 4 had in several places; both read the older names.
  p.renamed = {{"rope_parameters.rope_theta", "rope_theta"},
               {"rope_parameters.partial_rotary_factor", "partial_rotary_factor"},
               {"rope_parameters.type", "rope_scaling.rope_type"},
               {"rope_parameters.*", "rope_scaling.*"},
               {"rope_scaling.rope_theta", "rope_theta"},
               {"rope_scaling.partial_rotary_factor", "partial_rotary_factor"},
               {"rope_scaling.type", "rope_scaling.rope_type"}};
  return p;
}

}  // namespace aloft::models
