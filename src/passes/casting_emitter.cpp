#include "passes/casting_emitter.h"

#include <algorithm>

#include "ops/cast.h"

namespace aloft {

const PrecisionRecipe& CastingEmitter::recipe_of(Name policy) {
  const auto it = recipes_.find(policy);
  if (it != recipes_.end()) return it->second;
  return recipes_.emplace(policy, parse_precision(policy.str())).first->second;
}

void CastingEmitter::note_parameter(ValueId value, const std::string& name) {
  parameters_[value] = name;
}

void CastingEmitter::forget_values() {
  casts_.clear();
  parameters_.clear();
  losses_.clear();
}

void CastingEmitter::rename_values(const std::map<ValueId, ValueId>& renamed) {
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
  std::map<ValueId, std::string> parameters;
  for (auto& [id, name] : parameters_)
    if (const ValueId now = find(id); now.is_valid()) parameters.emplace(now, std::move(name));
  parameters_ = std::move(parameters);
  std::set<ValueId> losses;
  for (const ValueId id : losses_)
    if (const ValueId now = find(id); now.is_valid()) losses.insert(now);
  losses_ = std::move(losses);
}

void CastingEmitter::count_cached(std::map<const void*, long>& references) const {
  for (const auto& [key, cast] : casts_) ++references[cast.held().get()];
}

Tensor CastingEmitter::state(const VariablePtr& variable) {
  const Tensor t = inner_.state(variable);
  if (variable->cls == StateClass::Parameter) note_parameter(t.id(), variable->name.str());
  return adopt(t);
}

void CastingEmitter::update(const VariablePtr& variable, const Tensor& value) {
  inner_.update(variable, value);
}

std::vector<Tensor> CastingEmitter::gradients(const Tensor& target, const Tensor& seed,
                                              std::span<const Tensor> wrt, const Where& where) {
  std::vector<Tensor> results = inner_.gradients(target, seed, wrt, where);
  for (Tensor& t : results) t = adopt(t);
  return results;
}

Tensor CastingEmitter::cast_to(const Tensor& t, DType to, const Where& where,
                               std::string_view reason) {
  if (type_of(t).dtype == to) return t;
  const auto key = std::pair{t.id(), to};
  if (const auto it = casts_.find(key); it != casts_.end()) return it->second;
  Where w = where;
  w.pass = w.pass ? w.pass : Name("insert-casts");
  w.reason = reason;
  Tensor result = adopt(inner_.emit("cast", to_attrs(CastAttrs{to}), std::span(&t, 1), w)[0]);
  if (const auto it = parameters_.find(t.id()); it != parameters_.end())
    parameters_[result.id()] = it->second;
  // A cast that is not recorded has no gradient: it must not serve an op that is.
  if (grad_enabled()) casts_[key] = result;
  return result;
}

Decision CastingEmitter::decide_for(const OpDef& op, std::span<const Tensor> in,
                                    const Where& where) {
  DecisionQuery q;
  q.numeric = op.numeric;
  q.op = op.name.str();
  q.phase = where.phase;
  q.is_norm = op.is_norm;
  q.is_loss = op.is_loss;
  q.capability = capability_;
  std::vector<DType> types;
  auto& of_path = parameters_of_path_[where.path];
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (const auto it = parameters_.find(in[i].id()); it != parameters_.end())
      of_path.insert(it->second);
    // What is computed from a loss by element-wise ops is still the loss.
    if (op.numeric == Numeric::Follow && losses_.contains(in[i].id())) q.is_loss = true;
    const bool kept = std::find(op.keep_inputs.begin(), op.keep_inputs.end(),
                                static_cast<int>(i)) != op.keep_inputs.end();
    if (!kept) types.push_back(type_of(in[i]).dtype);
  }
  q.inputs = types;
  const std::vector<std::string_view> parameters(of_path.begin(), of_path.end());
  q.parameters = parameters;
  return decide(q, recipe_of(where.policy));
}

namespace {

// Ops whose kernels may split f32 products. Attention and convolutions have no such kernel.
bool may_split(const OpDef& op) {
  for (const char* name : {"matmul", "linear", "linear_cross_entropy", "linear_cross_entropy_grad",
                           "linear_cross_entropy_sweep"})
    if (op.name == Name(name)) return true;
  return false;
}

}  // namespace

std::vector<Tensor> CastingEmitter::emit(Name name, const Attrs& given, std::span<const Tensor> in,
                                         const Where& where) {
  const OpDef& op = op_named(name);
  std::vector<Tensor> operands;
  for (const Tensor& t : in) operands.push_back(inner_.current(t));
  Decision d;
  if (where.policy) d = decide_for(op, operands, where);
  if (d.applies && d.cast_inputs)
    for (std::size_t i = 0; i < operands.size(); ++i) {
      const bool kept = std::find(op.keep_inputs.begin(), op.keep_inputs.end(),
                                  static_cast<int>(i)) != op.keep_inputs.end();
      const DType t = type_of(operands[i]).dtype;
      // A norm's scale goes along where its other operands are widened.
      const bool follows = op.is_norm && is_low(t) && *d.cast_inputs == DType::F32;
      if ((!kept || follows) && is_float(t) && t != DType::F64)
        operands[i] = cast_to(operands[i], *d.cast_inputs, where, d.reason);
    }
  Attrs attrs = given;
  std::string_view split;
  if (d.applies && may_split(op) && recipe_of(where.policy).matmul != F32Products::F32 &&
      type_of(operands[0]).dtype == DType::F32 && type_of(operands[1]).dtype == DType::F32) {
    split = name_of(recipe_of(where.policy).matmul);
    attrs.set(kSplitAttr, std::string(split));
  }
  if (decisions_ && where.policy) decisions_->push_back({name, where.path, where.phase, d, split});
  std::vector<Tensor> out = inner_.emit(name, attrs, operands, where);
  // f32 out of a narrow op with narrow operands is what the op means: a loss, or a result asked for
  // so.
  const bool wide_by_itself =
      op.numeric == Numeric::Narrow && !out.empty() && type_of(out[0]).dtype == DType::F32 &&
      std::none_of(operands.begin(), operands.end(),
                   [&](const Tensor& t) { return type_of(t).dtype == DType::F32; });
  bool from_loss = op.is_loss || wide_by_itself;
  if (op.numeric == Numeric::Follow)
    for (const Tensor& t : operands) from_loss = from_loss || losses_.contains(t.id());
  for (Tensor& t : out) {
    t = adopt(t);
    if (from_loss && where.phase == Phase::Forward) losses_.insert(t.id());
  }
  // Only the first output is the op's result; the others are statistics kept in fp32 for the
  // backward pass.
  if (d.applies && !wide_by_itself && !out.empty() && is_float(type_of(out[0]).dtype) &&
      type_of(out[0]).dtype != DType::F64)
    out[0] = cast_to(out[0], d.store, where, d.reason);
  return out;
}

}  // namespace aloft
