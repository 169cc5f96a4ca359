#include "ops/update.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "ops/host_statistics.h"
#include "ops/kept_states.h"
#include "ops/op.h"
#include "ops/tensor_update.h"
#include "ops/update_layout.h"
#include "scalar/split_float.h"
#include "scalar/stochastic_rounding.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using optim::BoundFormula;
using optim::ElementValues;
using optim::FormulaRecord;
using optim::StepNumbers;

void need_scalar(Infer& c, int i, DType dtype, const char* what) {
  c.check(c.in(i) == TensorType{dtype, Shape{}}, std::string(what) + " has the wrong type",
          TensorType{dtype, Shape{}}.str());
}

void need_like(Infer& c, int i, int like, DType type, const char* what) {
  c.need_same_shape(like, i);
  c.check(c.dtype(i) == type,
          std::string(what) + " " + std::to_string(i) + " is " + std::string(name_of(c.dtype(i))),
          name_of(type));
}

void need_split_master(Infer& c, const UpdateLayout& l, int i) {
  const std::string which = std::to_string(i);
  const TensorType &p = c.in(l.parameter(i)), &m = c.in(l.master_of(i));
  // f32 in a graph in logical types, until insert-casts gives it the type in which it is stored.
  c.check(p.dtype == DType::BF16 || p.dtype == DType::F32, "parameter " + which + " is " + p.str(),
          "bf16, whose master is split");
  const TensorType need{DType::U8, {scalar::rest_bytes(p.shape.max_numel())}};
  c.check(m == need, "split master " + which + " is " + m.str(), need.str());
}

void need_numbers(const FormulaRecord& formula, const Attrs& attrs, Infer& c) {
  for (const optim::RuleNumber& n : formula.numbers(attrs)) {
    const bool in_range =
        n.range == optim::RuleNumber::Range::Finite ||
        (n.value >= 0 && (n.range != optim::RuleNumber::Range::BelowOne || n.value < 1));
    c.check(in_range, std::string(n.name) + " is " + std::to_string(n.value),
            n.range == optim::RuleNumber::Range::BelowOne ? "0 or more, below 1" : "0 or more");
  }
}

// What both ops of a formula need; `has_sums`: of the operand behind the others.
void infer_operands(const UpdateLayout& l, const Ints& decay, Infer& c) {
  c.check(l.count >= 0, "the formats are not those of an update",
          "count, master (\"\", \"f32\" or \"split\"), states (\"f32\", \"bf16\" or \"8bit\") and "
          "rounding (\"nearest\" or \"stochastic\")");
  c.check(l.count <= c.count() && c.count() == l.inputs(),
          "wrong number of operands: " + std::to_string(c.count()),
          std::to_string(UpdateLayout::kFirst) + ", and " +
              std::to_string(2 + l.has_master() + l.states) + " for each of `count` parameters" +
              (l.has_sums ? ", and the sums" : "") +
              (l.has_random ? ", and the random state" : ""));
  c.check(static_cast<int>(decay.size()) == l.count, "decay does not match the parameters",
          "one 0 or 1 for each of " + std::to_string(l.count) + " parameters");
  need_scalar(c, UpdateLayout::kLr, DType::F32, "the learning rate");
  need_scalar(c, UpdateLayout::kMultiplier, DType::F32, "the multiplier");
  need_scalar(c, UpdateLayout::kFinite, DType::I32, "the finite flag");
  need_scalar(c, UpdateLayout::kApplied, DType::I64, "the count of applied updates");
  for (int i = 0; i < l.count; ++i) {
    for (int j : {l.parameter(i), l.gradient(i)})
      c.check(is_float(c.dtype(j)) && c.dtype(j) != DType::F64,
              "operand " + std::to_string(j) + " is " + std::string(name_of(c.dtype(j))),
              "f32, bf16 or f16");
    c.check(c.shape(l.parameter(i)).is_constant(),
            "parameter " + std::to_string(i) + " has a symbolic shape", "a constant shape");
    c.need_same_shape(l.parameter(i), l.gradient(i));
    if (l.is_split())
      need_split_master(c, l, i);
    else if (l.has_master())
      need_like(c, l.master_of(i), l.parameter(i), DType::F32, "master");
    for (int w = 0; w < l.states; ++w) {
      const TensorType need = l.state_type(w, c.shape(l.parameter(i)));
      c.check(c.in(l.state(w, i)) == need, "a state is " + c.in(l.state(w, i)).str(), need.str());
    }
  }
}

