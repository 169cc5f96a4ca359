#include "frontend/eager_taps.h"

#include <algorithm>

#include "base/error.h"
#include "frontend/variable_values.h"
#include "ops/attention_inside.h"
#include "ops/binary.h"
#include "ops/cast.h"
#include "ops/evaluate.h"
#include "ops/statistics.h"
#include "ops/update.h"
#include "types/call.h"
#include "types/statistics.h"

namespace aloft {

namespace {

constexpr std::string_view kPrefixes[] = {"", kStatisticsPrefix, kExponentsPrefix};
constexpr std::string_view kAccumulated = "accumulated.";
constexpr const char* kNoSuchGradient =
    "the step has no value that is just that: nobody needs it, or a sum takes it in parts";
constexpr const char* kValueIsAnother =
    "no backward pass meets this value: it was computed where nothing is recorded, or another "
    "took its place before backward()";

std::shared_ptr<EagerCell> cell_of(const Tensor& t) {
  return std::static_pointer_cast<EagerCell>(t.held());
}

// Of an update op's call, the layout of its operands; nothing of another op.
std::optional<UpdateLayout> layout_of(const OpCall& call) {
  const optim::FormulaRecord* formula = formula_of_update(call.op);
  if (!formula) return std::nullopt;
  return update_layout(update_attrs(call.attrs), *formula);
}

bool is_of_parameter(std::string_view tap) {
  return tap.substr(shown_prefix(tap).size()).starts_with(parameter_tap(""));
}

// Where gradients are summed over micro-batches, the parameter whose sum the op adds to; "".
std::string summed_parameter(const EagerEmitter& e, Name op, std::span<const Tensor> in) {
  if (op != Name("add")) return {};
  const VariablePtr& sums = e.cell(in[0]).variable;
  if (!sums || sums->cls != StateClass::Gradient) return {};
  const std::string& name = sums->name.str();
  return name.starts_with(kAccumulated) ? name.substr(kAccumulated.size()) : std::string();
}

}  // namespace

EagerTaps::EagerTaps(const AskedTaps& asked) : asked_(asked) {
  for (const std::string& pattern : asked_.patterns) patterns_.emplace_back(pattern);
  asks_updates_ = std::ranges::any_of(asked_.patterns, [](const std::string& pattern) {
    return pattern.starts_with(std::string(kStatisticsPrefix) + "parameter:") ||
           pattern.starts_with(std::string(kExponentsPrefix) + "parameter:");
  });
  asks_attention_ = std::ranges::any_of(
      asked_.patterns, [](const std::string& pattern) { return asks_for_attention(pattern); });
  asks_inputs_ = std::ranges::any_of(asked_.patterns, [](const std::string& pattern) {
    return pattern.find(input_tap("")) != std::string::npos;
  });
}

EagerTaps::Looking::Looking(EagerTaps& taps)
    : emitter_(eager()),
      calls_(taps.asked_.calls,
             [this, &taps](const nn::Module& module, const std::string& name, const Tensor& value) {
               taps.called(emitter_, module, name, value);
             }) {
  taps.begin();
  // A parameter's cast that an earlier micro-batch left would not be called, and not be seen.
  if (emitter_.outer_) emitter_.outer_->forget_casts();
  emitter_.show_to(&taps);
}

EagerTaps::Looking::~Looking() { emitter_.show_to(nullptr); }

bool EagerTaps::are_looking() { return eager().taps_ != nullptr; }

void EagerTaps::called(EagerEmitter& e, const nn::Module& module, const std::string& name,
                       const Tensor& value) {
  classes_.emplace(module.path(), module.kind());
  Where where = current_where();
  if (const EagerCell& c = e.cell(value); e.is_recorded(c)) where = e.tape_.node(c.id.node).where;
  show(e, name, Kind::Call, value, where);
}

void EagerTaps::begin() {
  classes_.clear();
  variables_ = {};
  occurrences_.clear();
  attentions_.clear();
  entries_.clear();
  entry_of_.clear();
  read_.clear();
  taken_.clear();
  asked_gradients_.clear();
  missing_.clear();
  replaced_.clear();
  updates_of_.clear();
  calls_ = inputs_ = 0;
  made_.clear();
  shown_as_.clear();
  updates_.clear();
  casts_.clear();
  rounded_from_masters_.clear();
}

bool EagerTaps::is_asked(const std::string& name) const {
  return std::ranges::any_of(patterns_, [&](const TapPattern& p) { return p.matches(name); });
}

std::vector<const EagerTaps::Entry*> EagerTaps::in_order() const {
  std::vector<const Entry*> all;
  for (const Entry& entry : entries_) all.push_back(&entry);
  std::ranges::stable_sort(all, {}, [](const Entry* e) { return std::pair(e->kind, e->place); });
  return all;
}

std::vector<EagerTaps::Shown> EagerTaps::shown() const {
  std::vector<Shown> all;
  for (const Entry* entry : in_order()) all.push_back(entry->shown);
  return all;
}

// What one backward pass does not show, another of the step may.
std::vector<RefusedTap> EagerTaps::missing() const {
  std::vector<RefusedTap> all;
  std::set<std::string_view> known;
  for (const RefusedTap& tap : missing_)
    if (!entry_of_.contains(tap.name) && known.insert(tap.name).second) all.push_back(tap);
  return all;
}

void EagerTaps::put(Entry entry) {
  std::string key = entry.shown.name;
  if (entry.shown.call > 0) key += "@" + std::to_string(entry.shown.call);
  const auto [at, is_new] = entry_of_.emplace(std::move(key), entries_.size());
  if (!is_new) {
    entries_[at->second] = std::move(entry);
    return;
  }
  entries_.push_back(std::move(entry));
}

EagerTaps::CellPtr EagerTaps::cell_to_show(EagerEmitter& e, std::string_view tap,
                                           const CellPtr& of) {
  const std::string_view prefix = shown_prefix(tap);
  CellPtr& known = taken_[std::string(prefix)][of];
  if (known) return known;
  if (prefix.empty()) return known = e.copy_of(*of);  // it shares the memory, which nobody writes
  const Aside aside(e);
  const NoGrad no_grad;
  const Tensor value(&e, of->id, of);
  EmitterScope scope(e);
  return known = cell_of(statistics(value, prefix == kExponentsPrefix, shows_scores(tap)));
}

void EagerTaps::show(EagerEmitter& e, const std::string& name, Kind kind, const Tensor& value,
                     const Where& where) {
  const CellPtr cell = cell_of(value);
  if (!is_float(cell->type.dtype)) return;
  Entry entry{{name, bind_lengths(cell->type, cell->lengths), where.phase, where.file.str(),
               where.line, cell_to_show(e, name, cell)},
              kind,
              entries_.size(),
              cell};
  note_maker(entry.shown, cell);
  if (kind != Kind::Call) shown_as_.emplace(cell, name);
  put(std::move(entry));
}

void EagerTaps::note_maker(Shown& shown, const CellPtr& value) const {
  const auto made = made_.find(value);
  if (made == made_.end()) return;
  shown.made_by = made->second.by;
  shown.result = made->second.result;
}

// Which call made the results, of which of the values that are shown.
void EagerTaps::note_call(const EagerEmitter& e, const Node& node, std::span<const Tensor> in,
                          const std::vector<Tensor>& results) {
  const auto call = std::make_shared<Call>(
      Call{calls_++, node.identity(), node.op, node.where.path, !in.empty()});
  for (const Tensor& t : in) {
    const CellPtr cell = cell_of(t);
    const auto tap = shown_as_.find(cell);
    call->operands.push_back(tap == shown_as_.end() ? std::string() : tap->second);
    if (tap != shown_as_.end() || !is_float(cell->type.dtype)) continue;
    const auto made = made_.find(cell);
    const std::string of = cell->variable        ? cell->variable->name.str()
                           : made != made_.end() ? made->second.by->name
                                                 : "outside of the step";
    call->unseen.push_back(bind_lengths(cell->type, cell->lengths).str() + " of " + of);
  }
  for (std::size_t i = 0; i < results.size(); ++i)
    made_[cell_of(results[i])] = {call, static_cast<int>(i)};
}

void EagerTaps::copied(const Tensor& value, const CellPtr& to) {
  const CellPtr from = cell_of(value);
  if (const auto made = made_.find(from); made != made_.end()) made_.emplace(to, made->second);
  if (const auto tap = shown_as_.find(from); tap != shown_as_.end())
    shown_as_.emplace(to, tap->second);
}

// What comes from outside of the step and is no variable, in the order in which ops take it.
void EagerTaps::show_inputs(EagerEmitter& e, std::span<const Tensor> in) {
  if (!asks_inputs_) return;
  for (const Tensor& t : in) {
    const CellPtr cell = cell_of(t);
    if (!is_float(cell->type.dtype) || cell->variable || made_.contains(cell) ||
        shown_as_.contains(cell))
      continue;
    show_all(e, input_tap(std::to_string(inputs_++)), Kind::Value, t, Where{});
  }
}

// For each kind of pattern that asks for the value of this name.
void EagerTaps::show_all(EagerEmitter& e, const std::string& value_name, Kind kind,
                         const Tensor& value, const Where& where) {
  for (const std::string_view prefix : kPrefixes)
    if (const std::string name = std::string(prefix) + value_name; is_asked(name))
      show(e, name, kind, value, where);
}

std::vector<Tensor> EagerTaps::emit(EagerEmitter& e, const OpCall& call, std::span<const Tensor> in,
                                    const Where& where) {
  Node node;  // as it would stand in a graph
  node.op = call.op;
  node.where = where;
  node.occurrence = occurrences_[{where.path, call.op, where.phase}]++;
  show_inputs(e, in);
  const auto layout = asks_updates_ ? layout_of(call) : std::nullopt;
  if (layout && !e.is_recording()) {
    Attrs attrs = call.attrs;
    attrs.set("statistics", true);
    const OpCall asked{call.op, attrs, call.form};
    std::vector<Tensor> results = e.run_op(asked, in, where);
    note_updates(*layout_of(asked), results, where);
    results.resize(static_cast<std::size_t>(layout->outputs()));
    note_call(e, node, in, results);
    for (std::uint32_t i = 0; i < results.size(); ++i)
      show_all(e, tap_name(node, i), Kind::Value, results[i], where);
    return results;
  }
  const std::string parameter = summed_parameter(e, call.op, in);
  std::vector<Tensor> results = e.run_op(call, in, where);
  note_call(e, node, in, results);
  if (!parameter.empty()) show_sum(e, parameter, results[0], where);
  if (where.phase == Phase::Update && call.op == Name("cast"))
    casts_[cell_of(results[0])] = cell_of(in[0]);
  const Kind kind = where.phase == Phase::Backward ? Kind::Backward : Kind::Value;
  for (std::uint32_t i = 0; i < results.size(); ++i)
    show_all(e, tap_name(node, i), kind, results[i], where);
  if (asks_attention_ && has_attention_inside(call.op)) show_inside(e, node, call, in);
  return results;
}

// Computed once more, and recorded by nobody.
void EagerTaps::show_inside(EagerEmitter& e, const Node& node, const OpCall& call,
                            std::span<const Tensor> in) {
  const Where& where = node.where;
  const int number = attentions_.of(where.path, node.occurrence);
  const std::string path = where.path.str();
  // A pattern that does not name them does not mean them.
  const auto asked = [&](const std::string& value) {
    std::vector<std::string> names;
    for (const std::string_view prefix : kPrefixes) {
      const std::string name = std::string(prefix) + value;
      if (std::ranges::any_of(asked_.patterns, [&](const std::string& pattern) {
            return asks_for_attention(pattern) && TapPattern(pattern).matches(name);
          }))
        names.push_back(name);
    }
    return names;
  };
  const auto scores = asked(scores_tap(path, number));
  const auto shares = asked(probabilities_tap(path, number));
  if (scores.empty() && shares.empty()) return;
  AttentionInside inside;
  {
    const Aside aside(e);
    const NoGrad no_grad;
    const EmitterScope scope(e);
    inside = inside_attention(call.op, call.attrs, in);
  }
  for (const std::string& name : scores) show(e, name, Kind::Inside, inside.scores, where);
  for (const std::string& name : shares) show(e, name, Kind::Inside, inside.probabilities, where);
}

void EagerTaps::read(EagerEmitter& e, const VariablePtr& variable, const Tensor& value) {
  const std::string name = variables_.id_of(variable).str();
  const bool is_parameter = variable->cls == StateClass::Parameter;
  if (!read_.insert(variable.get()).second) {
    // A gradient may be that of another value than the step found.
    for (const std::string_view prefix : kPrefixes)
      if (const auto at = entry_of_.find(std::string(prefix) + parameter_tap(name));
          is_parameter && at != entry_of_.end())
        entries_[at->second].of = cell_of(value);
    return;
  }
  show_all(e, is_parameter ? parameter_tap(name) : variable_tap(name), Kind::Value, value,
           is_parameter ? current_where() : Where{});
}

// Of the whole step, behind the last micro-batch; it stands with its parameter.
void EagerTaps::show_sum(EagerEmitter& e, const std::string& parameter, const Tensor& sum,
                         const Where& where) {
  for (const std::string_view prefix : kPrefixes) {
    const std::string of = std::string(prefix) + parameter_tap(parameter);
    const auto tapped = entry_of_.find(of);
    if (tapped == entry_of_.end()) continue;
    const std::size_t place = entries_[tapped->second].place;
    const std::string name = gradient_of_tap(of)->name;
    show(e, name, Kind::Value, sum, where);
    entries_[entry_of_.at(name)].place = place;
  }
}

// What the update takes.
void EagerTaps::added_up(EagerEmitter& e, const VariablePtr& variable, const Tensor& sum) {
  show_sum(e, variables_.id_of(variable).str(), sum, where_values_are_added(current_where()));
}

std::vector<GradientView> EagerTaps::asked_gradients(EagerEmitter& e) {
  std::vector<GradientView> views;
  asked_gradients_.clear();
  for (const Entry* entry : in_order()) {
    const std::string& name = entry->shown.name;
    auto tap = gradient_of_tap(name);
    if (!tap) continue;
    // Of a parameter each backward pass has one, and the update takes the last.
    const bool is_shown = entry_of_.contains(tap->name);
    if (is_shown && !is_of_parameter(name)) continue;
    const CellPtr value = entry->of.lock();
    if (!value || !e.is_recorded(*value)) {
      if (is_shown) continue;
      missing_.push_back({std::move(tap->name), kValueIsAnother});
      continue;
    }
    // Of a call that gives what it takes, such as a dropout of nothing, all comes through.
    if (tap->through)
      if (const auto given = entry_of_.find(output_of_call(name));
          given != entry_of_.end() && entries_[given->second].of.lock() == value)
        tap->through.reset();
    views.push_back({value->id, std::move(tap->through)});
    asked_gradients_.push_back(std::move(tap->name));
  }
  return views;
}

// A gradient that an update took, and that another one takes the place of.
void EagerTaps::note_replaced(const std::string& gradient) {
  const std::string name = gradient.substr(shown_prefix(gradient).size());
  const std::string parameter = name.substr(0, name.rfind('.'));
  if (entry_of_.contains(gradient) && updates_of_.contains(parameter)) replaced_.insert(name);
}

// The last value's first, as a backward pass comes to them.
void EagerTaps::show_gradients(EagerEmitter& e, const std::vector<GradientView>& views) {
  for (std::size_t i = views.size(); i-- > 0;) {
    const Tensor& g = views[i].gradient;
    if (!g.is_defined()) {
      missing_.push_back({asked_gradients_[i], kNoSuchGradient});
      continue;
    }
    Where where = where_of_gradients(current_where());
    const EagerCell& c = e.cell(g);
    if (e.is_recorded(c)) where = e.tape_.node(c.id.node).where;
    note_replaced(asked_gradients_[i]);
    show(e, asked_gradients_[i], Kind::Gradient, g, where);
  }
}

void EagerTaps::note_updates(const UpdateLayout& layout, const std::vector<Tensor>& results,
                             const Where& where) {
  for (int i = 0; i < layout.count; ++i)
    updates_[cell_of(results[static_cast<std::size_t>(layout.new_parameter(i))])] = {
        cell_of(results[static_cast<std::size_t>(layout.statistics(i))]), where};
}

void EagerTaps::show_update(const VariablePtr& variable, const CellPtr& value,
                            const CellPtr& statistics, const Where& where, bool is_again) {
  const std::string id = variables_.id_of(variable).str();
  int& updates = updates_of_[parameter_tap(id)];
  if (!is_again) ++updates;
  for (const std::string_view prefix : {kStatisticsPrefix, kExponentsPrefix}) {
    const std::string name = update_tap(prefix, id);
    if (!is_asked(name)) continue;
    Shown shown{name,        {DType::F32, variable->type.shape},
                where.phase, where.file.str(),
                where.line,  statistics};
    note_maker(shown, value);
    shown.result = 0;
    shown.call = updates - 1;
    put({std::move(shown), Kind::Update, entries_.size()});
  }
}

EagerTaps::CellPtr EagerTaps::statistics_of_change(EagerEmitter& e, const Tensor& after,
                                                   const VariablePtr& variable) {
  const Aside aside(e);
  const NoGrad no_grad;
  EmitterScope scope(e);
  const auto in_f32 = [](const Tensor& x) { return cast(x, DType::F32); };
  const Tensor value(&e, after.id(), after.held());
  return cell_of(statistics(sub(in_f32(value), in_f32(e.value_of(variable)))));
}

// What the step adds to a parameter: an update op has said it; where another op makes the new
// value, or the master that it is rounded from, it is the difference.
void EagerTaps::changes(EagerEmitter& e, const VariablePtr& variable, const Tensor& value) {
  if (!asks_updates_) return;
  const CellPtr cell = cell_of(value);
  if (const auto of = rounded_from_masters_.find(cell); of != rounded_from_masters_.end())
    return show_update(of->second, cell, statistics_of_change(e, value, variable), current_where(),
                       true);
  if (variable->cls != StateClass::Parameter) return;
  if (const auto ready = updates_.find(cell); ready != updates_.end())
    return show_update(variable, cell, ready->second.statistics, ready->second.where);
  if (const auto from = casts_.find(cell); from != casts_.end())
    rounded_from_masters_[from->second] = variable;
  show_update(variable, cell, statistics_of_change(e, value, variable), current_where());
}

}  // namespace aloft
