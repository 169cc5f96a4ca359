#include "observe/probe/overflow.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/library_files.h"
#include "base/text.h"
#include "observe/probe/dump.h"
#include "observe/probe/operands.h"
#include "observe/probe/record.h"
#include "observe/probe/tap_words.h"

namespace aloft::probe {

namespace {

using Json = nlohmann::ordered_json;

// Sums of gradients, from one micro-batch of a step to the next.
constexpr std::string_view kSums = "variable:accumulated.";

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
  value.module = module_of(i);
  value.stands_for = i.members;
  value.has_operands = !i.in.empty();
  for (const BufferRef& operand : i.in) {
    const int writer = last_writer(program, operand.buffer, value.made_by);
    const auto it = looked.find({operand.buffer, writer});
    if (it != looked.end()) {
      value.operands.push_back(it->second);
    } else if (is_float(operand.type.dtype)) {
      const auto at = [](const auto& all, int n) -> const auto& {
        return all[static_cast<std::size_t>(n)];
      };
      value.unseen.push_back(operand.type.str() + " of " +
                             (writer < 0 ? at(program.buffers, operand.buffer).name
                                         : at(program.instructions, writer).identity));
    }
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

// As masks hold on purpose: what is not finite in it may be none of the step's trouble.
bool is_like_mask(const MadeValue& value, std::span<const double> all) {
  const TensorStatistics s = statistics_of(value.looked_at, all);
  return s.nan + s.positive_inf == 0;
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
  // Of finite values, as far as they were looked at.
  const auto makes_it = [&](const MadeValue& value) {
    return value.has_operands && std::ranges::all_of(value.operands, [&](const std::string& o) {
             return is_finite(named(o), all);
           });
  };
  const MadeValue* found = nullptr;
  for (const MadeValue& value : values_) {
    if (is_finite(value, all)) continue;
    const bool is_maker = makes_it(value), is_sure = is_maker && value.unseen.empty();
    // What comes from outside, or is made of nothing, comes first where no op is to blame, and
    // before one that may have taken what came of it.
    const bool may_be = is_maker && !is_sure && found && is_like_mask(*found, all);
    const bool is_first = !found;
    if (is_sure || may_be || is_first) found = &value;
    if (is_sure || may_be || (is_first && is_maker)) break;
  }
  if (!found) return nullptr;
  Json out = described(*found, all);
  if (makes_it(*found) && !found->unseen.empty())
    out["operands_are_finite"] = nullptr;
  else
    out["operands_are_finite"] = makes_it(*found);
  if (!found->unseen.empty()) out["not_looked_at"] = found->unseen;
  if (found->looked_at.name.starts_with(kSums)) out["earlier_micro_batches"] = true;
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
  if (first.contains("earlier_micro_batches"))
    return text + ", and comes from the step's earlier micro-batches, whose ops are not looked at";
  if (!is_made) return text + ", and comes from outside of the step";
  const Json& is_of_finite = first.at("operands_are_finite");
  if (is_of_finite == false) return text + ", and what it took is not finite either";
  text += is_of_finite.is_null() ? "; what it took is finite as far as it was looked at"
                                 : "; what it took is finite";
  for (const Json& operand : first.at("operands"))
    text +=
        fmt::format(", {} up to {:.4g}", operand.at("name").get<std::string>(), largest(operand));
  if (is_of_finite.is_null())
    text +=
        "; not looked at: " + join(first.at("not_looked_at").get<std::vector<std::string>>(), ", ");
  return text;
}

}  // namespace aloft::probe