void need_random(const UpdateLayout& l, const UpdateAttrs& a, Infer& c) {
  if (a.rounding == name_of(Rounding::Stochastic)) {
    c.check(!l.has_master(), "what has a master is rounded from it, to nearest",
            "rounding \"nearest\", or no masters");
    for (int i = 0; i < l.count; ++i)  // f32 in a graph in logical types
      c.check(c.dtype(l.parameter(i)) != DType::F16,
              "parameter " + std::to_string(i) + " is f16, which is rounded to nearest alone",
              "bf16");
  }
  if (!l.has_random) return;
  const TensorType state{DType::I64, {3}};
  c.check(c.in(l.random()) == state, "the random state has the wrong type", state.str());
  c.check(static_cast<int>(a.keys.size()) == l.count, "keys do not match the parameters",
          "one for each of " + std::to_string(l.count) + " parameters");
}

// Its bits to the remainders.
void put_master(double value, HostArray& p, HostArray& rests, std::int64_t j) {
  const scalar::SplitFloat s = scalar::split(static_cast<float>(value));
  p[j] = scalar::f32_of(s.near);
  rests[2 * j] = s.rest & 0xff;
  rests[2 * j + 1] = s.rest >> 8;
  if (s.below) rests[2 * p.numel() + j / 8] += 1 << (j % 8);
}

// The call in double: one op of a formula, its attributes read once.
class Evaluation {
 public:
  Evaluation(const FormulaRecord& formula, const Attrs& attrs, bool is_sums, EvalCall& call)
      : c_(call),
        attrs_(update_attrs(attrs)),
        layout_(is_sums ? sums_layout(attrs_, formula) : update_layout(attrs_, formula)),
        record_(formula),
        formula_(formula.bind(attrs)),
        numbers_(formula_->numbers({call.in[UpdateLayout::kLr][0],
                                    static_cast<std::int64_t>(call.in[UpdateLayout::kApplied][0]),
                                    attrs_.weight_decay})),
        applies_(call.in[UpdateLayout::kFinite][0] != 0) {}

  void update(int sums) const {
    for (int i = 0; i < layout_.count; ++i) {
      update_tensor(i, sums > 0 && applies_ ? tensor_numbers(i, sums) : optim::TensorNumbers());
    }
  }

  void sum(int sums) const {
    for (int i = 0; i < layout_.count && applies_; ++i) {
      const StateValues states = states_of(i);
      for (std::int64_t j = 0; j < c_.in[layout_.parameter(i)].numel(); ++j) {
        const auto squared = formula_->summed(element(i, j, states), numbers_, decays(i));
        for (int k = 0; k < sums; ++k)
          c_.out[0][std::int64_t{i} * sums + k] += squared[k] * squared[k];
      }
    }
  }

 private:
  bool decays(int i) const { return attrs_.decay[i] != 0 && attrs_.weight_decay != 0; }

  // States of the whole tensor are written with them.
  optim::TensorNumbers tensor_numbers(int i, int sums) const {
    std::vector<double> own;
    for (int k = 0; k < sums; ++k) own.push_back(c_.in[layout_.sums()][std::int64_t{i} * sums + k]);
    optim::TensorStates kept = {};
    for (int w = layout_.element_states(), k = 0; w < layout_.states; ++w, ++k)
      kept[k] = c_.in[layout_.state(w, i)][0];
    const optim::TensorNumbers numbers = formula_->tensor_numbers(own, numbers_, decays(i), kept);
    for (int w = layout_.element_states(), k = 0; w < layout_.states; ++w, ++k)
      c_.out[layout_.new_state(w, i)][0] = kept[k];
    return numbers;
  }

