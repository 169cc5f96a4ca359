// An optimizer as others see it: a record that says everything of it. catalog.inc lists them; the
// op that updates parameters, its kernel, recipes and their help follow from the record.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "optim/formula.h"
#include "optim/spec.h"
#include "types/attrs.h"
#include "types/setting.h"
#include "types/shape.h"

namespace aloft::optim {

// More than any formula has.
inline constexpr int kMostStates = 4, kMostNumbers = 16, kMostFlags = 4, kMostSums = 4,
                     kMostTensorStates = 2;

// numbers() and flags() of a step.
struct StepNumbers {
  std::array<double, kMostNumbers> number = {};
  std::array<bool, kMostFlags> flag = {};  // from 1 on; 0 is `decays`, a tensor's
};
using TensorNumbers = std::array<double, kMostNumbers>;
using TensorStates = std::array<double, kMostTensorStates>;

// One element in double: changed by a step.
struct ElementValues {
  double value = 0, gradient = 0;
  std::array<double, kMostStates> state = {};
};

// A formula with its options: what the calls of its op compute.
class BoundFormula {
 public:
  virtual ~BoundFormula() = default;
  virtual StepNumbers numbers(const UpdateStep& step) const = 0;
  // From the sums of one tensor, whose states become the new ones.
  virtual TensorNumbers tensor_numbers(std::span<const double> sums, const StepNumbers& numbers,
                                       bool decays, TensorStates& states) const = 0;
  // The meaning, in double.
  virtual void step(ElementValues& e, const StepNumbers& numbers, const TensorNumbers& tensor,
                    bool decays) const = 0;
  // What one element adds to the sums of its tensor, before it is squared.
  virtual std::array<double, kMostSums> summed(const ElementValues& e, const StepNumbers& numbers,
                                               bool decays) const = 0;
};

// A number of a rule, by the name of its option, and where it must lie.
struct RuleNumber {
  enum class Range : std::uint8_t { Finite, FromZero, BelowOne };  // all: finite, in fp32 too
  std::string_view name;
  double value = 0;
  Range range = Range::FromZero;  // BelowOne: from 0 too
};

// What a formula is, without its options' values: an op and its kernel, or, of tensors
// (optim/tensor_formula.h), ops that exist and one that gives its numbers.
struct FormulaRecord {
  std::string_view name;     // "adamw": adamw_update is its op; muon_numbers of one of tensors
  std::string_view meaning;  // one line, with the source
  std::vector<std::string_view> states;  // of elements, then those of tensors
  int tensor_states = 0;                 // how many are numbers of the whole tensor, f32[]
  int element_states() const { return static_cast<int>(states.size()) - tensor_states; }
  std::vector<std::string_view> not_negative;  // of them
  bool is_not_negative(std::size_t k) const {  // of state k
    return std::ranges::find(not_negative, states[k]) != not_negative.end();
  }
  int sums = 0;  // of each tensor; 0: it needs none
  // Low states would be more than less exact: it takes the largest of them, or their difference, or
  // goes by their size element by element. They stay f32.
  bool needs_whole_states = false;
  bool is_of_tensors = false;
  std::vector<std::string_view> numbers_of_step;  // names of numbers()
  double least_states = 0;                        // values that it keeps of a weight, at least
  // Of state k, for a parameter of a shape, which OptimizerSpec::rest may name.
  std::function<Shape(std::size_t k, const Shape& parameter, bool is_rest)> state_shape;
  Attrs options;                                                 // its options with their defaults
  std::vector<std::pair<std::string, std::string>> option_docs;  // of each: key, meaning
  std::vector<std::string> text;  // "exp_avg' = ...", a line a result, from the formula itself
  std::vector<std::string_view> squares;  // names of what is squared and summed
  int operations = 0;                     // of an element
  std::function<std::unique_ptr<const BoundFormula>(const Attrs&)> bind;
  // Those of the options that are numbers.
  std::function<std::vector<RuleNumber>(const Attrs&)> numbers;
  std::vector<Attrs> samples;  // options that its op and its kernel are tested with
};

// A key of recipes: optimizer.<key>.
struct OptimizerSetting : Setting {
  std::string_view resumed;  // what another value means for a run that goes on
};

// An argument that the kind has in another system and that has one value here: a recipe that says
// that value is taken, any other is refused.
struct ForeignArgument {
  std::string_view key;   // "optimizer.ns_steps"
  std::string_view only;  // as JSON
  std::string_view why;
};

struct OptimizerKind {
  std::string_view name;                // "adamw": in recipes, and of its first formula
  std::string_view meaning;             // one line, with the source
  double usual_lr = 1e-3;               // what a program begins with, and a recipe
  std::vector<std::string> usual_rest;  // likewise OptimizerSpec::rest; empty: it is not read
  std::vector<OptimizerSetting> settings;
  std::vector<ForeignArgument> foreign = {};
  // One, or where its options say which states it keeps (rmsprop.h) one for each set of states.
  std::vector<FormulaRecord> formulas;
  // The rule of a recipe's values: another kind's where they say so (sgd with a momentum). What
  // does not fit together is UserError E0806, and said by misfit().
  std::function<UpdateRule(const SettingValues&)> rule;
  std::function<std::optional<OptionMisfit>(const SettingValues&)> misfit;

  const OptimizerSetting* find(std::string_view key) const;  // null where there is none
};

// What a recipe begins with.
inline constexpr std::string_view kUsualOptimizer = "adamw";

// Every kind, in the order of the catalogue.
const std::vector<OptimizerKind>& optimizer_kinds();
// Null where there is none of the name.
const OptimizerKind* find_optimizer_kind(std::string_view name);
// InternalError where there is none.
const OptimizerKind& optimizer_kind(std::string_view name);

// Every formula of every kind, in their order.
const std::vector<const FormulaRecord*>& formulas();
// InternalError where there is none of the name.
const FormulaRecord& formula_named(std::string_view name);

// Every key of every kind, once: as the first kind that has it says it.
std::vector<OptimizerSetting> all_optimizer_settings();
// Names of the kinds that have a key.
std::vector<std::string_view> kinds_with(std::string_view key);
// Values of all keys: what a recipe of this kind begins with, and of keys that it does not have
// what the first kind that has them begins with.
SettingValues usual_settings(const OptimizerKind& kind);

}  // namespace aloft::optim
