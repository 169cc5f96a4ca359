#include "frontend/check_optimizer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "frontend/averaged_weights.h"
#include "frontend/description.h"
#include "frontend/variable_values.h"
#include "optim/foreign_switches.h"
#include "optim/kind.h"

namespace aloft {
namespace {

// Numbers that are out of range, each with the range that it should lie in.
class Numbers {
 public:
  void check(const optim::RuleNumber& n, const std::string& where = "") {
    using enum optim::RuleNumber::Range;
    const bool finite = std::isfinite(static_cast<float>(n.value));  // it is used as an fp32
    const bool in_range =
        finite && (n.range == Finite || n.value >= 0) && (n.range != BelowOne || n.value < 1);
    if (in_range) return;
    constexpr const char* kRanges[] = {"finite", "0 or more, and finite", "0 or more, below 1"};
    wrong(std::string(n.name) + " = " + shortest(n.value) + where,
          kRanges[static_cast<int>(n.range)]);
  }
  void wrong(const std::string& saw, std::string_view need) {
    lines_.emplace_back("saw", saw);
    lines_.emplace_back("need", need);
  }
  void refuse() const {
    if (lines_.empty()) return;
    UserError e("E0814", lines_.size() == 2 ? "a number of the optimizer is out of range"
                                            : "numbers of the optimizer are out of range");
    for (const auto& [label, text] : lines_) e.add_line(label, text);
    throw e;
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

// The rule, with what its kind reads.
std::string read_numbers(const scalar::ScalerRule& r) {
  using enum scalar::ScalerKind;
  std::string text = "a loss scale that is " + std::string(name_of(r.kind));
  const auto add = [&](const char* name, double value) {
    text += std::string(", ") + name + " = " + shortest(value);
  };
  if (r.kind != None) add("init", r.init);
  if (r.kind == Dynamic) {
    add("growth", r.growth);
    add("backoff", r.backoff);
    add("growth_interval", r.growth_interval);
    add("min", r.min);
    add("max", r.max);
  }
  add("give_up_after", r.give_up_after);
  return text;
}

void check_numbers(const OptimizerSpec& spec, const scalar::ScalerRule& scaler) {
  Numbers numbers;
  numbers.check({"lr", spec.lr});
  for (const optim::RuleNumber& n : spec.rule.formula->numbers(spec.rule.options)) numbers.check(n);
  numbers.check({"weight_decay", spec.weight_decay});
  numbers.check({"clip_norm", spec.clip_norm});
  if (spec.max_grad_norm != 0 && !(spec.clip_norm == spec.max_grad_norm))
    numbers.wrong("clip_norm = " + shortest(spec.clip_norm) +
                      ", max_grad_norm = " + shortest(spec.max_grad_norm),
                  "clip_norm alone: both are the largest norm of all gradients together");
  if (spec.differentiable)
    numbers.wrong("differentiable = true", "false: " + std::string(optim::kNotDifferentiated));
  numbers.check({"clip_adaptive", spec.clip_adaptive});
  numbers.check({"clip_value", spec.clip_value});
  numbers.check({"average.decay", spec.average.decay, optim::RuleNumber::Range::BelowOne});
  for (const ParameterGroup& group : spec.groups) {
    const std::string where = " in the group of " + in_quotes(join(group.parameters, ", "));
    for (const GroupNumber& n : kGroupNumbers)
      if (const auto& value = group.*n.member) numbers.check({n.name, *value}, where);
  }
  const scalar::ScheduleRule& s = spec.schedule;
  if (const std::string_view problem = problem_of(s); !problem.empty())
    numbers.wrong("schedule " + std::string(name_of(s.kind)) + ", warmup = " +
                      std::to_string(s.warmup) + ", total = " + std::to_string(s.total),
                  problem);
  if (const std::string_view problem = problem_of(scaler); !problem.empty())
    numbers.wrong(read_numbers(scaler), problem);
  numbers.refuse();
}

// A pattern that matches nothing is a typing error: it would do nothing.
void need_match(const std::string& headline, const std::string& pattern,
                const std::vector<std::string>& names) {
  if (std::any_of(names.begin(), names.end(),
                  [&](const std::string& name) { return glob_match(pattern, name); }))
    return;
  const std::string near = nearest_name(pattern, names);
  throw UserError("E0809", headline)
      .saw("pattern " + in_quotes(pattern))
      .need("the name of a parameter, with * for any letters")
      .advice("parameters here are named like " + in_quotes(near.empty() ? names[0] : near));
}

// The first group that matches takes a parameter: one to which those before leave none does
// nothing.
void need_something_left(const std::vector<ParameterGroup>& groups,
                         const std::vector<std::string>& names) {
  std::vector<bool> taken(names.size(), false);
  for (const ParameterGroup& group : groups) {
    bool takes = false;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (taken[i] || !glob_match_any(group.parameters, names[i])) continue;
      takes = true;
      taken[i] = true;
    }
    if (!takes)
      throw UserError("E0809", "a parameter group takes no parameter")
          .saw("patterns " + join(group.parameters, ", "))
          .need("a parameter that no group before it takes: the first that matches does")
          .advice("put this group before the wider one");
  }
}

bool is_usual_rest(const std::string& pattern) {
  return std::ranges::any_of(optim::optimizer_kinds(), [&](const optim::OptimizerKind& kind) {
    return std::ranges::find(kind.usual_rest, pattern) != kind.usual_rest.end();
  });
}

void check_patterns(const OptimizerSpec& spec, const std::vector<VariablePtr>& parameters) {
  std::vector<std::string> names;
  names.reserve(parameters.size());
  for (const VariablePtr& p : parameters) names.push_back(p->name.str());
  for (const ParameterGroup& group : spec.groups) {
    const std::string headline = "a parameter group matches no parameter";
    if (group.parameters.empty())
      throw UserError("E0809", headline).saw("no pattern").need("at least one, such as \"*.bias\"");
    for (const std::string& pattern : group.parameters) need_match(headline, pattern, names);
  }
  need_something_left(spec.groups, names);
  // What everybody writes holds for models without biases too.
  const std::vector<std::string>& usual = kWeightsDecay.without;
  for (const std::string& pattern : spec.decay.without)
    if (std::find(usual.begin(), usual.end(), pattern) == usual.end())
      need_match("a pattern of what does not decay matches no parameter", pattern, names);
  // As above: the usual ones hold for models that have none of these.
  for (const std::string& pattern : spec.rest)
    if (!is_usual_rest(pattern))
      need_match("a pattern of matrices that are taken for none matches no parameter", pattern,
                 names);
}

// Both would have to know all gradients before the first parameter changes.
void check_early(const OptimizerSpec& spec, const scalar::ScalerRule& scaler) {
  if (spec.update == UpdateTime::Late) return;
  std::string seen;
  if (spec.clip_norm > 0) seen = "clip_norm = " + shortest(spec.clip_norm);
  for (const ParameterGroup& group : spec.groups)
    if (group.clip_norm.value_or(0) > 0)
      seen += (seen.empty() ? "" : ", ") + std::string("a group's clip_norm = ") +
              shortest(*group.clip_norm);
  if (scaler.kind != scalar::ScalerKind::None)
    seen += (seen.empty() ? "" : ", ") + std::string("a loss scale that is ") +
            std::string(scalar::name_of(scaler.kind));
  if (seen.empty()) return;
  throw UserError("E0816", "an early update can neither clip nor skip a step")
      .saw(seen)
      .need("clip_norm 0 and no loss scale")
      .advice("update late, or train in bf16 or f32 without clipping");
}

// Masters and states have formats of their own.
void check_formats(const OptimizerSpec& spec) {
  if (spec.master == StateFormat::BF16 || spec.master == StateFormat::Block8)
    throw UserError("E0815",
                    "a master cannot be kept in fewer bits: it is there for what they drop")
        .saw("master in " + std::string(name_of(spec.master)))
        .need("StateFormat::F32, or Split");
  if (spec.rule.formula->is_of_tensors && spec.master == StateFormat::Split)
    throw UserError("E0815", "a master that is split is updated by formulas of elements alone")
        .saw("master = \"split\" (StateFormat::Split), and " + std::string(spec.rule.name()) +
             ", a formula of tensors")
        .need("master = \"f32\" (StateFormat::F32)");
  if (spec.states == StateFormat::Split)
    throw UserError("E0815", "the states of an optimizer cannot be split")
        .saw("states = StateFormat::Split")
        .need("StateFormat::F32, BF16, or Block8");
  if (spec.rule.formula->needs_whole_states && spec.states != StateFormat::F32)
    throw UserError("E0815",
                    "this optimizer needs its states whole: what rounding does to them "
                    "one by one adds up, or is all that is left")
        .saw("states in " + std::string(name_of(spec.states)) + " of " +
             std::string(spec.rule.name()))
        .need("StateFormat::F32");
  if (spec.rule.formula->is_of_tensors && spec.states == StateFormat::Block8)
    throw UserError("E0815", "states in 8 bits are read and written by formulas of elements alone")
        .saw("states = StateFormat::Block8, and " + std::string(spec.rule.name()) +
             ", a formula of tensors")
        .need("states = StateFormat::F32, or BF16");
}

// What is no parameter, or cannot be trained. A description has no memory yet.
void check_parameters(const std::vector<VariablePtr>& parameters) {
  std::set<const Variable*> seen;
  for (const VariablePtr& p : parameters) {
    if (!p) throw no_variable("an optimizer is to train no parameter");
    if (!p->buffer && !is_only_described()) throw has_no_memory(*p);
    const DType t = p->type.dtype;
    if (t != DType::F32 && t != DType::BF16 && t != DType::F16)
      throw UserError("E0311", "the parameter '" + p->name.str() + "' cannot be trained")
          .saw(p->type.str())
          .need("f32, bf16 or f16");
    if (!seen.insert(p.get()).second)
      throw UserError("E0325", "an optimizer is to train the same parameter twice")
          .saw("'" + p->name.str() + "' once more")
          .need("each parameter once")
          .advice("leave out the parameters of a module whose parent's are there");
  }
}

}  // namespace

UserError nothing_to_train() {
  return UserError("E0801", "there is nothing to train")
      .need("at least one parameter that requires a gradient")
      .advice("unfreeze parameters with model.requires_grad(true, pattern)");
}

void explain_switches(const OptimizerSpec& spec) {
  for (const optim::ForeignSwitch& s : optim::kForeignSwitches)
    if (spec.*s.member) log_warning("{} changes nothing: {}", s.name, s.why);
}

void check_optimizer(const OptimizerSpec& spec, const std::vector<VariablePtr>& parameters,
                     const scalar::ScalerRule& scaler) {
  if (!spec.rule)
    throw UserError("E0819", "the optimizer has no update rule")
        .saw("an OptimizerSpec without one")
        .advice("begin with optim::AdamW{...} or another of optim/, which gives a whole spec");
  check_parameters(parameters);
  need_own_values(parameters, "an optimizer is made, or given parameters,");
  if (std::none_of(parameters.begin(), parameters.end(),
                   [](const VariablePtr& p) { return p->requires_grad; }))
    throw nothing_to_train();
  check_numbers(spec, scaler);
  check_formats(spec);
  check_patterns(spec, parameters);
  check_early(spec, scaler);
}

}  // namespace aloft
