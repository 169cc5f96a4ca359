#include "observe/probe/dump.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/library_files.h"
#include "observe/probe/record.h"
#include "observe/probe/tap_words.h"

namespace aloft::probe {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kForward = ".forward", kBackward = ".backward";
constexpr std::string_view kParametersGrad = ".parameters_grad",
                           kParametersUpdate = ".parameters_update";

// Adds a key that is not there yet: nlohmann's ordered object would compare it with all others.
void append(Json& object, std::string key, Json value) {
  auto& members = object.get_ref<Json::object_t&>();
  members.Json::object_t::Container::emplace_back(std::move(key), std::move(value));
}

bool has_part(std::string_view entry, std::string_view part) {
  return entry.find(part) != std::string_view::npos;
}

// Whether an op's result is of the backward pass or the update. What the forward pass means is none
// where it is computed, too: a loss that comes with its gradients.
bool is_behind_forward(const LookedAt& value) {
  return value.phase == Phase::Update || has_part(value.name, ".backward#");
}

bool is_op(std::string_view entry) { return entry.starts_with("Torch."); }

// An entry without records, with all lists that its kind has.
Json empty_entry(std::string_view entry) {
  if (has_part(entry, kParametersGrad) || has_part(entry, kParametersUpdate)) return Json::object();
  if (has_part(entry, kBackward)) return {{"input", Json::array()}, {"output", Json::array()}};
  Json forward = {
      {"input_args", Json::array()}, {"input_kwargs", Json::object()}, {"output", Json::array()}};
  if (entry.starts_with("Module.")) forward["parameters"] = Json::object();
  return forward;
}

// "h.0.mlp" of "call:h.0.mlp#0.output" and of "h.0.mlp/gelu_tanh#0".
std::string function_of(std::string_view name) {
  take_prefix(name, kCall);
  return std::string(name.substr(0, name.find_first_of("/#")));
}

std::string_view parent_of(std::string_view path) {
  const std::size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

}  // namespace

// Where the numbers stand of what a model is given, such as the batch: a call takes it, whose
// backward pass is seen and leaves no gradient of it, and no call gives it.
std::set<std::size_t> given_from_outside(const std::vector<LookedAt>& values) {
  std::set<std::string_view> names;
  for (const LookedAt& value : values) names.insert(value.name);
  std::set<std::size_t> given, others;
  for (const LookedAt& value : values) {
    std::string_view call = value.name;
    if (!call.starts_with(kCall)) continue;
    const auto has = [&](std::string_view end) {
      return names.contains(std::string(call) + std::string(end));
    };
    if (take_suffix(call, ".output"))
      others.insert(value.at);
    else if (!take_suffix(call, ".input"))
      continue;
    else if (has(".input.gradient"))
      others.insert(value.at);
    else if (has(".output.gradient"))
      given.insert(value.at);
  }
  for (const std::size_t at : others) given.erase(at);
  return given;
}

Dump::Dump(std::vector<LookedAt> values, const std::vector<DumpedModule>& modules,
           std::string level)
    : values_(std::move(values)), modules_(modules), level_(std::move(level)) {
  for (const LookedAt& value : values_) {
    const std::string_view name = value.name;
    places_.push_back(name.starts_with(kCall)        ? place_of_call(name)
                      : name.starts_with(kParameter) ? place_of_parameter(value)
                                                     : place_of_op(value));
    const std::string& entry = places_.back().entry;
    if (std::ranges::find(entries_, entry) == entries_.end()) entries_.push_back(entry);
  }
  const std::set<std::size_t> given = given_from_outside(values_);
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (given.contains(values_[i].at) || !is_float(values_[i].type.dtype))
      places_[i].requires_grad = false;
  note_taken();
  if (level_ != "op") order_entries();
  chosen_.assign(values_.size(), true);
  chosen_taken_.assign(taken_.size(), true);
}

// Which values are gradients, of those that the backward pass computes: what is made of one, and
// not, say, an activation in another shape. What is made of nothing that is seen is one, too.
std::vector<bool> Dump::gradients() const {
  std::vector<std::size_t> in_order(values_.size());
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  std::ranges::stable_sort(in_order, {}, [&](std::size_t i) { return values_[i].order; });
  std::vector<bool> are(values_.size(), false);
  for (const std::size_t i : in_order) {
    const LookedAt& value = values_[i];
    if (value.phase != Phase::Backward || !has_part(value.name, ".backward#")) continue;
    bool takes_others = false;
    for (const LookedAt::Operand& operand : value.operands) {
      const auto known = place_of_.find(operand.name);
      const bool is_known = known != place_of_.end();
      if (is_known ? are[known->second] : operand.is_backward) are[i] = true;
      takes_others = takes_others || is_known;
    }
    if (!takes_others || has_part(value.name, "_grad.backward#")) are[i] = true;
  }
  return are;
}

void Dump::note_taken() {
  for (std::size_t i = 0; i < values_.size(); ++i) place_of_.emplace(values_[i].name, i);
  const std::vector<bool> are_gradients = gradients();
  std::set<std::string_view> known;  // results of one call have the same operands
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Place& place = places_[i];
    if (!is_op(place.entry) || !known.insert(place.entry).second) continue;
    const bool is_forward = has_part(place.entry, kForward);
    std::size_t number = 0;
    for (const LookedAt::Operand& operand : values_[i].operands) {
      const auto at = place_of_.find(operand.name);
      std::optional<std::size_t> value;
      if (at != place_of_.end()) value = at->second;
      if (!is_forward && !(value ? are_gradients[*value] : operand.is_backward)) continue;
      taken_.push_back({place.entry, is_forward ? "input_args" : "input", number++, value, i});
    }
  }
}

