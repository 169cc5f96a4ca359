#include "models/rotary_settings.h"

namespace aloft::models {
namespace {

constexpr std::string_view kDynamic = "dynamic";

}  // namespace

std::vector<std::string_view> rotary_kinds() {
  std::vector<std::string_view> kinds = rotary_scalings();
  kinds.push_back(kDynamic);
  return kinds;
}

RotaryScaling scaling_of(const RotarySettings& s) {
  RotaryScaling out;
  if (s.kind == kDynamic || s.kind == out.kind) return out;
  out.kind = s.kind;
  if (s.kind == "linear") {
    out.factor = s.factor;
    return out;
  }
  const auto context = static_cast<double>(s.context);
  out.original = s.original > 0 ? static_cast<double>(s.original) : context;
  if (s.kind == "longrope") {
    const double factor = s.factor != 0 ? s.factor : context / out.original;
    out.within = s.within, out.beyond = s.beyond;
    out.magnitude = s.magnitude != 0 ? s.magnitude : longrope_magnitude(factor, out.original);
    return out;
  }
  out.factor = s.factor;
  out.low = s.low, out.high = s.high;
  if (s.kind != "yarn") return out;
  if (s.fast != 0) out.fast = s.fast;
  if (s.slow != 0) out.slow = s.slow;
  out.truncate = s.truncate;
  out.magnitude = s.magnitude != 0 ? s.magnitude : yarn_magnitude(s.factor, s.mscale, s.mscale_all);
  return out;
}

std::optional<Misfit> rotary_misfit(const RotarySettings& s) {
  if (s.width % 2 != 0)
    return Misfit{"heads",
                  "{heads} heads{?heads} of dim {dim}{?dim} have an odd number of features each; "
                  "rotary positions turn pairs"};
  const std::string need = need_of(scaling_of(s), s.base, s.width);
  if (need.empty()) return std::nullopt;
  return Misfit{"rotary_kind", "{rotary_kind}{?rotary_kind} needs " + need};
}

}  // namespace aloft::models
