#include "train/step_values.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "frontend/eager_emitter.h"
#include "frontend/loop_taps.h"
#include "observe/probe/tap_words.h"
#include "passes/tap_pattern.h"
#include "types/statistics.h"

namespace aloft {

namespace {

// What the eager call took that made it.
std::vector<probe::LookedAt::Operand> operands_of(const EagerTaps::Shown& shown) {
  std::vector<probe::LookedAt::Operand> all;
  if (!shown.made_by) return all;
  for (const std::string& tap : shown.made_by->operands)
    all.push_back({tap.substr(shown_prefix(tap).size())});
  return all;
}

}  // namespace

void StepValues::put(probe::LookedAt value, const double* numbers, std::size_t count,
                     bool goes_on) {
  value.at = all_.size();
  all_.insert(all_.end(), numbers, numbers + count);
  const auto [place, is_new] = place_of_.emplace(value.name, values_.size());
  if (is_new) {
    values_.push_back(std::move(value));
  } else {
    if (!goes_on) replaced_.insert(value.name);
    values_[place->second] = std::move(value);
  }
}

void StepValues::begin_run(const std::vector<probe::LookedAt>& looked_at,
                           const std::vector<Tap>& taps) {
  std::set<std::string> names;
  for (const probe::LookedAt& value : looked_at) names.insert(value.name);
  for (const Tap& tap : taps)
    if (shown_prefix(tap.name).empty() && !is_loop_tap(tap.name)) names.insert(tap.name);
  numbers_.next_run(names);
  names_.clear();
}

// The parameter as a run reads it stands with the first call of its module there, as what each
// call of PyTorch's takes does.
StepValues::Called StepValues::called_of_read(const std::string& plain, Seen& seen,
                                              std::string_view module) {
  const int call = numbers_.calls(module) ? numbers_.calls_before(module) : 0;
  const bool is_first = !std::exchange(seen.is_read, true);
  if (is_first || call > 0) return {plain, call};
  if (seen.updates > 0) replaced_.insert(plain);
  return {};
}

StepValues::Called StepValues::called_of_parameter(const Programs& programs,
                                                   const std::string& name) {
  std::string_view own = name;
  probe::take_prefix(own, probe::kParameter);
  const bool is_gradient = probe::take_suffix(own, probe::kGradient);
  const bool is_update = !is_gradient && probe::take_suffix(own, probe::kUpdate);
  const VariablePtr variable = programs.variable(Name(own));
  if (!variable) return {name};
  const std::string id = variables_.id_of(variable).str();
  std::string plain = std::string(probe::kParameter) + id;
  Seen& seen = seen_[variable];
  if (is_update) {
    updated_.push_back(variable);
    return {plain + std::string(probe::kUpdate), seen.updates};
  }
  if (!is_gradient) return called_of_read(plain, seen, id.substr(0, id.rfind('.')));
  // Before its update a parameter has one gradient, to which each micro-batch adds.
  return {plain + std::string(probe::kGradient), 0, seen.updates == 0};
}

const StepValues::Called& StepValues::called(const Programs& programs, const std::string& name) {
  const auto known = names_.find(name);
  if (known != names_.end()) return known->second;
  Called own{numbers_.of_call(name)};
  if (name.starts_with(probe::kParameter)) {
    own = called_of_parameter(programs, name);
    if (own.call > 0) own.name += probe::of_call(own.call);
  }
  return names_.emplace(name, std::move(own)).first->second;
}

void StepValues::add(const EagerTaps& taps) {
  std::set<std::string> names;
  for (const EagerTaps::Shown& s : taps.shown())
    names.insert(s.name.substr(shown_prefix(s.name).size()));
  numbers_.next_run(names);
  for (const EagerTaps::Shown& s : taps.shown()) {
    const std::string_view prefix = shown_prefix(s.name);
    if (prefix.empty()) {
      tensors_[numbers_.of_call(s.name)] = [cell = s.cell](std::size_t bytes) {
        const auto read = cell->buffer.read<std::byte>(0, bytes);
        return std::vector<std::byte>(read.data(), read.data() + read.size());
      };
      continue;
    }
    const auto numbers = s.cell->buffer.read<double>(0, s.cell->type.max_bytes() / sizeof(double));
    const std::size_t order = s.made_by ? static_cast<std::size_t>(s.made_by->number) + 1 : 0;
    std::vector<probe::LookedAt::Operand> operands = operands_of(s);
    for (probe::LookedAt::Operand& operand : operands)
      operand.name = numbers_.of_call(operand.name);
    std::string name = numbers_.of_call(s.name.substr(prefix.size()));
    if (s.call > 0) name += probe::of_call(s.call);
    put({std::move(name), s.type, 0, s.phase, s.file, s.line, order_ + order,
         numbers.size() > TensorStatistics::kNumbers, std::move(operands), s.call},
        numbers.data(), numbers.size());
  }
  replaced_.insert(taps.replaced().begin(), taps.replaced().end());
}

void StepValues::add(const Programs& programs, const std::string& program) {
  const auto looked_at = probe::looked_at_in(*programs.plan().find(program));
  const std::vector<Tap> taps = programs.taps(program);
  begin_run(looked_at, taps);
  std::size_t last = order_;
  if (!looked_at.empty()) {
    const auto read = programs.output<double>(program, kAllStatistics).read();
    for (probe::LookedAt value : looked_at) {
      const Called& own = called(programs, value.name);
      if (own.name.empty()) continue;
      const double* const numbers = read.data() + value.at;
      const bool is_parameter = value.name.starts_with(probe::kParameter);
      value.call = is_parameter ? own.call : numbers_.calls_before(path_of_tap(value.name));
      value.name = own.name;
      value.order += order_;
      last = std::max(last, value.order + 1);
      for (probe::LookedAt::Operand& operand : value.operands)
        if (const std::string& name = called(programs, operand.name).name; !name.empty())
          operand.name = name;
      put(std::move(value), numbers,
          TensorStatistics::kNumbers + (value.has_exponents ? kExponents : 0), own.goes_on);
    }
  }
  for (const Tap& tap : taps) {
    if (is_statistics(tap.name) || tap.name == kAllStatistics || is_loop_tap(tap.name)) continue;
    const std::string& name = called(programs, tap.name).name;
    if (name.empty()) continue;
    auto copy = std::make_shared<std::vector<std::byte>>(
        source_of(programs, program, tap.name)(tap.type.max_bytes()));
    tensors_[name] = [copy](std::size_t bytes) {
      return std::vector<std::byte>(copy->begin(),
                                    copy->begin() + static_cast<std::ptrdiff_t>(bytes));
    };
  }
  for (const VariablePtr& variable : updated_) ++seen_[variable].updates;
  updated_.clear();
  order_ = last;
}

void StepValues::clear() { *this = StepValues(); }

TensorSource StepValues::find(const std::string& tap) const {
  const auto found = tensors_.find(tap);
  return found == tensors_.end() ? TensorSource() : found->second;
}

TensorSource source_of(const Programs& programs, const std::string& program,
                       const std::string& tap) {
  const auto taps = programs.taps(program);
  if (std::ranges::find(taps, tap, &Tap::name) == taps.end()) return {};
  return [port = programs.output<std::byte>(program, tap)](std::size_t bytes) {
    const auto read = port.read(0, bytes);
    return std::vector<std::byte>(read.data(), read.data() + read.size());
  };
}

}  // namespace aloft
