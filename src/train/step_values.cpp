#include "train/step_values.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "frontend/eager_emitter.h"
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

void StepValues::put(probe::LookedAt value, const double* numbers, std::size_t count) {
  value.at = all_.size();
  all_.insert(all_.end(), numbers, numbers + count);
  const auto [place, is_new] = place_of_.emplace(value.name, values_.size());
  if (is_new) {
    values_.push_back(std::move(value));
  } else {
    replaced_.insert(value.name);
    values_[place->second] = std::move(value);
  }
}

void StepValues::add(const EagerTaps& taps) {
  for (const EagerTaps::Shown& s : taps.shown()) {
    const std::string_view prefix = shown_prefix(s.name);
    if (prefix.empty()) {
      tensors_[s.name] = [cell = s.cell](std::size_t bytes) {
        const auto read = cell->buffer.read<std::byte>(0, bytes);
        return std::vector<std::byte>(read.data(), read.data() + read.size());
      };
      continue;
    }
    const auto numbers = s.cell->buffer.read<double>(0, s.cell->type.max_bytes() / sizeof(double));
    const std::size_t order = s.made_by ? static_cast<std::size_t>(s.made_by->number) + 1 : 0;
    put({s.name.substr(prefix.size()), s.type, 0, s.phase, s.file, s.line, order,
         numbers.size() > TensorStatistics::kNumbers, operands_of(s)},
        numbers.data(), numbers.size());
  }
}

void StepValues::add(const Programs& programs, const std::string& program) {
  const auto looked_at = probe::looked_at_in(*programs.plan().find(program));
  if (!looked_at.empty()) {
    const auto read = programs.output<double>(program, kAllStatistics).read();
    for (const probe::LookedAt& value : looked_at)
      put(value, read.data() + value.at,
          TensorStatistics::kNumbers + (value.has_exponents ? kExponents : 0));
  }
  for (const Tap& tap : programs.taps(program)) {
    if (is_statistics(tap.name) || tap.name == kAllStatistics) continue;
    auto copy = std::make_shared<std::vector<std::byte>>(
        source_of(programs, program, tap.name)(tap.type.max_bytes()));
    tensors_[tap.name] = [copy](std::size_t bytes) {
      return std::vector<std::byte>(copy->begin(),
                                    copy->begin() + static_cast<std::ptrdiff_t>(bytes));
    };
  }
}

void StepValues::clear() {
  values_.clear();
  place_of_.clear();
  all_.clear();
  replaced_.clear();
  tensors_.clear();
}

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
