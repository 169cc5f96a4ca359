#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/update/differences.cpp"
#include "backends/cpu/update/differences.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <type_traits>

#include "backends/cpu/update/grouped_statistics-inl.h"
#include "backends/cpu/update/values-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {

// Split masters as a source of elements.
struct Masters {
  SplitValues values;
  HWY_INLINE FloatV load(Floats d, std::int64_t i) const { return values.load(d, i); }
  double at(std::int64_t i) const { return hn::GetLane(values.load_n(Floats(), i, 1)); }
};

template <class Source>
struct Changes {
  Source after;
  const float* before;
  HWY_INLINE FloatV load(Floats d, std::int64_t i) const {
    return hn::Sub(after.load(d, i), hn::LoadU(d, before + i));
  }
  double at(std::int64_t i) const { return static_cast<float>(after.at(i)) - before[i]; }
};

void add_all(const UpdateTile& after, const float* before, StatisticsInLanes& to) {
  const FloatEdges edges = edges_of(DType::F32);
  if (after.words)
    return add_grouped(Changes<Masters>{{SplitValues(after)}, before}, after.n, edges, to);
  with_type(after.from_type, after.from, [&](auto* p) HWY_ATTR {
    using Source = InMemory<std::remove_cvref_t<decltype(*p)>>;
    add_grouped(Changes<Source>{{p}, before}, after.n, edges, to);
  });
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace aloft::cpu {

HWY_EXPORT(add_all);

void add_changes(const UpdateTile& after, const float* before, StatisticsInLanes& to) {
  HWY_DYNAMIC_DISPATCH(add_all)(after, before, to);
}

}  // namespace aloft::cpu
#endif
