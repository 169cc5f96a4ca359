#include "models/decoder_settings.h"

namespace aloft::models {
namespace {

std::int64_t whole(const SettingValues& values, std::string_view key) {
  return std::get<std::int64_t>(values.find(key)->second);
}

}  // namespace

std::optional<Misfit> heads_misfit(const SettingValues& values) {
  const std::int64_t heads = whole(values, "heads");
  const bool has_width = values.contains("head_width") && whole(values, "head_width") > 0;
  if (!has_width && whole(values, "dim") % heads != 0)
    return Misfit{"heads", "{heads} heads{?heads} do not divide dim {dim}{?dim}"};
  if (!values.contains("kv_heads")) return std::nullopt;
  const std::int64_t kv_heads = whole(values, "kv_heads");
  if (kv_heads > 0 && heads % kv_heads != 0)
    return Misfit{"kv_heads", "{kv_heads}{?kv_heads} does not divide heads {heads}{?heads}"};
  return std::nullopt;
}

double decoder_least_kept(const SettingValues& values) {
  constexpr double kWidths = 8;
  return kWidths * static_cast<double>(whole(values, "context")) *
         static_cast<double>(whole(values, "dim")) * static_cast<double>(whole(values, "layers"));
}

}  // namespace aloft::models
