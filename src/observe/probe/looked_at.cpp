#include "observe/probe/looked_at.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include "base/error.h"
#include "observe/probe/operands.h"

namespace aloft::probe {

namespace {

const NamedRef* output_named(const Program& program, std::string_view name) {
  const auto it = std::ranges::find(program.outputs, name, &NamedRef::name);
  return it == program.outputs.end() ? nullptr : &*it;
}

// An instruction that takes statistics, and the type of what they are of.
struct Taker {
  std::size_t instruction = 0;  // its number
  TensorType type;
};

// By the buffers that hold them. An update takes those of what it adds: its last results are as
// many as its first, the new parameters.
std::map<int, Taker> takers_of(const Program& program) {
  std::map<int, Taker> takers;
  for (std::size_t n = 0; n < program.instructions.size(); ++n) {
    const Instruction& i = program.instructions[n];
    if (i.call.op == Name("statistics")) takers.emplace(i.out[0].buffer, Taker{n, i.call.in[0]});
    const AttrValue* is_asked = i.call.attrs.find("statistics");
    if (!is_asked || *is_asked != AttrValue(true)) continue;
    const AttrValue* said = i.call.attrs.find("count");
    ensure(said != nullptr, "an update counts its parameters");
    const auto count = static_cast<std::size_t>(std::get<std::int64_t>(*said));
    for (std::size_t k = 0; k < count; ++k)
      takers.emplace(i.out[i.out.size() - count + k].buffer,
                     Taker{n, {DType::F32, i.out[k].type.shape}});
  }
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

// "layer_norm" of "h.0/layer_norm#0.1".
std::string_view kind_of(std::string_view name) {
  const std::string_view call = name.substr(0, name.rfind('#'));
  return call.substr(call.rfind('/') + 1);
}

// Where a value that is computed once more for the look belongs among those that the program has
// anyway, in the order of calls: beside the other results of its call, else behind the calls of its
// op before it. Nothing where there is neither.
std::optional<std::size_t> place_among(const std::vector<LookedAt>& values, const LookedAt& again) {
  std::optional<std::size_t> behind;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const LookedAt& v = values[i];
    if (call_of(v.name) == call_of(again.name)) return v.name < again.name ? i + 1 : i;
    if (v.phase == again.phase && v.order < again.order && kind_of(v.name) == kind_of(again.name))
      behind = i + 1;
  }
  return behind;
}

}  // namespace

std::string_view call_of(std::string_view name) {
  const std::size_t count = name.rfind('#');
  return name.substr(0, name.find('.', std::min(count, name.size())));
}

std::vector<LookedAt> looked_at_in(const Program& program) {
  std::vector<LookedAt> values, again;
  const NamedRef* all = output_named(program, kAllStatistics);
  if (!all) return values;
  const auto takers = takers_of(program);
  const auto places = places_in(program, all->ref.buffer);
  for (const NamedRef& o : program.outputs) {
    const bool exponents = o.name.starts_with(kExponentsPrefix);
    if (!exponents && !o.name.starts_with(kStatisticsPrefix)) continue;
    const auto taker = takers.find(o.ref.buffer);
    const auto place = places.find(o.ref.buffer);
    ensure(taker != takers.end() && place != places.end(), "statistics have their place");
    const Instruction& i = program.instructions[taker->second.instruction];
    const std::string_view prefix = exponents ? kExponentsPrefix : kStatisticsPrefix;
    const std::string name = o.name.substr(prefix.size());
    const bool is_again = name.find('/') != std::string::npos && is_computed_again(i);
    (is_again ? again : values)
        .push_back({name, taker->second.type, place->second, i.phase, i.file, i.line,
                    taker->second.instruction,
                    o.ref.type.shape.max_numel() > std::int64_t{TensorStatistics::kNumbers}});
  }
  std::vector<LookedAt> apart;  // such as what is inside an attention
  for (LookedAt& value : again)
    if (const auto at = place_among(values, value))
      values.insert(values.begin() + static_cast<std::ptrdiff_t>(*at), std::move(value));
    else
      apart.push_back(std::move(value));
  std::ranges::move(apart, std::back_inserter(values));
  note_operands(program, values);
  return values;
}

TensorStatistics statistics_of(const LookedAt& value, std::span<const double> all) {
  ensure(value.at + TensorStatistics::kNumbers <= all.size(), "a run leaves all statistics");
  return TensorStatistics::from(all.subspan(value.at, TensorStatistics::kNumbers));
}

std::vector<std::int64_t> exponents_of(const LookedAt& value, std::span<const double> all) {
  if (!value.has_exponents) return {};
  const auto own = all.subspan(value.at + TensorStatistics::kNumbers, kExponents);
  return {own.begin(), own.end()};
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