  KeptState kept(int w) const {
    return {layout_.state_format, {!record_.is_not_negative(static_cast<std::size_t>(w))}};
  }
  using StateValues = std::array<std::vector<double>, optim::kMostStates>;
  StateValues states_of(int i) const {
    StateValues out;
    for (int w = 0; w < layout_.element_states(); ++w)
      out[w] = kept(w).read(c_.in[layout_.state(w, i)], c_.in[layout_.parameter(i)].numel());
    return out;
  }

  // What element j of tensor i draws for what is rounded as `slot`.
  std::uint16_t bits(int i, int slot, std::int64_t j) const {
    const HostArray& rng = c_.in[layout_.random()];
    const auto word = [&](int k) { return static_cast<std::uint64_t>(rng[k].whole()); };
    const auto key = static_cast<std::uint64_t>(attrs_.keys[static_cast<std::size_t>(i)]);
    return scalar::rounding_bits({word(0), word(1), word(2), key}, slot,
                                 static_cast<std::uint64_t>(j));
  }
  ElementValues element(int i, std::int64_t j, const StateValues& states) const {
    const HostArray &p = c_.in[layout_.parameter(i)], &g = c_.in[layout_.gradient(i)];
    ElementValues e;
    e.value = layout_.is_split()     ? split_master(p, c_.in[layout_.master_of(i)], j)
              : layout_.has_master() ? double(c_.in[layout_.master_of(i)][j])
                                     : double(p[j]);
    e.gradient = g[j] * c_.in[UpdateLayout::kMultiplier][0];
    if (attrs_.clip_value > 0)
      e.gradient = std::clamp<double>(e.gradient, -attrs_.clip_value, attrs_.clip_value);
    for (int w = 0; w < layout_.element_states(); ++w) e.state[w] = states[w][j];
    return e;
  }

  // What the step adds to each element, of the master where there is one.
  // Rounded as it is kept: what is too small to change an element adds nothing.
  void put_statistics(int i, const std::vector<double>& before, HostArray after) const {
    round_to_dtype(after);
    HostArray change = HostArray::zeros(DType::F32, after.shape);
    for (std::int64_t j = 0; j < change.numel(); ++j)
      change[j] = after[j] - before[static_cast<std::size_t>(j)];
    round_to_dtype(change);
    double numbers[TensorStatistics::kNumbers];
    statistics_in_double(change).put(numbers);
    std::ranges::copy(numbers, c_.out[layout_.statistics(i)].values.begin());
  }

  void update_tensor(int i, const optim::TensorNumbers& tensor) const {
    const HostArray& p = c_.in[layout_.parameter(i)];
    HostArray after = HostArray::zeros(layout_.has_master() ? DType::F32 : p.dtype, p.shape);
    if (!applies_) {
      if (layout_.has_statistics) put_statistics(i, after.doubles(), after);
      return keep_tensor(i);
    }
    std::vector<double> before;
    const bool at_random = attrs_.rounding == name_of(Rounding::Stochastic);
    StateValues states = states_of(i);
    for (std::int64_t j = 0; j < p.numel(); ++j) {
      ElementValues e = element(i, j, states);
      before.push_back(e.value);
      formula_->step(e, numbers_, tensor, decays(i));
      HostArray& to = c_.out[layout_.new_parameter(i)];
      to[j] = at_random ? rounded_at_random(e.value, p.dtype, bits(i, scalar::kParameterSlot, j))
                        : e.value;
      after[j] = layout_.has_master() ? HostNumber(e.value) : to[j];
      if (layout_.is_split()) put_master(e.value, to, c_.out[layout_.new_master(i)], j);
      if (layout_.has_master() && !layout_.is_split()) c_.out[layout_.new_master(i)][j] = e.value;
      for (int w = 0; w < layout_.element_states(); ++w) states[w][j] = e.state[w];
    }
    for (int w = 0; w < layout_.element_states(); ++w)
      kept(w).write(
          states[w], [&](std::int64_t j) { return bits(i, w, j); },
          c_.out[layout_.new_state(w, i)]);
    if (layout_.has_statistics) put_statistics(i, before, std::move(after));
  }
  void keep_tensor(int i) const {
    c_.out[layout_.new_parameter(i)].values = c_.in[layout_.parameter(i)].values;
    if (layout_.has_master())
      c_.out[layout_.new_master(i)].values = c_.in[layout_.master_of(i)].values;
    for (int w = 0; w < layout_.states; ++w)
      c_.out[layout_.new_state(w, i)].values = c_.in[layout_.state(w, i)].values;
  }

