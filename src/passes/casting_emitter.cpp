#include "passes/casting_emitter.h"

#include <algorithm>

#include "base/text.h"
#include "ops/cast.h"
#include "ops/constant.h"
#include "ops/promote.h"

namespace aloft {

void CastingEmitter::note_number(Name op, const Attrs& attrs, std::span<const Tensor> in,
                                 const Tensor& value, const Where& where) {
  if (op == Name("detach")) notes(value).number = notes(in[0]).number;
  if (op != Name("full") || !where.policy) return;
  const auto a = from_attrs<FullAttrs>(attrs);
  if (a.dtype != DType::F32 || a.shape.rank() > 0) return;
  if (holds(DType::BF16, a.value) && holds(DType::F16, a.value)) return;
  notes(value).number = a.value;
}

void CastingEmitter::keep_numbers(Decision& d, std::span<const Tensor> in) const {
  DType low = d.cast_inputs.value_or(DType::F32);
  for (const Tensor& t : in)
    if (!d.cast_inputs && is_low(type_of(t).dtype)) low = type_of(t).dtype;
  for (const Tensor& t : in) {
    const std::optional<double> number = inner_->notes(t).number;
    if (!number) continue;
    d.cast_inputs = low;
    if (holds(low, *number)) continue;
    d.compute = d.cast_inputs.emplace(DType::F32);
    d.reason = Reason::KeepsNumber;
    return;
  }
}

void CastingEmitter::note_parameter(const Tensor& value, const std::string& name) {
  notes(value).parameters = {name};
}

bool CastingEmitter::lists_parameters(const Where& where) {
  if (!where.policy || where.phase != Phase::Forward) return false;
  const PrecisionRecipe& recipe = where.policy.recipe();
  return !recipe.deny_params.empty() || !recipe.allow_params.empty();
}

void CastingEmitter::list_parameter(std::span<const Tensor> in, Where& where) {
  if (where.listed || !lists_parameters(where)) return;
  std::vector<std::string_view> names;
  for (const Tensor& t : in) {
    const std::vector<std::string>& own = notes(t).parameters;
    names.insert(names.end(), own.begin(), own.end());
  }
  const std::string_view listed = listed_parameter(names, where.policy.recipe());
  if (!listed.empty()) where.listed = listed;
}

// Parameters that are moved, and nothing beside them, are those parameters still.
void CastingEmitter::note_moved(Name op, std::span<const Tensor> in, const Where& where,
                                const Tensor& out) {
  if (!lists_parameters(where) || !op_named(op).only_moves) return;
  std::vector<std::string> all;
  for (const Tensor& t : in) {
    const std::vector<std::string>& own = notes(t).parameters;
    if (own.empty()) return;
    all.insert(all.end(), own.begin(), own.end());
  }
  notes(out).parameters = std::move(all);
}

std::optional<ValueId> CastingEmitter::learn(const Graph& graph, std::uint32_t n) {
  const Node& node = graph.node(n);
  std::vector<Tensor> in;
  for (ValueId v : node.in) in.push_back(handle(v));
  note_number(node.op, node.attrs, in, handle({n, 0}), node.where);
  const bool is_ours = node.op == Name("cast") && node.where.reason;  // cast_to() says why
  if (!is_ours) return std::nullopt;
  const ValueId from = node.in[0], to{n, 0};
  const auto [it, is_new] = casts_.emplace(std::pair{from, node.out[0].dtype}, handle(to));
  return is_new ? std::nullopt : std::optional(it->second.id());
}

void CastingEmitter::pass_on_to(Emitter& inner) {
  inner_ = &inner;
  forget_casts();
}

void CastingEmitter::rename_casts(const std::map<ValueId, ValueId>& renamed) {
  const auto find = [&](ValueId v) {
    const auto it = renamed.find(v);
    return it == renamed.end() ? ValueId{} : it->second;
  };
  std::map<std::pair<ValueId, DType>, Tensor> casts;
  for (const auto& [key, cast] : casts_) {
    const ValueId from = find(key.first), to = find(cast.id());
    if (from.is_valid() && to.is_valid())
      casts.emplace(std::pair{from, key.second}, Tensor(this, to, cast.held()));
  }
  casts_ = std::move(casts);
}

void CastingEmitter::count_cached(std::map<const void*, long>& references) const {
  for (const auto& [key, cast] : casts_) ++references[cast.held().get()];
}

Tensor CastingEmitter::state(const VariablePtr& variable) {
  const Tensor t = inner_->state(variable);
  if (variable->cls == StateClass::Parameter) note_parameter(t, variable->name.str());
  return adopt(t);
}

void CastingEmitter::update(const VariablePtr& variable, const Tensor& value) {
  if (!variable) return inner_->update(variable, value);  // which says so
  // A variable keeps its type whatever a policy made of its new value.
  inner_->update(variable,
                 cast_to(value, variable->type.dtype, current_where(), Reason::KeepsVariable));
}

std::vector<Tensor> CastingEmitter::gradients(const Tensor& target, const Tensor& seed,
                                              std::span<const Tensor> wrt, const Where& where) {
  std::vector<Tensor> results = inner_->gradients(target, seed, wrt, where);
  for (Tensor& t : results) t = adopt(t);
  return results;
}

std::vector<Tensor> CastingEmitter::variable_gradients(const Tensor& target, const Tensor& seed,
                                                       std::span<const VariablePtr> variables,
                                                       const Where& where) {
  std::vector<Tensor> results = inner_->variable_gradients(target, seed, variables, where);
  for (Tensor& t : results) t = adopt(t);
  return results;
}

Tensor CastingEmitter::cast_to(const Tensor& t, DType to, const Where& where, Reason reason) {
  if (type_of(t).dtype == to) return t;
  const auto key = std::pair{t.id(), to};
  if (const auto it = casts_.find(key); it != casts_.end()) return it->second;
  Where w = where;
  w.pass = w.pass ? w.pass : Name("insert-casts");
  w.reason = text_of(reason);
  Tensor result = adopt(inner_->emit({"cast", to_attrs(CastAttrs{to})}, std::span(&t, 1), w)[0]);
  note_moved("cast", std::span(&t, 1), where, result);
  // A cast that is not recorded has no gradient: it must not serve an op that is.
  if (inner_->is_recording()) casts_[key] = result;
  return result;
}

namespace {
// What a recipe's lists call the op.
std::string_view listed_name(const OpDef& op, const PrecisionRecipe& recipe) {
  const std::string_view own = op.name.str();
  if (op.listed_as.empty()) return own;
  const bool is_listed =
      glob_match_any(recipe.deny_ops, own) || glob_match_any(recipe.allow_ops, own);
  return is_listed ? own : op.listed_as;
}
}  // namespace

Policy CastingEmitter::policy_at(const Where& where) {
  if (!where.policy || !where.policy.recipe().lists_layers()) return where.policy;
  const auto [it, is_new] =
      in_layers_.emplace(std::pair{&where.policy.str(), where.path}, Policy());
  if (is_new) it->second = Policy(where.policy.recipe().in_layer(where.path.str()));
  return it->second;
}

Decision CastingEmitter::decide_for(const OpDef& op, std::span<const Tensor> in,
                                    const Where& where) {
  DecisionQuery q;
  q.numeric = op.numeric;
  q.op = listed_name(op, where.policy.recipe());
  q.phase = where.phase;
  q.layer = where.path.str();
  q.is_norm = op.is_norm;
  q.is_loss = op.is_loss;
  q.capability = capability_;
  std::vector<DType> types, numbers;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const bool kept = std::find(op.keep_inputs.begin(), op.keep_inputs.end(),
                                static_cast<int>(i)) != op.keep_inputs.end();
    if (!kept) (inner_->notes(in[i]).number ? numbers : types).push_back(type_of(in[i]).dtype);
  }
  if (std::none_of(types.begin(), types.end(), is_float))
    types.insert(types.end(), numbers.begin(), numbers.end());
  q.inputs = types;
  const std::string_view listed = where.listed.str();
  if (where.listed) q.parameters = std::span(&listed, 1);
  return decide(q, where.policy.recipe());
}

