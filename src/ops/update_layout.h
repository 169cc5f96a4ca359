// How the operands of an optimizer's update op are numbered. One op updates a whole list of
// tensors, so that a back end can sweep over all of them at once:
//
//   inputs   lr f32[], multiplier f32[], finite i32[], applied i64[],
//            n parameters, n gradients, n masters (where there are any), n of each state,
//            the sums f64[n, k] (where the formula needs k sums of each tensor),
//            the random state i64[3] (where something is rounded at random)
//   outputs  n parameters, n masters (where there are any), n of each state,
//            n statistics f64[11] (where they are asked for)
//
// The op that gives the sums has the same inputs but for these two, and the one output f64[n, k].
//
// A master is f32 of the parameter's shape, or, where it is split, the u8 remainders that together
// with the bf16 parameter are the same f32 (scalar/split_float.h). A state is f32 or bf16 of that
// shape, or u8: its blocks (scalar/block_float.h). States of whole tensors are behind those of
// elements, and f32[]. Statistics (types/statistics.h) are of what the
// step adds to each tensor: its value behind the step less that before it, in f32, of the master
// where there is one.
#pragma once

#include <cstdint>
#include <optional>

#include "optim/kind.h"
#include "optim/options.h"
#include "scalar/block_float.h"
#include "types/attrs.h"
#include "types/shape.h"

namespace aloft {

// What every update op has besides the options of its formula.
struct UpdateAttrs {
  std::int64_t count = 0;
  std::string master;
  std::string states = "f32";
  std::string rounding = "nearest";
  Ints keys;
  Ints decay;
  double weight_decay = 0;
  double clip_value = 0;
  bool statistics = false;
  static constexpr auto fields() {
    using A = UpdateAttrs;
    return FieldList{
        field("count", &A::count, "number of parameters"),
        field("master", &A::master, "format of the masters that follow the gradients; empty: none"),
        field("states", &A::states, "format of the states"),
        field("rounding", &A::rounding, "of parameters without masters: nearest, or stochastic"),
        field("keys", &A::keys,
              "identities of the parameters where something is rounded at random"),
        field("decay", &A::decay, "1 for each parameter that decays, else 0"),
        field("weight_decay", &A::weight_decay, "0: none"),
        field("clip_value", &A::clip_value, "largest size of a gradient's element; 0: none"),
        field("statistics", &A::statistics,
              "of what the step adds to each parameter, behind the rest")};
  }
};

// The type of what a state in this format is kept in, and of a state of this shape.
constexpr DType type_of(StateFormat states) {
  return states == StateFormat::BF16     ? DType::BF16
         : states == StateFormat::Block8 ? DType::U8
                                         : DType::F32;
}
inline TensorType type_of(StateFormat states, const Shape& shape) {
  if (states != StateFormat::Block8) return {type_of(states), shape};
  return {DType::U8, {scalar::block_bytes(shape.max_numel())}};
}

struct UpdateLayout {
  static constexpr int kLr = 0, kMultiplier = 1, kFinite = 2, kApplied = 3, kFirst = 4;

  int count = 0;                      // n
  std::optional<StateFormat> master;  // nothing: parameters are their own
  int states = 0;                     // of each tensor
  int tensor_states = 0;              // the last of them: numbers of the whole tensor
  StateFormat state_format = StateFormat::F32;
  bool has_sums = false;
  bool has_random = false;  // states are low, or parameters are rounded at random
  bool has_statistics = false;

  // As a layout counts; -1, which no op has, for what it cannot count.
  static int count_of(std::int64_t count) {
    return count >= 0 && count <= (1 << 20) ? static_cast<int>(count) : -1;
  }

  bool has_master() const { return master.has_value(); }
  bool is_split() const { return master == StateFormat::Split; }
  int element_states() const { return states - tensor_states; }
  DType state_type() const { return type_of(state_format); }
  // Of state `which`, of a parameter of this shape.
  TensorType state_type(int which, const Shape& shape) const {
    return which < element_states() ? type_of(state_format, shape) : TensorType{DType::F32, {}};
  }

  int inputs() const {
    return kFirst + (2 + has_master() + states) * count + has_sums + has_random;
  }
  int outputs() const { return (1 + has_master() + states + has_statistics) * count; }

  int parameter(int i) const { return kFirst + i; }
  int gradient(int i) const { return kFirst + count + i; }
  int master_of(int i) const { return kFirst + 2 * count + i; }
  int state(int which, int i) const { return kFirst + (2 + has_master() + which) * count + i; }
  int sums() const { return kFirst + (2 + has_master() + states) * count; }
  int random() const { return sums() + has_sums; }

  int new_parameter(int i) const { return i; }
  int new_master(int i) const { return count + i; }
  int new_state(int which, int i) const { return (1 + has_master() + which) * count + i; }
  int statistics(int i) const { return (1 + has_master() + states) * count + i; }
};

// The layout of a call of <name>_update. A format that there is not, or that does not fit, gives a
// layout of -1 tensors, which no call has.
inline UpdateLayout update_layout(const UpdateAttrs& a, const optim::FormulaRecord& formula) {
  using enum StateFormat;
  const auto master = state_format_named(a.master), kept = state_format_named(a.states);
  const bool is_random = a.rounding == name_of(Rounding::Stochastic);
  const bool fits = (a.master.empty() || master == F32 || master == Split) && kept &&
                    *kept != Split && (is_random || a.rounding == name_of(Rounding::Nearest));
  UpdateLayout l{fits ? UpdateLayout::count_of(a.count) : -1, master,
                 static_cast<int>(formula.states.size()), formula.tensor_states,
                 kept.value_or(F32)};
  l.has_sums = formula.sums > 0;
  l.has_random = is_random || (l.element_states() > 0 && l.state_format != F32);
  l.has_statistics = a.statistics;
  return l;
}
// Of <name>_sums.
inline UpdateLayout sums_layout(const UpdateAttrs& a, const optim::FormulaRecord& formula) {
  UpdateLayout l = update_layout(a, formula);
  l.has_sums = l.has_random = l.has_statistics = false;
  return l;
}

// What a call's attributes say besides its formula's options, which are passed over.
inline UpdateAttrs update_attrs(const Attrs& attrs) {
  Attrs own;
  UpdateAttrs::fields().each([&](const auto& f) {
    if (const AttrValue* given = attrs.find(f.name)) own.set(f.name, *given);
  });
  return from_attrs<UpdateAttrs>(own);
}

}  // namespace aloft
