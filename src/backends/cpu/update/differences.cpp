#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/update/differences.cpp"
#include "backends/cpu/update/differences.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/update/values-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

void read_all(const UpdateTile& tile, float* to) {
  const Floats d;
  const Values values(tile);
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= tile.n; i += lanes) hn::StoreU(values.load(d, i), d, to + i);
  if (const std::int64_t n = tile.n - i; n > 0) store_n(d, values.load_n(d, i, n), to + i, n);
}

void subtract_all(const float* after, const float* before, float* change, std::int64_t n) {
  const Floats d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::Sub(hn::LoadU(d, after + i), hn::LoadU(d, before + i)), d, change + i);
  for (; i < n; ++i) change[i] = after[i] - before[i];
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(read_all);
HWY_EXPORT(subtract_all);

void read_values(const UpdateTile& tile, float* to) { HWY_DYNAMIC_DISPATCH(read_all)(tile, to); }
void subtract(const float* after, const float* before, float* change, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(subtract_all)(after, before, change, n);
}

}  // namespace aloft::cpu
#endif
