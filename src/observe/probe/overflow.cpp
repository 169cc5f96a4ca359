#include "observe/probe/overflow.h"

#include <fmt/format.h>

#include <algorithm>

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

}  // namespace

OverflowFinder::OverflowFinder(const Program& program) : program_(program) {
  for (LookedAt& value : looked_at_in(program)) {
    if (value.name.starts_with(kCall)) continue;  // the monitor's: values of ops by other names
    const auto taker = static_cast<int>(value.order);
    const Instruction& i = program.instructions[value.order];
    const bool is_of_value = i.call.op == Name("statistics");  // else an update says what it adds
    const int made_by = is_of_value ? last_writer(i.in[0].buffer, taker) : taker;
    int result = 0;
    if (is_of_value && made_by >= 0)
      for (const BufferRef& out : program.instructions[static_cast<std::size_t>(made_by)].out) {
        if (out.buffer == i.in[0].buffer) break;
        ++result;
      }
    values_.push_back({std::move(value), made_by, result});
  }
  std::ranges::stable_sort(values_, {}, &Value::made_by);
  std::map<Version, int> looked;  // of several names of a value the first
  for (int v = 0; v < static_cast<int>(values_.size()); ++v) {
    const Value& value = values_[static_cast<std::size_t>(v)];
    const Instruction& taker = program.instructions[value.looked_at.order];
    if (taker.call.op == Name("statistics"))
      looked.emplace(Version(taker.in[0].buffer, value.made_by), v);
  }
  for (Value& value : values_) {
    if (value.made_by < 0) continue;
    const auto& in = program.instructions[static_cast<std::size_t>(value.made_by)].in;
    value.has_operands = !in.empty();
    for (const BufferRef& operand : in) {
      const auto it = looked.find({operand.buffer, last_writer(operand.buffer, value.made_by)});
      if (it != looked.end()) value.operands.push_back(it->second);
    }
  }
}

int OverflowFinder::last_writer(int buffer, int before) const {
  for (int n = before - 1; n >= 0; --n)
    for (const BufferRef& out : program_.instructions[static_cast<std::size_t>(n)].out)
      if (out.buffer == buffer) return n;
  return -1;
}

bool OverflowFinder::is_finite(int value, std::span<const double> all) const {
  const TensorStatistics s = statistics_of(values_[static_cast<std::size_t>(value)].looked_at, all);
  return s.nan + s.positive_inf + s.negative_inf == 0;
}

nlohmann::ordered_json OverflowFinder::described(const Value& value,
                                                 std::span<const double> all) const {
  const LookedAt& v = value.looked_at;
  Json out = {{"name", v.name}};
  if (value.made_by >= 0) {
    const Instruction& i = program_.instructions[static_cast<std::size_t>(value.made_by)];
    out["op"] = i.call.op.str();
    out["instruction"] = value.made_by;
    out["result"] = value.result;
    out["module"] = i.path;
    if (!i.members.empty()) out["stands_for"] = i.members;
  }
  out["phase"] = name_of(v.phase);
  if (!v.file.empty()) {
    out["file"] = v.file;
    out["line"] = v.line;
  }
  out.update(record_of(v, all, v.phase == Phase::Forward));
  return out;
}

nlohmann::ordered_json OverflowFinder::first(std::span<const double> all) const {
  const Value* found = nullptr;
  bool is_origin = false;
  for (int v = 0; v < static_cast<int>(values_.size()) && !is_origin; ++v) {
    if (is_finite(v, all)) continue;
    const Value& value = values_[static_cast<std::size_t>(v)];
    is_origin = value.has_operands &&
                std::ranges::all_of(value.operands, [&](int o) { return is_finite(o, all); });
    // What comes from outside, or is made of nothing, comes first where no op is to blame.
    if (is_origin || !found) found = &value;
  }
  if (!found) return nullptr;
  Json out = described(*found, all);
  out["operands_are_finite"] = is_origin;
  Json operands = Json::array();
  for (const int o : found->operands)
    operands.push_back(described(values_[static_cast<std::size_t>(o)], all));
  out["operands"] = std::move(operands);
  return out;
}

std::string overflow_text(const nlohmann::ordered_json& first) {
  if (first.is_null()) return "every value is finite";
  const std::string dtype = first.at("dtype");
  std::string place = fmt::format("{}, {}", first.at("phase").get<std::string>(),
                                  dtype.substr(dtype.find('.') + 1));
  if (first.contains("file"))
    place += fmt::format(", {}:{}", file_name(first["file"]), first["line"].get<int>());
  const bool is_made = first.contains("op");
  std::string what = first.at("name").get<std::string>();
  if (is_made) what = fmt::format("{}: {}", what, first["op"].get<std::string>());
  std::string text = fmt::format("{} ({}) has {}", what, place, counted(first));
  if (!is_made) return text + ", and comes from outside of the step";
  if (!first.at("operands_are_finite")) return text + ", and what it took is not finite either";
  text += "; what it took is finite";
  for (const Json& operand : first.at("operands"))
    text +=
        fmt::format(", {} up to {:.4g}", operand.at("name").get<std::string>(), largest(operand));
  return text;
}

}  // namespace aloft::probe
