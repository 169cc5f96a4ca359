#include "ops/update_ops.h"

#include "base/error.h"
#include "scalar/split_float.h"

namespace aloft {
namespace {

void need_scalar(Infer& c, int i, DType dtype, const char* what) {
  c.check(c.in(i) == TensorType{dtype, Shape{}}, std::string(what) + " has the wrong type",
          TensorType{dtype, Shape{}}.str());
}

void need_f32_like(Infer& c, int i, int like, const char* what) {
  c.need_same_shape(like, i);
  c.check(c.dtype(i) == DType::F32,
          std::string(what) + " " + std::to_string(i) + " is " + std::string(name_of(c.dtype(i))),
          "f32");
}

void need_split_master(Infer& c, const UpdateLayout& l, int i) {
  const std::string which = std::to_string(i);
  const TensorType &p = c.in(l.parameter(i)), &m = c.in(l.master(i));
  // f32 in a graph in logical types, until insert-casts gives it the type in which it is stored.
  c.check(p.dtype == DType::BF16 || p.dtype == DType::F32, "parameter " + which + " is " + p.str(),
          "bf16, whose master is split");
  const TensorType need{DType::U8, {scalar::rest_bytes(p.shape.max_numel())}};
  c.check(m == need, "split master " + which + " is " + m.str(), need.str());
}

// The master of element j: its value, and its bits from and to the remainders.
double master_value(const HostArray& p, const HostArray& rests, std::int64_t j) {
  const std::int64_t n = p.numel();
  const auto byte = [&](std::int64_t i) { return static_cast<unsigned>(rests[i]); };
  const auto rest = static_cast<std::uint16_t>(byte(2 * j) | byte(2 * j + 1) << 8);
  return scalar::join({scalar::bf16_of(p[j]), rest, (byte(2 * n + j / 8) >> (j % 8) & 1u) != 0});
}

void put_master(double value, HostArray& p, HostArray& rests, std::int64_t j) {
  const scalar::SplitFloat s = scalar::split(static_cast<float>(value));
  p[j] = scalar::f32_of(s.near);
  rests[2 * j] = s.rest & 0xff;
  rests[2 * j + 1] = s.rest >> 8;
  if (s.below) rests[2 * p.numel() + j / 8] += 1 << (j % 8);
}

}  // namespace

void infer_update(const UpdateLayout& l, const Ints& decay, Infer& c) {
  c.check(l.count >= 0 && l.count <= c.count() && c.count() == l.inputs(),
          "wrong number of operands: " + std::to_string(c.count()),
          std::to_string(UpdateLayout::kFirst) + ", and " +
              std::to_string(2 + l.has_master + l.moments) + " for each of `count` parameters");
  c.check(l.has_master || !l.is_split, "a master is split where there is none",
          "has_master = true beside split_master = true");
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
    if (l.is_split)
      need_split_master(c, l, i);
    else if (l.has_master)
      need_f32_like(c, l.master(i), l.parameter(i), "master");
    for (int w = 0; w < l.moments; ++w) need_f32_like(c, l.moment(w, i), l.parameter(i), "moment");
  }
  for (int i = 0; i < l.count; ++i) c.out(c.in(l.parameter(i)));
  if (l.has_master)
    for (int i = 0; i < l.count; ++i) c.out(c.in(l.master(i)));
  for (int w = 0; w < l.moments; ++w)
    for (int i = 0; i < l.count; ++i) c.out(DType::F32, c.shape(l.parameter(i)));
}

void evaluate_update(const UpdateLayout& l, const Ints& decay, EvalCall& c,
                     const std::function<void(UpdateElement&, bool)>& step) {
  const bool applies = c.in[UpdateLayout::kFinite][0] != 0;
  const double multiplier = c.in[UpdateLayout::kMultiplier][0];
  for (int i = 0; i < l.count; ++i) {
    const HostArray &p = c.in[l.parameter(i)], &g = c.in[l.gradient(i)];
    const auto value = [&](std::int64_t j) -> double {
      if (l.is_split) return master_value(p, c.in[l.master(i)], j);
      return l.has_master ? c.in[l.master(i)][j] : p[j];
    };
    for (std::int64_t j = 0; j < p.numel(); ++j) {
      UpdateElement e{value(j), g[j] * multiplier, {0, 0}};
      for (int w = 0; w < l.moments; ++w) e.moment[w] = c.in[l.moment(w, i)][j];
      if (applies) step(e, decay[i] != 0);
      HostArray& to = c.out[l.new_parameter(i)];
      to[j] = applies ? HostNumber(e.value) : p[j];
      if (l.is_split && applies) put_master(e.value, to, c.out[l.new_master(i)], j);
      if (l.has_master && !l.is_split) c.out[l.new_master(i)][j] = e.value;
      for (int w = 0; w < l.moments; ++w) c.out[l.new_moment(w, i)][j] = e.moment[w];
    }
    if (l.is_split && !applies) c.out[l.new_master(i)].values = c.in[l.master(i)].values;
  }
}

std::vector<SampleInput> update_sample(const UpdateLayout& l, DType parameter, DType gradient,
                                       bool finite, std::int64_t applied) {
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
  if (l.is_split)
    for (int i = 0; i < l.count; ++i)
      in.push_back(
          {{scalar::rest_bytes(shape(i).max_numel())}, Fill::Ids, 0, 256, 1, DType::U8, true});
  else if (l.has_master)
    add(DType::F32, false);
  if (l.moments > 0) add(DType::F32, false);
  if (l.moments > 1) add(DType::F32, true);
  return in;
}

UpdateResults emit_update(Name op, const Attrs& attrs, const UpdateOperands& o) {
  std::vector<Operand> in = {o.lr, o.multiplier, o.finite, o.applied};
  const auto append = [&](const std::vector<Tensor>& list) {
    in.insert(in.end(), list.begin(), list.end());
  };
  append(o.parameters);
  append(o.gradients);
  append(o.masters);
  for (const auto& list : o.moments) append(list);
  const std::vector<Tensor> out = emit_op(op, attrs, in);

  UpdateResults results;
  auto next = out.begin();
  const auto take = [&](std::vector<Tensor>& to, std::size_t n) {
    to.assign(next, next + static_cast<std::ptrdiff_t>(n));
    next += static_cast<std::ptrdiff_t>(n);
  };
  take(results.parameters, o.parameters.size());
  take(results.masters, o.masters.size());
  for (const auto& list : o.moments) take(results.moments.emplace_back(), list.size());
  return results;
}

}  // namespace aloft