std::string Dump::Taken::data_name() const { return entry + ".input." + std::to_string(number); }

// msprobe writes a call where it ends: a module behind the ops in it, and before those that follow.
// Modules that end with the same op stay in the order in which they end.
void Dump::order_entries() {
  struct Ends {
    std::optional<std::size_t> given, taken;
  };
  std::map<std::string, Ends, std::less<>> ends;
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const Place& place = places_[i];
    if (place.list == "parameters") continue;  // there before anything is computed
    const bool is_given = place.list.empty() || place.list == "output";
    auto& end = is_given ? ends[place.entry].given : ends[place.entry].taken;
    // An op may give more than its module does, such as a norm its means.
    const bool is_further = is_op(place.entry) && end;
    if (!is_further) end = std::max(end.value_or(0), values_[i].order);
  }
  // Gradients of parameters, then updates, stand behind their module's backward pass.
  const auto rank_of = [](std::string_view entry) {
    return has_part(entry, kParametersGrad) ? 1 : has_part(entry, kParametersUpdate) ? 2 : 0;
  };
  const auto end_of = [&](const std::string& entry, int rank) -> const Ends& {
    if (rank == 0) return ends[entry];
    const std::size_t part = entry.find(rank == 1 ? kParametersGrad : kParametersUpdate);
    const auto backward = ends.find(entry.substr(0, part) + std::string(kBackward) + ".0");
    return backward != ends.end() ? backward->second : ends[entry];
  };
  struct Placed {
    std::tuple<bool, std::size_t, bool, int> key;
    std::string entry;
  };
  std::vector<Placed> placed;
  for (const bool is_forward : {true, false}) {
    std::size_t last = 0;  // where one ends of which nothing is seen
    for (const std::string& entry : entries_) {
      if (has_part(entry, kForward) != is_forward) continue;
      const int rank = rank_of(entry);
      const Ends& end = end_of(entry, rank);
      last = end.given ? *end.given : end.taken ? *end.taken : last;
      placed.push_back({{!is_forward, last, !is_op(entry), rank}, entry});
    }
  }
  std::ranges::stable_sort(placed, {}, &Placed::key);
  entries_.clear();
  for (Placed& p : placed) entries_.push_back(std::move(p.entry));
}

void Dump::keep(const std::vector<bool>& chosen, const std::vector<bool>& taken) {
  ensure(chosen.size() == values_.size() && taken.size() == taken_.size(),
         "each value is chosen or not");
  chosen_ = chosen;
  chosen_taken_ = taken;
  std::set<std::string_view> kept;
  for (std::size_t i = 0; i < places_.size(); ++i)
    if (chosen_[i]) kept.insert(places_[i].entry);
  for (std::size_t i = 0; i < taken_.size(); ++i)
    if (chosen_taken_[i] && taken_[i].value) kept.insert(taken_[i].entry);
  std::erase_if(entries_, [&](const std::string& entry) { return !kept.contains(entry); });
}

std::string Dump::class_of(std::string_view path) const {
  const auto it = std::ranges::find(modules_, path, &DumpedModule::path);
  const bool is_said = it != modules_.end() && !it->kind.empty();
  const std::string inside = path.empty() ? "" : std::string(path) + ".";
  return "Module." + inside + (is_said ? it->kind : "Module");
}

// "call:h.0.mlp#0.input.gradient": what flows out of a backward pass is the gradient of what flowed
// in before.
Dump::Place Dump::place_of_call(std::string_view name) const {
  take_prefix(name, kCall);
  const bool is_gradient = take_suffix(name, kGradient);
  const bool is_input = take_suffix(name, ".input") || !take_suffix(name, ".output");
  const std::size_t count = name.rfind('#');
  const std::string call = "." + std::string(name.substr(count + 1));
  const std::string module = class_of(name.substr(0, count));
  if (is_gradient) return {module + std::string(kBackward) + call, is_input ? "output" : "input"};
  return {module + std::string(kForward) + call, is_input ? "input_args" : "output", {}, true};
}

