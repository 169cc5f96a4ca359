#include "frontend/optimizer.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>

#include "base/error.h"
#include "base/text.h"
#include "frontend/check_optimizer.h"
#include "frontend/eager_emitter.h"
#include "frontend/host_count.h"
#include "frontend/loss_scales.h"
#include "frontend/module.h"
#include "frontend/premises.h"
#include "frontend/variable_values.h"
#include "ops/update_layout.h"
#include "optim/kind.h"
#include "scalar/plateau.h"

namespace aloft {
namespace {

VariablePtr new_variable(const std::string& name, DType dtype, const Shape& shape, StateClass cls) {
  auto v = std::make_shared<Variable>();
  v->name = name;
  v->type = {dtype, shape};
  v->cls = cls;
  v->requires_grad = false;
  nn::allocate(*v);
  return v;
}

constexpr const char* kApplied = "optim.applied";

std::int64_t number_in(const Variable& i64) {
  return i64.buffer ? i64.buffer->read_one<std::int64_t>() : 0;  // none in a description
}

std::size_t checked(const char* what, std::size_t i, std::size_t count) {
  if (i < count) return i;
  throw UserError("E0814", "the optimizer has no such " + std::string(what))
      .saw(std::to_string(i))
      .need(count > 0 ? "0 to " + std::to_string(count - 1) : "nothing: it has none");
}

VariablePtr new_sum(const Variable& parameter) {
  return new_variable("accumulated." + parameter.name.str(), DType::F32, parameter.type.shape,
                      StateClass::Gradient);
}

}  // namespace

ScalerVariables new_scaler_variables(const scalar::ScalerRule& rule, std::size_t loss) {
  const auto control = [&](const char* name, DType type) {
    const std::string number = loss > 0 ? "." + std::to_string(loss) : "";
    return new_variable("scaler." + (name + number), type, {}, StateClass::Control);
  };
  ScalerVariables v{control("scale", DType::F32), control("good_steps", DType::I32),
                    control("overflow_run", DType::I32), control("skipped", DType::I64)};
  ensure(is_loss_scale(*v.scale), "a loss scale is known by its name");
  if (v.scale->buffer) v.scale->buffer->write_one(scalar::initial_state(rule).scale);
  return v;
}

Optimizer::Optimizer(OptimizerSpec spec, const std::vector<VariablePtr>& parameters,
                     scalar::ScalerRule scaler)
    : content_(std::make_shared<Content>()) {
  check_optimizer(spec, parameters, scaler);
  explain_switches(spec);
  content_->spec = std::move(spec);
  content_->scaler = scaler;
  content_->given = parameters;
  content_->moments.resize(kept().size());
  for (const VariablePtr& p : parameters)
    if (p->requires_grad) take(content_->parameters.size(), p);
  applied = new_variable(kApplied, DType::I64, {}, StateClass::Control);
  content_->scope_record = std::make_shared<amp::ScopeRecord>();
  share(std::make_shared<amp::LossScales>(scaler, 1));
  if (this->spec().schedule.kind == scalar::ScheduleKind::Plateau) {
    content_->plateau = new_variable("optim.plateau", DType::F64, {4}, StateClass::Control);
    if (const auto& buffer = content_->plateau->buffer) {
      const auto numbers = scalar::PlateauState().numbers();
      buffer->write_from(std::as_bytes(std::span(numbers)));
    }
  }
}

void Optimizer::share(const std::shared_ptr<amp::LossScales>& loss_scales) {
  content_->loss_scales = loss_scales;
  const ScalerVariables& own = loss_scales->each[0].state;
  scale = own.scale, good_steps = own.good_steps;
  overflow_run = own.overflow_run, skipped = own.skipped;
}

// As parameter `at`.
void Optimizer::take(std::size_t at, const VariablePtr& p) {
  Content& c = *content_;
  const auto i = static_cast<std::ptrdiff_t>(at);
  c.parameters.insert(c.parameters.begin() + i, p);
  const bool is_rest = this->is_rest(at);
  const std::size_t states = spec().rule.states().size();
  for (std::size_t k = 0; k < c.moments.size(); ++k)
    c.moments[k].insert(c.moments[k].begin() + i,
                        k < states ? new_state(k, *p, is_rest) : new_average(k, *p));
  c.counts.insert(c.counts.begin() + i, nullptr);
  c.sums.insert(c.sums.begin() + i, sums_micro_batches() ? new_sum(*p) : nullptr);
}

VariablePtr Optimizer::new_state(std::size_t k, const Variable& p, bool is_rest) const {
  const optim::FormulaRecord& formula = *spec().rule.formula;
  const Shape shape = formula.state_shape(k, p.type.shape, is_rest);
  const bool is_of_tensor = static_cast<int>(k) >= formula.element_states();
  const StateFormat format = is_of_tensor ? StateFormat::F32 : spec().states;
  const TensorType type = type_of(format, shape);
  const VariablePtr state =
      new_variable(moment_name(k, p), type.dtype, type.shape, StateClass::Optimizer);
  if (format == StateFormat::Block8)
    state->layout = formula.is_not_negative(k) ? Layout::BlocksNotNegative : Layout::Blocks;
  return state;
}

VariablePtr Optimizer::new_average(std::size_t k, const Variable& p) const {
  return new_variable(moment_name(k, p), DType::F32, p.type.shape, StateClass::Optimizer);
}

void Optimizer::give_master(Variable& p) const {
  if (!p.master && content_->late_master) p.master = content_->late_master(p);
}

// A low one without a master may get one yet, by another optimizer that has it.
const VariablePtr& Optimizer::master(std::size_t i) const {
  const VariablePtr& p = parameters()[checked("parameter", i, parameters().size())];
  if (Premises* trace = premises_of_trace(); trace && !p->master && p->type.dtype != DType::F32)
    trace->found_none({p, &p->master});
  return p->master;
}

const VariablePtr& Optimizer::moment(std::size_t k, std::size_t i) const {
  const auto& own = content_->moments[checked("moment", k, content_->moments.size())];
  return own[checked("parameter", i, own.size())];
}

std::vector<std::string_view> Optimizer::kept() const {
  std::vector<std::string_view> names = spec().rule.states();
  if (spec().average) names.push_back("average");
  return names;
}

VariablePtr Optimizer::average(std::size_t i) const {
  return spec().average ? moment(content_->moments.size() - 1, i) : nullptr;
}

const VariablePtr& Optimizer::applied_to(std::size_t i) const {
  const VariablePtr& own = content_->counts[checked("parameter", i, content_->counts.size())];
  return own ? own : applied;
}

const Optimizer& Optimizer::trained() {
  Content& c = *content_;
  std::vector<std::size_t> frozen, late;
  std::size_t at = 0;
  for (const VariablePtr& p : c.given) {
    const bool is_ours = at < c.parameters.size() && c.parameters[at] == p;
    if (!read_premise(p, p->requires_grad)) {
      if (is_ours) frozen.push_back(at++);
      continue;
    }
    if (!is_ours) {
      give_master(*p);
      take(at, p);
      late.push_back(at);
    }
    ++at;
  }
  c.trained.reset();
  if (frozen.size() == c.parameters.size()) throw nothing_to_train();
  if (!late.empty() && (number_in(*applied) > 0 || has_step_in_trace())) share_count(late, nullptr);
  count_apart(frozen);
  read_premise(c.modes, modes().regroupings);
  if (frozen.empty()) return *this;
  const auto part = std::make_shared<Optimizer>(*this);
  part->content_ = std::make_shared<Content>(c);
  for (std::size_t k = frozen.size(); k-- > 0;) part->leave_out(frozen[k]);
  c.trained = part;
  return *part;
}

void Optimizer::leave_out(std::size_t at) {
  Content& c = *content_;
  const auto i = static_cast<std::ptrdiff_t>(at);
  c.parameters.erase(c.parameters.begin() + i);
  for (auto& list : c.moments) list.erase(list.begin() + i);
  c.counts.erase(c.counts.begin() + i);
  c.sums.erase(c.sums.begin() + i);
}

// Whether the function that is being traced has made a step before it froze or unfroze parameters
// itself. Its program alone then knows where counts stand; it runs once, as parameters are grouped
// anew.
bool Optimizer::has_step_in_trace() const {
  const Premises* p = premises_of_trace();
  return p && p->has_found(&modes().regroupings);
}

// Of parameters that have shared a count those in `frozen` are left out now and the others are not:
// from here on their counts differ. As in torch.optim, where each parameter has a count; what comes
// and goes together shares one, so that one op updates all of it.
void Optimizer::count_apart(const std::vector<std::size_t>& frozen) {
  if (frozen.empty()) return;
  struct Sharing {
    std::vector<std::size_t> trained, frozen;
  };
  // By count; null: those that share `applied`, which goes on in any case.
  std::map<VariablePtr, Sharing> all;
  for (std::size_t i = 0; i < parameters().size(); ++i) {
    Sharing& sharing = all[content_->counts[i]];
    const bool is_frozen = std::binary_search(frozen.begin(), frozen.end(), i);
    (is_frozen ? sharing.frozen : sharing.trained).push_back(i);
  }
  for (const auto& [count, sharing] : all) {
    if (sharing.frozen.empty() || (count && sharing.trained.empty())) continue;
    const bool keep = count && is_named_for(*count, sharing.frozen);
    share_count(keep ? sharing.trained : sharing.frozen, count ? count : applied);
  }
}

// A count bears the name of the first that had it: who keeps it where a group is parted.
bool Optimizer::is_named_for(const Variable& count, const std::vector<std::size_t>& members) const {
  return std::any_of(members.begin(), members.end(),
                     [&](std::size_t i) { return count.name == count_name(*parameters()[i]); });
}

// Gives `members` a count of their own, which begins where `from` stands; null: at 0.
void Optimizer::share_count(const std::vector<std::size_t>& members, const VariablePtr& from) {
  const VariablePtr count =
      new_variable(count_name(*parameters()[members[0]]), DType::I64, {}, StateClass::Control);
  for (const std::size_t i : members) content_->counts[i] = count;
  ++modes().regroupings;
  if (!from) return;
  if (count->buffer) count->buffer->write_one(number_in(*from));
  if (has_step_in_trace()) current_emitter().update(count, current_emitter().state(from));
}

std::string Optimizer::count_name(const Variable& parameter) {
  return std::string(kOwnCount) + parameter.name.str();
}

std::string Optimizer::moment_name(std::size_t k, const Variable& parameter) const {
  return "optim." + std::string(kept()[k]) + "." + parameter.name.str();
}

Optimizer Optimizer::with(const std::vector<VariablePtr>& late) const {
  Optimizer draft = *this;
  draft.content_ = std::make_shared<Content>(*content_);
  draft.content_->trained.reset();
  std::size_t at = 0;
  for (const VariablePtr& p : given()) {
    const bool is_ours = at < draft.parameters().size() && draft.parameters()[at] == p;
    if (!is_ours && std::find(late.begin(), late.end(), p) == late.end()) continue;
    if (!is_ours) draft.take(at, p);
    ++at;
  }
  return draft;
}

void Optimizer::become(const Optimizer& draft) {
  *content_ = *draft.content_;
  for (const VariablePtr& p : parameters()) give_master(*p);
  ++modes().regroupings;  // programs that left the late ones out did not part their counts
}

void Optimizer::set_counts(const std::vector<std::optional<std::int64_t>>& own) {
  // Those that share a count go on to, as far as their numbers are the same.
  std::map<std::pair<VariablePtr, std::int64_t>, std::vector<std::size_t>> all;
  for (std::size_t i = 0; i < parameters().size(); ++i)
    if (const VariablePtr& count = content_->counts[i]; count || own[i])
      all[{count, own[i].value_or(number_in(*applied))}].push_back(i);
  for (const auto& [group, members] : all) {
    const auto& [count, updates] = group;
    if (!count || !is_named_for(*count, members)) share_count(members, nullptr);
    Variable& its = *content_->counts[members[0]];
    eager().let_go_of(its);
    its.buffer->write_one(updates);
  }
}

std::vector<VariablePtr> Optimizer::state() const {
  const Content& c = *content_;
  std::vector<VariablePtr> all;
  for (const VariablePtr& p : c.parameters)
    if (p->master) all.push_back(p->master);
  for (const auto& list : c.moments) all.insert(all.end(), list.begin(), list.end());
  all.insert(all.end(), accumulators().begin(), accumulators().end());
  if (const VariablePtr done = micro_batches()) all.push_back(done);
  for (const VariablePtr& own : c.counts)
    if (own && std::find(all.begin(), all.end(), own) == all.end()) all.push_back(own);
  if (c.plateau) all.push_back(c.plateau);
  all.push_back(applied);
  for (const amp::LossScales::One& loss : c.loss_scales->each) {
    const ScalerVariables& s = loss.state;
    all.insert(all.end(), {s.scale, s.good_steps, s.overflow_run, s.skipped});
  }
  return all;
}

void Optimizer::report_loss(double loss) {
  const VariablePtr& kept = content_->plateau;
  if (!kept)
    throw UserError("E0831", "a loss is reported to an optimizer whose rate does not go by losses")
        .saw("schedule " + std::string(name_of(spec().schedule.kind)))
        .need("ScheduleKind::Plateau; in a recipe schedule.kind = \"plateau\"");
  const scalar::ScheduleRule& s = spec().schedule;
  const scalar::PlateauRule rule{s.gamma, s.patience, s.threshold, s.cooldown, s.min_factor};
  std::array<double, 4> numbers;
  std::ranges::copy(kept->buffer->read<double>(), numbers.begin());
  numbers = next_plateau(scalar::PlateauState::of(numbers), rule, loss).numbers();
  eager().let_go_of(*kept);
  kept->buffer->write_from(std::as_bytes(std::span(numbers)));
}

const ParameterGroup* Optimizer::group(std::size_t i) const {
  const std::string name = parameters()[checked("parameter", i, parameters().size())]->name.str();
  for (const ParameterGroup& group : spec().groups)
    if (glob_match_any(group.parameters, name)) return &group;
  return nullptr;
}

bool Optimizer::decays(std::size_t i) const {
  if (const ParameterGroup* own = group(i); own && own->weight_decay) return true;
  if (parameters()[i]->is_norm && !spec().decay.norms) return false;
  return !glob_match_any(spec().decay.without, parameters()[i]->name.str());
}

bool Optimizer::is_rest(std::size_t i) const {
  const VariablePtr& p = parameters()[checked("parameter", i, parameters().size())];
  return glob_match_any(spec().rest, p->name.str());
}

int Optimizer::accumulation() const {
  return static_cast<int>(read_premise(content_->modes, modes().per_step));
}

namespace {
UserError wrong_turn(const std::string& headline, std::int32_t done, std::int64_t per_step) {
  return UserError("E0802", headline)
      .saw(std::to_string(done) + " micro-batches in accumulate() since the last step")
      .need(std::to_string(per_step - 1) +
            ", then minimize() with the last: the optimizer.set_accumulation(" +
            std::to_string(per_step) + ")");
}
}  // namespace

void Optimizer::count_micro_batch() {
  count_on_host({modes().done, [n = modes().per_step](std::int32_t done) {
                   if (done + 1 >= n)
                     throw wrong_turn("accumulate() where the last micro-batch is due", done, n);
                   return done + 1;
                 }});
}

void Optimizer::count_last_micro_batch() {
  count_on_host({modes().done, [n = modes().per_step](std::int32_t done) {
                   if (done + 1 != n)
                     throw wrong_turn("a step before the last micro-batch", done, n);
                   return 0;
                 }});
}

void Optimizer::count_none() {
  if (accumulation() > 1) count_on_host({modes().done, [](std::int32_t) { return 0; }});
}

const std::vector<VariablePtr>& Optimizer::accumulators() const {
  static const std::vector<VariablePtr> none;
  return sums_micro_batches() ? content_->sums : none;
}

void Optimizer::drop_micro_batches() {
  for (const VariablePtr& sum : content_->sums) {
    if (!sum || !sum->buffer) continue;
    eager().let_go_of(*sum);
    sum->buffer->zero();
  }
  if (const VariablePtr& done = modes().done; done && done->buffer)
    done->buffer->write_one(std::int32_t{0});
  for (const auto& [done, sums] : loss_scales().sums)
    if (done == modes().done) sums.forget_now();
}

void Optimizer::set_accumulation(int micro_batches) {
  if (micro_batches < 1)
    throw UserError("E0802",
                    "the number of accumulated micro-batches is " + std::to_string(micro_batches))
        .need("1 or more");
  // A program would do it once, while it is traced, and not in each call.
  if (premises_of_trace())
    throw UserError("E0802", "set_accumulation() is called while the function is being traced")
        .need("a call outside of it: it begins anew at once, whatever the program does")
        .advice(
            "call it before the compiled function, which is then compiled for that number; to "
            "drop what was summed, optimizer.zero_grad() works in both");
  Content& c = *content_;
  drop_micro_batches();
  modes().per_step = micro_batches;
  c.trained.reset();  // it knows other sums
  for (std::size_t i = 0; i < c.sums.size(); ++i) {
    VariablePtr& sum = c.sums[i];
    if (!sums_micro_batches() && sum.use_count() == 1) sum.reset();  // no program has it
    if (sums_micro_batches() && !sum) sum = new_sum(*c.parameters[i]);
  }
  if (sums_micro_batches() && !modes().done)
    modes().done = new_variable(kMicroBatches, DType::I32, {}, StateClass::Control);
}

}  // namespace aloft