  EvalCall& c_;
  UpdateAttrs attrs_;
  UpdateLayout layout_;
  const FormulaRecord& record_;
  std::unique_ptr<const BoundFormula> formula_;
  StepNumbers numbers_;
  bool applies_;
};

// Operands of a sample call: small tensors of odd sizes, parameters and gradients of the given
// types.
std::vector<SampleInput> sample_inputs(const FormulaRecord& formula, const UpdateLayout& l,
                                       DType parameter, DType gradient, bool finite,
                                       std::int64_t applied) {
  const auto scalar = [](DType dtype, double value) {
    return SampleInput{{}, Fill::Constant, value, value, 1, dtype, true};
  };
  std::vector<SampleInput> in = {scalar(DType::F32, 0.0625), scalar(DType::F32, 0.25),
                                 scalar(DType::I32, finite), scalar(DType::I64, applied)};
  const Shape shapes[] = {{5, 7}, {4097}, {}, {0, 3}, {1, 17}};
  const auto shape = [&](int i) { return shapes[i % std::ssize(shapes)]; };
  const auto add = [&](DType dtype, bool positive) {
    for (int i = 0; i < l.count; ++i)
      in.push_back({shape(i), positive ? Fill::Uniform : Fill::Normal, 0, 1, 1, dtype, true});
  };
  add(parameter, false);
  add(gradient, false);
  if (l.is_split())
    for (int i = 0; i < l.count; ++i)
      in.push_back(
          {{scalar::rest_bytes(shape(i).max_numel())}, Fill::Ids, 0, 256, 1, DType::U8, true});
  else if (l.has_master())
    add(DType::F32, false);
  for (std::size_t k = 0; k < formula.states.size(); ++k) {
    if (static_cast<int>(k) >= l.element_states()) {
      for (int i = 0; i < l.count; ++i)
        in.push_back({{}, Fill::Uniform, 0, 1, 1, DType::F32, true});
      continue;
    }
    if (l.state_format != StateFormat::Block8) {
      add(l.state_type(), formula.is_not_negative(k));
      continue;
    }
    for (int i = 0; i < l.count; ++i) {
      const TensorType t = type_of(l.state_format, shape(i));
      in.push_back({t.shape, Fill::Ids, 0, 256, 1, t.dtype, true});
    }
  }
  if (l.has_sums)
    in.push_back({{l.count, formula.sums}, Fill::Uniform, 0, 50, 1, DType::F64, true});
  if (l.has_random) in.push_back({{3}, Fill::Ids, 0, 1000, 1, DType::I64, true});
  return in;
}

struct SampleCase {
  std::string master = {}, states = "f32";
  double weight_decay = 0;
  DType parameter = DType::F32, gradient = DType::F32;
  bool finite = true;
  std::int64_t applied = 3;
  double clip_value = 0;
  std::string rounding = "nearest";
  bool statistics = false;
};

