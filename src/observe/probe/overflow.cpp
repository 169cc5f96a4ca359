#include "observe/probe/overflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "observe/probe/dump.h"
#include "observe/probe/tap_words.h"

namespace aloft::probe {

namespace {

using Json = nlohmann::ordered_json;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "12 inf, 3 nan".
std::string counted(const Json& record) {
  std::string text;
  for (const char* key : {"inf", "-inf", "nan"})
    if (const auto n = record.at(key).get<std::int64_t>(); n > 0)
      text += (text.empty() ? "" : ", ") + std::to_string(n) + " " + key;
  return text;
}

double largest(const Json& record) {
  const auto size = [&](const char* key) {
    return record.at(key).is_number() ? std::abs(record.at(key).get<double>()) : 0.0;
  };
  return std::max(size("Max"), size("Min"));
}

// The last instruction before that one which writes the buffer; -1: nobody in this program.
int last_writer(const Program& program, int buffer, int before) {
  for (int n = before - 1; n >= 0; --n)
    for (const BufferRef& out : program.instructions[static_cast<std::size_t>(n)].out)
      if (out.buffer == buffer) return n;
  return -1;
}

// A buffer behind the instruction that wrote it last.
using Version = std::pair<int, int>;

void note_operands(MadeValue& value, const Program& program,
                   const std::map<Version, std::string>& looked) {
  const Instruction& i = program.instructions[static_cast<std::size_t>(value.made_by)];
  value.op = i.call.op.str();
  value.module = i.path;
  value.stands_for = i.members;
  value.has_operands = !i.in.empty();
  for (const BufferRef& operand : i.in) {
    const int writer = last_writer(program, operand.buffer, value.made_by);
    const auto it = looked.find({operand.buffer, writer});
    if (it != looked.end()) value.operands.push_back(it->second);
    const Arena arena = program.buffers[static_cast<std::size_t>(operand.buffer)].arena;
    value.takes_sums |= writer < 0 && arena == Arena::Gradients;
  }
}

std::vector<MadeValue> values_of(const Program& program) {
  std::vector<MadeValue> values;
  std::map<Version, std::string> looked;  // of several names of a value the first
  for (LookedAt& value : looked_at_in(program)) {
    if (value.name.starts_with(kCall)) continue;  // the monitor's: values of ops by other names
    const auto taker = static_cast<int>(value.order);
    const Instruction& i = program.instructions[value.order];
    const bool is_of_value = i.call.op == Name("statistics");  // else an update says what it adds
    const int made_by = is_of_value ? last_writer(program, i.in[0].buffer, taker) : taker;
    int result = 0;
    if (is_of_value && made_by >= 0)
      for (const BufferRef& out : program.instructions[static_cast<std::size_t>(made_by)].out) {
        if (out.buffer == i.in[0].buffer) break;
        ++result;
      }
    if (is_of_value) looked.emplace(Version(i.in[0].buffer, made_by), value.name);
    values.push_back({std::move(value), made_by, result});
  }
  for (MadeValue& value : values)
    if (value.made_by >= 0) note_operands(value, program, looked);
  return values;
}

bool is_finite(const MadeValue& value, std::span<const double> all) {
  const TensorStatistics s = statistics_of(value.looked_at, all);
  return s.nan + s.positive_inf + s.negative_inf == 0;
}

Json described(const MadeValue& value, std::span<const double> all) {
  const LookedAt& v = value.looked_at;
  Json out = {{"name", v.name}};
  if (value.made_by >= 0) {
    out["op"] = value.op;
    if (value.call.empty())
      out["instruction"] = value.made_by;
    else
      out["call"] = value.call;
    out["result"] = value.result;
    out["module"] = value.module;
    if (!value.stands_for.empty()) out["stands_for"] = value.stands_for;
  }
  out["phase"] = name_of(v.phase);
  if (!v.file.empty() && !is_of_library(v.file)) {
    out["file"] = v.file;
    out["line"] = v.line;
  }
  out.update(record_of(v, all, v.phase == Phase::Forward));
  return out;
}

}  // namespace

OverflowFinder::OverflowFinder(const Program& program) : OverflowFinder(values_of(program)) {}

OverflowFinder::OverflowFinder(std::vector<MadeValue> values) : values_(std::move(values)) {
  std::ranges::stable_sort(values_, {}, &MadeValue::made_by);
  for (std::size_t v = 0; v < values_.size(); ++v) place_of_.emplace(values_[v].looked_at.name, v);
}

nlohmann::ordered_json OverflowFinder::first(std::span<const double> all) const {
  const auto named = [&](const std::string& name) -> const MadeValue& {
    return values_[place_of_.at(name)];
  };
  const MadeValue* found = nullptr;
  bool is_origin = false;
  for (const MadeValue& value : values_) {
    if (is_finite(value, all)) continue;
    is_origin =
        value.has_operands && std::ranges::all_of(value.operands, [&](const std::string& operand) {
          return is_finite(named(operand), all);
        });
    // What comes from outside, or is made of nothing, comes first where no op is to blame.
    if (is_origin || !found) found = &value;
    if (is_origin) break;
  }
  if (!found) return nullptr;
  Json out = described(*found, all);
  out["operands_are_finite"] = is_origin;
  if (found->takes_sums) out["takes_sums"] = true;
  Json operands = Json::array();
  for (const std::string& operand : found->operands)
    operands.push_back(described(named(operand), all));
  out["operands"] = std::move(operands);
  return out;
}

std::string step_text(std::int64_t step) {
  return fmt::format("step {} (in metrics {})", step, step + 1);
}

std::string overflow_text(const nlohmann::ordered_json& first) {
  if (first.is_null()) return "every value is finite";
  const std::string dtype = first.at("dtype");
  std::string place = fmt::format("{}, {}", first.at("phase").get<std::string>(),
                                  dtype.substr(dtype.find('.') + 1));
  if (first.contains("file"))
    place += fmt::format(", called at {}:{}", file_name(first["file"]), first["line"].get<int>());
  const bool is_made = first.contains("op");
  std::string what = first.at("name").get<std::string>();
  if (is_made) what = fmt::format("{}: {}", what, first["op"].get<std::string>());
  std::string text = fmt::format("{} ({}) has {}", what, place, counted(first));
  if (!is_made) return text + ", and comes from outside of the step";
  if (!first.at("operands_are_finite")) return text + ", and what it took is not finite either";
  const bool takes_sums = first.contains("takes_sums");
  text +=
      takes_sums ? "; what it took of the last micro-batch is finite" : "; what it took is finite";
  for (const Json& operand : first.at("operands"))
    text +=
        fmt::format(", {} up to {:.4g}", operand.at("name").get<std::string>(), largest(operand));
  if (takes_sums) text += "; the sums of those before are not looked at";
  return text;
}

}  // namespace aloft::probe
