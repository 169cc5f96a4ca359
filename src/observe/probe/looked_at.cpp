#include "observe/probe/looked_at.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace aloft::probe {

namespace {

const NamedRef* output_named(const Program& program, std::string_view name) {
  const auto it = std::ranges::find(program.outputs, name, &NamedRef::name);
  return it == program.outputs.end() ? nullptr : &*it;
}

// The instructions that take statistics, by the buffers that hold them.
std::map<int, const Instruction*> takers_of(const Program& program) {
  std::map<int, const Instruction*> takers;
  for (const Instruction& i : program.instructions)
    if (i.call.op == Name("statistics")) takers.emplace(i.out[0].buffer, &i);
  return takers;
}

// Where the numbers in each buffer go.
std::map<int, std::size_t> places_in(const Program& program, int all) {
  std::map<int, std::size_t> places;
  for (const Instruction& i : program.instructions) {
    if (i.out.empty() || i.out[0].buffer != all || i.call.op != Name("concat")) continue;
    std::size_t at = 0;
    for (const BufferRef& part : i.in) {
      places.emplace(part.buffer, at);
      at += static_cast<std::size_t>(part.type.shape.max_numel());
    }
  }
  return places;
}

}  // namespace

std::vector<LookedAt> looked_at_in(const Program& program) {
  std::vector<LookedAt> values;
  const NamedRef* all = output_named(program, kAllStatistics);
  if (!all) return values;
  const auto takers = takers_of(program);
  const auto places = places_in(program, all->ref.buffer);
  for (const NamedRef& o : program.outputs) {
    if (!o.name.starts_with(kStatisticsPrefix)) continue;
    const auto taker = takers.find(o.ref.buffer);
    const auto place = places.find(o.ref.buffer);
    ensure(taker != takers.end() && place != places.end(), "statistics have their place");
    const Instruction& i = *taker->second;
    values.push_back({o.name.substr(kStatisticsPrefix.size()), i.call.in[0], place->second, i.phase,
                      i.file, i.line});
  }
  return values;
}

TensorStatistics statistics_of(const LookedAt& value, std::span<const double> all) {
  ensure(value.at + TensorStatistics::kNumbers <= all.size(), "a run leaves all statistics");
  return TensorStatistics::from(all.subspan(value.at, TensorStatistics::kNumbers));
}

std::vector<std::int64_t> shape_of(const LookedAt& value, const TensorStatistics& statistics) {
  std::vector<std::int64_t> shape = value.type.shape.max_extents();
  if (value.type.shape.is_constant() || shape.empty()) return shape;
  std::int64_t row = 1;
  for (std::size_t d = 1; d < shape.size(); ++d) row *= shape[d];
  if (row > 0) shape[0] = static_cast<std::int64_t>(statistics.elements) / row;
  return shape;
}

}  // namespace aloft::probe
