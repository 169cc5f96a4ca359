#include "passes/layer_error_names.h"

#include <fmt/format.h>

namespace aloft {

namespace {
constexpr std::string_view kHead = "error:";
}

std::string layer_error_name(std::string_view layer, Phase phase, DType low) {
  return fmt::format("{}{}:{}:{}", kHead, layer, name_of(phase), name_of(low));
}

std::optional<LayerErrorName> parse_layer_error(std::string_view name) {
  if (!name.starts_with(kHead)) return std::nullopt;
  name.remove_prefix(kHead.size());
  const std::size_t last = name.rfind(':');
  const std::size_t first = last == std::string_view::npos ? last : name.rfind(':', last - 1);
  if (first == std::string_view::npos || last == 0) return std::nullopt;
  const auto phase = parse_phase(name.substr(first + 1, last - first - 1));
  const auto low = parse_dtype(name.substr(last + 1));
  if (!phase || !low) return std::nullopt;
  return LayerErrorName{std::string(name.substr(0, first)), *phase, *low};
}

}  // namespace aloft