Dump::Place Dump::place_of_parameter(const LookedAt& value) const {
  std::string_view name = value.name;
  take_prefix(name, kParameter);
  if (value.call > 0) take_suffix(name, of_call(value.call));
  const std::string number = "." + std::to_string(value.call);
  const bool is_gradient = take_suffix(name, kGradient);
  const bool is_update = !is_gradient && take_suffix(name, kUpdate);
  const std::string_view path = parent_of(name);
  const std::string own(path.empty() ? name : name.substr(path.size() + 1));
  const std::string module = class_of(path);
  if (is_gradient) return {module + std::string(kParametersGrad) + ".0", "", own};
  if (is_update) return {module + std::string(kParametersUpdate) + number, "", own};
  const std::string gradient = std::string(kParameter) + std::string(name) + std::string(kGradient);
  const bool is_trained = std::ranges::find(values_, gradient, &LookedAt::name) != values_.end();
  return {module + std::string(kForward) + number, "parameters", own, is_trained};
}

// "h.0.mlp/linear.backward#1.2", of which the last number is that of the result.
Dump::Place Dump::place_of_op(const LookedAt& value) {
  const std::string_view name = value.name;
  const std::size_t count = name.rfind('#'), slash = name.rfind('/', count);
  std::string_view op = name.substr(slash + 1, count - slash - 1);
  op = op.substr(0, op.find('.'));
  const bool is_backward = is_behind_forward(value);
  // Results of one call follow one another.
  const std::string call(call_of(name));
  const std::string kind = std::string(op) + std::string(is_backward ? kBackward : kForward);
  auto it = std::ranges::find(op_counts_, kind, &std::pair<std::string, int>::first);
  if (it == op_counts_.end()) it = op_counts_.insert(it, {kind, -1});
  if (call != last_call_) ++it->second;
  last_call_ = call;
  return {"Torch." + std::string(op) + "." + std::to_string(it->second) +
              std::string(is_backward ? kBackward : kForward),
          "output",
          {},
          !is_backward};
}

std::string Dump::data_name(std::size_t i) const {
  const Place& place = places_[i];
  std::string name = place.entry;
  if (!place.list.empty()) name += "." + (place.list == "input_args" ? "input" : place.list);
  if (!place.parameter.empty()) return name + "." + place.parameter;
  const auto is_before = [&](const Place& p) {
    return p.entry == place.entry && p.list == place.list;
  };
  return name + "." +
         std::to_string(std::count_if(places_.begin(),
                                      places_.begin() + static_cast<std::ptrdiff_t>(i), is_before));
}

std::size_t Dump::value_of_record(std::size_t record) const {
  if (record < values_.size()) return record;
  const std::optional<std::size_t>& value = taken_.at(record - values_.size()).value;
  ensure(value.has_value(), "what nobody looks at has no record");
  return *value;
}

nlohmann::ordered_json Dump::numbers(std::span<const double> all) const {
  return with_records("statistics", [&](std::size_t record, bool requires_grad) {
    return record_of(values_[value_of_record(record)], all, requires_grad);
  });
}

nlohmann::ordered_json Dump::structure() const {
  return with_records("structure", [&](std::size_t record, bool requires_grad) {
    const LookedAt& value = values_[value_of_record(record)];
    return Json{{"type", "torch.Tensor"},
                {"dtype", torch_name(value.type.dtype)},
                {"shape", value.type.shape.max_extents()},
                {"requires_grad", requires_grad}};
  });
}

nlohmann::ordered_json Dump::outline() const {
  return with_records("statistics", [](std::size_t record, bool requires_grad) {
    return Json(2 * record + (requires_grad ? 1 : 0));
  });
}

nlohmann::ordered_json Dump::head(const char* task) const {
  return {{"task", task},
          {"level", level_ == "module" ? "L0"
                    : level_ == "op"   ? "L1"
                                       : "mix"},
          {"framework", "pytorch"},
          {"dump_data_dir", nullptr}};
}