// Every option of the formula on plain fp32, and every way to keep parameters and states. Samples
// of split masters and of states in blocks skip the step: what is drawn for them means nothing
// (tests/ops/split_update_test.cpp and low_states_test.cpp have some that do).
void add_samples(const FormulaRecord& formula, bool is_sums, Samples& s) {
  using enum DType;
  const std::vector<SampleCase> forms = {{.applied = 0},
                                         {.weight_decay = 0.125},
                                         {.weight_decay = 0.125, .gradient = BF16, .applied = 9},
                                         {.gradient = F16, .applied = 100000},
                                         {"f32", "f32", 0.125, BF16, BF16},
                                         {"f32", "f32", 0, F16, F16, false},
                                         {"f32", "f32", 0.125, F16, F32, true, 0},
                                         {"", "f32", 0.125, BF16, BF16},
                                         {"split", "f32", 0.125, BF16, F32, false},
                                         {"split", "f32", 0, BF16, BF16, false},
                                         {"", "bf16", 0.125, F32, F32},
                                         {"split", "bf16", 0, BF16, BF16, false},
                                         {.finite = false, .applied = 0},
                                         {.gradient = BF16, .clip_value = 0.125},
                                         {.states = "8bit", .finite = false},
                                         {.parameter = BF16, .rounding = "stochastic"},
                                         {.statistics = true},
                                         {.master = "f32", .parameter = BF16, .statistics = true},
                                         {.finite = false, .statistics = true}};
  const auto add = [&](const Attrs& options, const SampleCase& form) {
    const UpdateAttrs own{5,
                          form.master,
                          form.states,
                          form.rounding,
                          {11, 22, 33, 44, 55},
                          {1, 0, 1, 1, 0},
                          form.weight_decay,
                          form.clip_value,
                          form.statistics};
    Attrs attrs = to_attrs(own);
    for (const auto& [name, value] : options.all()) attrs.set(name, value);
    const UpdateLayout l = is_sums ? sums_layout(own, formula) : update_layout(own, formula);
    Sample& sample = s.add_erased(
        attrs, sample_inputs(formula, l, form.parameter, form.gradient, form.finite, form.applied),
        is_sums || own.statistics ? "elements are computed in fp32, and summed in double"
        : l.has_random ? "a value beside another may be rounded to the other of its neighbours"
                       : "");
    sample.gradient = false;
    if (is_sums || own.statistics)
      sample.tolerance = tolerance_of(DType::F32).relative / tolerance_of(DType::F64).relative;
    else if (l.has_random)
      sample.tolerance = 2;  // the other of two neighbours
  };
  for (const SampleCase& form : forms)
    if (!is_sums || !form.statistics) add(formula.samples[0], form);
  for (std::size_t i = 1; i < formula.samples.size(); ++i)
    for (const SampleCase& form : {SampleCase{.applied = 0}, SampleCase{.weight_decay = 0.125}})
      add(formula.samples[i], form);
}

// An op of a formula, erased: its attributes are those of every update and the formula's options.
OpDef op_of(const FormulaRecord& formula, std::string name, std::string doc, bool is_sums) {
  OpDef d;
  d.name = name;
  d.doc = std::move(doc);
  d.default_attrs = to_attrs(UpdateAttrs());
  UpdateAttrs::fields().each([&](const auto& f) { d.attr_docs.emplace_back(f.name, f.doc); });
  for (const auto& [option, value] : formula.options.all()) d.default_attrs.set(option, value);
  for (const auto& docs : formula.option_docs) d.attr_docs.push_back(docs);
  d.numeric = Numeric::Exact;
  d.gradient = OpDef::Gradient::None;
  d.cost = [operations = formula.operations](const Attrs&, CallTypes in, CallTypes out) {
    return elementwise_cost(operations, in, out);
  };
  d.labels = "*";
  d.fusion = Fusion::Opaque;
  d.onnx = no_onnx();
  d.samples = [&formula, is_sums](Samples& s) { add_samples(formula, is_sums, s); };
  return d;
}

// A call's attributes with those that it leaves out; a name or a kind that there is not is
// UserError E0105.
UpdateAttrs checked_attrs(const FormulaRecord& formula, const Attrs& attrs) {
  Attrs own;
  for (const auto& [name, value] : attrs.all()) {
    const AttrValue* option = formula.options.find(name);
    if (!option)
      own.set(name, value);
    else if (option->index() != value.index())
      throw_unknown_attr(name.str(), print_attr(*option));
  }
  return from_attrs<UpdateAttrs>(own);
}