namespace {

Policy wide_policy() {
  static const Policy wide{PrecisionRecipe{}};
  return wide;
}

// A cast to f32 that the model's own code asks for: of a float, since integers and masks have to
// become floats to be used at all.
bool asks_for_f32(const OpDef& op, const Attrs& attrs, std::span<const Tensor> in,
                  const Where& where) {
  return op.name == Name("cast") && !where.pass && where.phase == Phase::Forward &&
         from_attrs<CastAttrs>(attrs).to == DType::F32 && is_float(in[0].dtype());
}

}  // namespace

// Whether `op` works on wide values: any operand of what follows its operands or widens them, all
// of a product.
bool CastingEmitter::is_wide(const OpDef& op, std::span<const Tensor> in, const Where& where) {
  if (where.phase != Phase::Forward || op.numeric == Numeric::Exact) return false;
  int floats = 0, wide = 0;
  for (const Tensor& t : in) {
    floats += is_float(type_of(t).dtype);
    wide += notes(t).is_wide;
  }
  return op.numeric == Numeric::Narrow ? wide > 0 && wide == floats : wide > 0;
}

// Ops that no policy touches hand on what they got, but for a cast, which says what it wants.
bool CastingEmitter::moves_wide(const OpDef& op, std::span<const Tensor> in) const {
  if (op.numeric != Numeric::Exact || op.name == Name("cast")) return false;
  return std::any_of(in.begin(), in.end(),
                     [&](const Tensor& t) { return inner_->notes(t).is_wide; });
}