nlohmann::ordered_json Dump::with_records(const char* task, const RecordAt& record_at) const {
  std::vector<Json> contents;
  std::unordered_map<std::string_view, std::size_t> number;
  for (const std::string& entry : entries_) {
    number.emplace(entry, contents.size());
    contents.push_back(empty_entry(entry));
  }
  const auto content_of = [&](const std::string& entry) {
    const auto it = number.find(entry);
    return it == number.end() ? nullptr : &contents[it->second];
  };
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (!chosen_[i]) continue;
    const Place& place = places_[i];
    Json record = record_at(i, place.requires_grad);
    Json& entry = *content_of(place.entry);
    if (place.list.empty())
      entry[place.parameter] = Json::array({std::move(record)});
    else if (place.parameter.empty())
      entry[place.list].push_back(std::move(record));
    else
      entry[place.list][place.parameter] = std::move(record);
  }
  put_taken(content_of, record_at);
  Json data = Json::object();
  for (std::size_t i = 0; i < entries_.size(); ++i)
    append(data, entries_[i], std::move(contents[i]));
  Json dump = head(task);
  append(dump, "data", std::move(data));
  if (Json names = taps(); !names.empty()) dump["taps"] = std::move(names);
  return dump;
}

// Records that stand elsewhere already, once more; null where there is none, so that those behind
// it keep their places.
void Dump::put_taken(const ContentOf& content_of, const RecordAt& record_at) const {
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    const Taken& t = taken_[i];
    Json* const content = content_of(t.entry);
    if (!content) continue;
    Json& list = (*content)[t.list];
    while (list.size() < t.number) list.push_back(nullptr);
    if (!chosen_taken_[i]) continue;
    const bool is_gradient = t.list == "input";
    list.push_back(
        t.value ? record_at(values_.size() + i, !is_gradient && places_[*t.value].requires_grad)
                : Json());
  }
}

// What results of ops are called, in the order of their entries, which do not say where they are
// made, which of the calls there it is, and which of its results.
Json Dump::taps() const {
  std::unordered_map<std::string_view, Json> of_entry;
  for (std::size_t i = 0; i < values_.size(); ++i)
    if (chosen_[i] && is_op(places_[i].entry))
      of_entry[places_[i].entry].push_back(values_[i].name);
  Json names = Json::object();
  for (const std::string& entry : entries_)
    if (const auto it = of_entry.find(entry); it != of_entry.end())
      append(names, entry, std::move(it->second));
  return names;
}

// The nearest call around `path`, of the same number or the first.
Json Dump::parent_of_call(std::string_view path, std::string_view direction,
                          const std::string& call) const {
  for (; !path.empty(); path = parent_of(path))
    for (const std::string& of : {call, std::string("0")}) {
      const std::string outer = class_of(path) + std::string(direction) + "." + of;
      if (std::ranges::find(entries_, outer) != entries_.end()) return outer;
    }
  return nullptr;
}

// "Module.h.0.mlp.Module.forward.0" lies in "Module.h.0.Module.forward.0".
nlohmann::ordered_json Dump::construct() const {
  Json parents = Json::object();
  if (level_ == "op") return parents;
  for (const std::string_view direction : {kForward, kBackward})
    for (const DumpedModule& m : modules_) {
      const std::string own = class_of(m.path) + std::string(direction) + ".";
      for (const std::string& entry : entries_)
        if (entry.starts_with(own))
          parents[entry] = parent_of_call(parent_of(m.path), direction, entry.substr(own.size()));
    }
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const std::string& entry = places_[i].entry;
    if (!chosen_[i] || !is_op(entry) || parents.contains(entry)) continue;
    const std::string_view direction = is_behind_forward(values_[i]) ? kBackward : kForward;
    parents[entry] =
        parent_of_call(function_of(values_[i].name), direction, std::to_string(values_[i].call));
  }
  return parents;
}

nlohmann::ordered_json Dump::stack() const {
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;  // with their entries
  // What a call gives is computed within it, what it takes by whoever was called before.
  std::vector<std::size_t> in_order(values_.size());
  std::iota(in_order.begin(), in_order.end(), std::size_t{0});
  std::ranges::stable_sort(in_order, {},
                           [&](std::size_t i) { return places_[i].list != "output"; });
  for (const std::size_t i : in_order) {
    const LookedAt& value = values_[i];
    const std::string& entry = places_[i].entry;
    if (!chosen_[i] || value.file.empty() || !has_part(entry, kForward)) continue;
    if (is_of_library(value.file)) continue;
    const std::string line = "File " + value.file + ", line " + std::to_string(value.line) +
                             ", in " + function_of(value.name) + ", \n ";
    const auto is_known = std::ranges::any_of(
        lines, [&](const auto& l) { return std::ranges::find(l.second, entry) != l.second.end(); });
    if (is_known) continue;
    auto it = std::ranges::find(lines, line, &decltype(lines)::value_type::first);
    if (it == lines.end()) it = lines.insert(it, {line, {}});
    it->second.push_back(entry);
  }
  Json stack = Json::object();
  for (std::size_t i = 0; i < lines.size(); ++i)
    stack[std::to_string(i)] = Json::array({lines[i].second, Json::array({lines[i].first})});
  return stack;
}

}  // namespace aloft::probe