OpDef update_op(const FormulaRecord& formula) {
  const int sums = formula.sums;
  std::string doc =
      "One step of " + std::string(formula.meaning) +
      " for a list of tensors, with t = applied + 1 and g = multiplier * gradient, cut at "
      "clip_value where that is not 0: ";
  for (const std::string& line : formula.text)
    doc += (line == formula.text.front() ? "" : "; ") + line;
  doc +=
      ". p is the master where there is one; its value is rounded into the parameter, the states "
      "into their format: bf16 and 8bit at random (scalar/stochastic_rounding.h). Where finite is "
      "0 every output equals its input. `statistics` (ops/statistics.h) are of the new p less the "
      "old one.";
  OpDef d = op_of(formula, update_op_name(formula), std::move(doc), false);
  d.infer = [&formula, sums](const Attrs& attrs, Infer& c) {
    const UpdateAttrs a = checked_attrs(formula, attrs);
    need_numbers(formula, attrs, c);
    const UpdateLayout l = update_layout(a, formula);
    infer_operands(l, a.decay, c);
    need_random(l, a, c);
    if (sums > 0)
      c.check(c.in(l.sums()) == TensorType{DType::F64, {l.count, sums}},
              "the sums are " + c.in(l.sums()).str(),
              TensorType{DType::F64, {l.count, sums}}.str());
    for (int i = 0; i < l.count; ++i) c.out(c.in(l.parameter(i)));
    for (int i = 0; i < l.count && l.has_master(); ++i) c.out(c.in(l.master_of(i)));
    for (int w = 0; w < l.states; ++w)
      for (int i = 0; i < l.count; ++i) c.out(c.in(l.state(w, i)));
    for (int i = 0; i < l.count && l.has_statistics; ++i)
      c.out(DType::F64, {static_cast<std::int64_t>(TensorStatistics::kNumbers)});
  };
  d.eval = [&formula, sums](const Attrs& attrs, EvalCall& c) {
    Evaluation(formula, attrs, false, c).update(sums);
  };
  return d;
}

OpDef sums_op(const FormulaRecord& formula) {
  const int sums = formula.sums;
  std::string doc = "For each tensor the sums over its elements that " + update_op_name(formula) +
                    " needs, in double and in a fixed order: ";
  for (const std::string_view what : formula.squares)
    doc +=
        (what == formula.squares.front() ? "of the squares of " : " and of ") + std::string(what);
  OpDef d = op_of(formula, sums_op_name(formula), doc + ". 0 where finite is 0.", true);
  d.infer = [&formula, sums](const Attrs& attrs, Infer& c) {
    const UpdateAttrs a = checked_attrs(formula, attrs);
    need_numbers(formula, attrs, c);
    const UpdateLayout l = sums_layout(a, formula);
    infer_operands(l, a.decay, c);
    c.out(DType::F64, {l.count, sums});
  };
  d.eval = [&formula, sums](const Attrs& attrs, EvalCall& c) {
    Evaluation(formula, attrs, true, c).sum(sums);
  };
  return d;
}