void CastingEmitter::cast_operands(const OpDef& op, const Decision& d, const Where& where,
                                   std::vector<Tensor>& operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const DType t = type_of(operands[i]).dtype;
    if (!is_float(t) || t == DType::F64) continue;
    const bool kept = std::find(op.keep_inputs.begin(), op.keep_inputs.end(),
                                static_cast<int>(i)) != op.keep_inputs.end();
    if (!kept && d.cast_inputs) operands[i] = cast_to(operands[i], *d.cast_inputs, where, d.reason);
    // A norm's scale goes along with what it scales.
    if (kept && op.is_norm && is_low(t) && type_of(operands[0]).dtype == DType::F32)
      operands[i] =
          cast_to(operands[i], DType::F32, where, d.cast_inputs ? d.reason : Reason::NormScale);
  }
}

void CastingEmitter::cast_for(const OpDef& op, const OpCall& call, Decision& d, const Where& where,
                              std::span<const Tensor> in, std::vector<Tensor>& operands) {
  cast_operands(op, d, where, operands);
  std::vector<TensorType> types;
  types.reserve(operands.size());
  for (const Tensor& t : operands) types.push_back(type_of(t));
  if (!low_kernels_.lack(op, call, types, where)) return;
  const auto low = std::ranges::find_if(types, [](const TensorType& t) { return is_low(t.dtype); });
  tell_no_low_kernel(op.name, low->dtype, where);
  for (std::size_t i = 0; i < in.size(); ++i) operands[i] = inner_->current(in[i]);
  d = {true, DType::F32, DType::F32, d.store, DType::F32, Reason::NoLowKernel};
  cast_operands(op, d, where, operands);
}

// The form that the recipe asks for, where the op's products may have it.
ProductForm CastingEmitter::form_for(const OpDef& op, std::span<const Tensor> in,
                                     const PrecisionRecipe& recipe) const {
  if (recipe.matmul == ProductForm::Plain) return ProductForm::Plain;
  std::vector<TensorType> types;
  for (const Tensor& t : in) types.push_back(type_of(t));
  return may_have_form(op, recipe.matmul, types) ? recipe.matmul : ProductForm::Plain;
}

std::vector<Tensor> CastingEmitter::emit(const OpCall& given, std::span<const Tensor> in,
                                         const Where& at) {
  const auto& [name, attrs, given_form] = given;
  const OpDef& op = op_named(name);
  std::vector<Tensor> operands;
  for (const Tensor& t : in) operands.push_back(inner_->current(t));
  Where where = at;
  where.policy = policy_at(where);
  const bool works_on_wide = is_wide(op, operands, at);
  const bool wide = works_on_wide && where.policy && where.policy.recipe().level != Level::O0;
  if (wide) where.policy = wide_policy();
  list_parameter(operands, where);
  Decision d;
  if (where.policy) d = decide_for(op, operands, where);
  if (d.applies) keep_numbers(d, operands);
  if (wide) d.reason = Reason::WorksOnWide;
  if (d.reason == Reason::NoLowType || d.reason == Reason::StoredLow)
    tell_no_low_type(name, where.policy.recipe().type_in(where.phase, where.path.str()),
                     d.reason == Reason::StoredLow, where);
  if (d.applies) cast_for(op, given, d, where, in, operands);
  ProductForm form = given_form;
  if (d.applies && form == ProductForm::Plain) form = form_for(op, operands, where.policy.recipe());
  if (decisions_ && where.policy) decisions_->push_back({name, where.path, where.phase, d, form});
  // Those that were cast are ours, the others its own: the body of an op takes operands of one.
  for (Tensor& t : operands) t = inner_->current(t);
  std::vector<Tensor> out = inner_->emit({name, attrs, form}, operands, where);
  for (const Tensor& t : out) note_number(name, attrs, operands, t, where);
  for (const Tensor& t : out) note_moved(name, operands, where, t);
  // f32 out of a narrow op with narrow operands is what the op means: a loss, or a result asked for
  // so.
  const bool wide_by_itself =
      op.numeric == Numeric::Narrow && !out.empty() && type_of(out[0]).dtype == DType::F32 &&
      std::none_of(operands.begin(), operands.end(),
                   [&](const Tensor& t) { return type_of(t).dtype == DType::F32; });
  const bool stays_wide = works_on_wide || op.is_loss || wide_by_itself ||
                          asks_for_f32(op, attrs, operands, where) || moves_wide(op, operands);
  for (Tensor& t : out) {
    t = adopt(t);
    if (stays_wide && where.phase == Phase::Forward && is_float(type_of(t).dtype))
      notes(t).is_wide = true;
  }
  // Only the first output is the op's result; the others are statistics kept in fp32 for the
  // backward pass.
  if (d.applies && !wide_by_itself && !out.empty() && is_float(type_of(out[0]).dtype) &&
      type_of(out[0]).dtype != DType::F64)
    out[0] = cast_to(out[0], d.store, where, d.reason);
  return out;
}

}  // namespace aloft