OpDef numbers_op(const FormulaRecord& formula) {
  std::string doc = "What a step of " + std::string(formula.meaning) +
                    " takes of its rate lr, f32[], and of the count of updates applied before it, "
                    "i64[], with t = applied + 1: ";
  for (const std::string_view name : formula.numbers_of_step)
    doc += (name == formula.numbers_of_step.front() ? "" : ", ") + std::string(name);
  OpDef d = op_of(formula, numbers_op_name(formula), doc + ".", false);
  const auto count = static_cast<std::int64_t>(formula.numbers_of_step.size());
  d.infer = [&formula, count](const Attrs& attrs, Infer& c) {
    checked_attrs(formula, attrs);
    need_numbers(formula, attrs, c);
    c.need_count(2);
    need_scalar(c, 0, DType::F32, "the learning rate");
    need_scalar(c, 1, DType::I64, "the count of applied updates");
    c.out(DType::F32, {count});
  };
  d.eval = [&formula, count](const Attrs& attrs, EvalCall& c) {
    const auto numbers = formula.bind(attrs)->numbers(
        {c.in[0][0], static_cast<std::int64_t>(c.in[1][0]), update_attrs(attrs).weight_decay});
    std::copy_n(numbers.number.begin(), count, c.out[0].values.begin());
  };
  d.samples = [&formula](Samples& s) {
    const auto scalar = [](DType dtype, double value) {
      return SampleInput{{}, Fill::Constant, value, value, 1, dtype, true};
    };
    for (const Attrs& options : formula.samples)
      for (const double applied : {0.0, 9.0, 100000.0}) {
        Attrs attrs = to_attrs(UpdateAttrs{.weight_decay = 0.125});
        for (const auto& [name, value] : options.all()) attrs.set(name, value);
        s.add_erased(attrs, {scalar(DType::F32, 0.0625), scalar(DType::I64, applied)}, "")
            .gradient = false;
      }
  };
  return d;
}

}  // namespace

std::vector<OpDef> update_ops() {
  std::vector<OpDef> all;
  for (const FormulaRecord* formula : optim::formulas()) {
    if (formula->is_of_tensors) {
      all.push_back(numbers_op(*formula));
      continue;
    }
    all.push_back(update_op(*formula));
    if (formula->sums > 0) all.push_back(sums_op(*formula));
  }
  return all;
}

std::string update_op_name(const FormulaRecord& formula) {
  return std::string(formula.name) + "_update";
}
std::string numbers_op_name(const FormulaRecord& formula) {
  return std::string(formula.name) + "_numbers";
}
std::string sums_op_name(const FormulaRecord& formula) {
  return std::string(formula.name) + "_sums";
}

const FormulaRecord* formula_of_update(Name op) {
  for (const FormulaRecord* formula : optim::formulas())
    if (!formula->is_of_tensors && op == Name(update_op_name(*formula))) return formula;
  return nullptr;
}

Attrs update_attrs_of(const UpdateRule& rule, const UpdateForm& form, std::int64_t count) {
  Attrs attrs =
      to_attrs(UpdateAttrs{count, form.master ? std::string(name_of(*form.master)) : "",
                           std::string(name_of(form.states)), std::string(name_of(form.rounding)),
                           form.keys, form.decay, form.weight_decay, form.clip_value});
  for (const auto& [name, value] : rule.options.all()) attrs.set(name, value);
  return attrs;
}

UpdateResults emit_update(const UpdateRule& rule, const UpdateOperands& o, const UpdateForm& form) {
  if (rule.formula->is_of_tensors) return emit_tensor_update(rule, o, form);
  std::vector<Operand> in = {o.lr, o.multiplier, o.finite, o.applied};
  const auto append = [&](const std::vector<Tensor>& list) {
    in.insert(in.end(), list.begin(), list.end());
  };
  append(o.parameters);
  append(o.gradients);
  append(o.masters);
  for (const auto& list : o.states) append(list);
  const Attrs attrs = update_attrs_of(rule, form, static_cast<std::int64_t>(o.parameters.size()));
  if (rule.formula->sums > 0) in.emplace_back(emit_op(sums_op_name(*rule.formula), attrs, in)[0]);
  if (update_layout(update_attrs(attrs), *rule.formula).has_random) in.emplace_back(o.random);
  const std::vector<Tensor> out = emit_op(update_op_name(*rule.formula), attrs, in);

  UpdateResults results;
  auto next = out.begin();
  const auto take = [&](std::vector<Tensor>& to, std::size_t n) {
    to.assign(next, next + static_cast<std::ptrdiff_t>(n));
    next += static_cast<std::ptrdiff_t>(n);
  };
  take(results.parameters, o.parameters.size());
  take(results.masters, o.masters.size());
  for (const auto& list : o.states) take(results.states.emplace_back(), list.size());
  return results;
}

}  // namespace aloft
