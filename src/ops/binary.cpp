#include "ops/binary.h"

#include <limits>

#include "base/error.h"
#include "ops/cast.h"
#include "ops/compare.h"
#include "ops/constant.h"
#include "ops/identity.h"
#include "ops/kept_type.h"
#include "ops/logical.h"
#include "ops/op.h"
#include "ops/promote.h"
#include "ops/reduce.h"
#include "ops/reshape.h"
#include "ops/unary.h"
#include "ops/where.h"
#include "scalar/arithmetic.h"
#include "scalar/integers.h"

namespace aloft {
namespace {

struct Row {
  const char* name;
  const char* doc;
  Numeric numeric;
  double (*eval)(double, double);
  Tensor (*da)(Vjp&);  // cotangent of a, before summing over broadcast axes
  Tensor (*db)(Vjp&);
  const char* onnx;
  double lo = -2, hi = 2;
  std::int64_t (*whole)(std::int64_t, std::int64_t) = nullptr;  // of integers; null: floats only
  bool picks = false;                                           // the result is one of the two
};

using I = std::int64_t;

// The gradient of one side of maximum or minimum: nothing where it lost. Half goes to each side of
// a tie, as numerical differentiation would find; where one is NaN both get all of it.
Tensor pick(Vjp& g, int side, Tensor (*lost)(Operand, Operand)) {
  const Tensor &mine = g.in(side), &other = g.in(1 - side), &dy = g.cotangent(0);
  const Tensor shared = where(equal(mine, other), dy * 0.5, dy);
  return where(lost(mine, other), scalar_like(dy, 0), shared);
}

// A branch of `where` that is not taken gets a zero, and where its own derivative is infinite the
// product of both is NaN: what a formula cannot take is replaced by 1 before the formula, so that
// gradients of these gradients hold too.

// What a gradient is made of, in the type of statistics: a square leaves the range of f16, an
// exponent less 1 or a whole quotient the digits of bf16.
struct WidePair {
  AsWritten as_written;
  Tensor a, b, dy;
  explicit WidePair(const Vjp& g) {
    const DType type = statistics_type(g.in(0).dtype());
    a = cast(g.in(0), type);
    b = cast(g.in(1), type);
    dy = cast(g.cotangent(0), type);
  }
};

double least_normal(DType t) {
  return t == DType::F64 ? std::numeric_limits<double>::min() : std::numeric_limits<float>::min();
}

// 0 to the power 0 is 1 whatever its base does: the gradient is 0, not 0 * 0^-1, and so it is of
// bases whose reciprocal is infinite. Of others 0 * a^-1 is 0 too, with a slope along b.
Tensor pow_by_base(Vjp& g) {
  const WidePair p(g);
  const Tensor zero = scalar_like(p.b, 0), no = cast(zero, DType::Bool);
  const Tensor divides = greater_equal(abs(p.a), scalar_like(p.a, least_normal(p.a.dtype())));
  const Tensor flat = where(divides, no, equal(p.b, zero));
  const Tensor slope = p.b * pow(where(flat, scalar_like(p.b, 1), p.a), p.b - 1.0);
  return cast(p.dy * where(flat, zero, slope), g.cotangent(0).dtype());
}
// 0^b stays 0 (or 1) beside every b >= 0: log(0) is not asked for there.
Tensor pow_by_exponent(Vjp& g) {
  const WidePair p(g);
  const Tensor zero = scalar_like(p.a, 0), no = cast(zero, DType::Bool);
  const Tensor flat = where(equal(p.a, zero), greater_equal(p.b, zero), no);
  const Tensor y = cast(g.out(0), p.a.dtype());
  const Tensor slope = y * log(where(flat, scalar_like(p.a, 1), p.a));
  return cast(p.dy * where(flat, zero, slope), g.cotangent(0).dtype());
}

// One side over a^2 + b^2; 0 at the origin, which has no angle. Both are divided by the larger one
// first, so that no square leaves the range; which one that is changes nothing, so no gradient goes
// through it.
Tensor turned(Vjp& g, int side) {
  const WidePair p(g);
  const Tensor larger = detach(maximum(abs(p.a), abs(p.b)));
  const Tensor zero = scalar_like(larger, 0), one = scalar_like(larger, 1);
  const Tensor origin = equal(larger, zero);
  const Tensor finite = is_finite(larger);
  const Tensor unit = where(origin, one, where(finite, larger, one));
  const Tensor a = p.a / unit, b = p.b / unit;
  const Tensor divisor = where(origin, one, square(a) + square(b));
  const Tensor turn = p.dy * (side == 0 ? a : b) / divisor / unit;
  return cast(where(origin, zero, turn), g.cotangent(0).dtype());
}

// a / b without its fraction, from what mod leaves of a, `m`: the rounded quotient may lie on the
// integer above. By 0 it is a / 0.
Tensor whole_quotient(const Tensor& a, const Tensor& b, const Tensor& m) {
  return where(equal(b, scalar_like(b, 0)), a / b, round((a - m) / b));
}

// The same, of an infinite a as infinite as a / b.
Tensor truncated_quotient(const Tensor& a, const Tensor& b) {
  return where(is_finite(a), whole_quotient(a, b, mod(a, b)), a / b);
}

// whole_quotient() rounded down.
Tensor floored_quotient(const Tensor& a, const Tensor& b) {
  const Tensor m = mod(a, b), zero = scalar_like(a, 0), one = scalar_like(a, 1);
  const Tensor apart = not_equal(less(b, zero), less(m, zero));
  return whole_quotient(a, b, m) - where(equal(m, zero), zero, where(apart, one, zero));
}

// The second operand's gradient. The quotient is level almost everywhere, so none goes through it.
Tensor by_quotient(Vjp& g, Tensor (*quotient)(const Tensor& a, const Tensor& b)) {
  const WidePair p(g);
  return cast(-(p.dy * detach(quotient(p.a, p.b))), g.cotangent(0).dtype());
}

const Row kRows[] = {
    {"add", "a + b", Numeric::Follow, scalar::add<double, double>,
     [](Vjp& g) { return g.cotangent(0); }, [](Vjp& g) { return g.cotangent(0); }, "Add", -2, 2,
     scalar::wrapping_add},
    {"sub", "a - b", Numeric::Follow, scalar::sub<double, double>,
     [](Vjp& g) { return g.cotangent(0); }, [](Vjp& g) { return -g.cotangent(0); }, "Sub", -2, 2,
     scalar::wrapping_sub},
    {"mul", "a * b", Numeric::Follow, scalar::mul<double, double>,
     [](Vjp& g) { return g.cotangent(0) * g.in(1); },
     [](Vjp& g) { return g.cotangent(0) * g.in(0); }, "Mul", -2, 2, scalar::wrapping_mul},
    {"div", "a / b", Numeric::Follow, scalar::div<double, double>,
     [](Vjp& g) { return g.cotangent(0) / g.in(1); },
     [](Vjp& g) { return -(g.cotangent(0) * g.out(0) / g.in(1)); }, "Div", 0.3, 2},
    {"pow", "a to the power b", Numeric::Widen, scalar::pow<double>, pow_by_base, pow_by_exponent,
     "Pow", 0.3, 2, scalar::wrapping_pow},
    {"maximum", "the larger of a and b; NaN where either is NaN", Numeric::Follow,
     scalar::maximum<double, double>, [](Vjp& g) { return pick(g, 0, less); },
     [](Vjp& g) { return pick(g, 1, less); }, "Max", -2, 2, scalar::maximum<I, I>, true},
    {"minimum", "the smaller of a and b; NaN where either is NaN", Numeric::Follow,
     scalar::minimum<double, double>, [](Vjp& g) { return pick(g, 0, greater); },
     [](Vjp& g) { return pick(g, 1, greater); }, "Min", -2, 2, scalar::minimum<I, I>, true},
    {"squared_difference", "(a - b)^2", Numeric::Follow, scalar::squared_difference<double, double>,
     [](Vjp& g) { return g.cotangent(0) * (g.in(0) - g.in(1)) * 2; },
     [](Vjp& g) { return g.cotangent(0) * (g.in(1) - g.in(0)) * 2; }, "", -2, 2,
     scalar::wrapping_square_of_difference},
    {"atan2", "angle of the point (b, a), in (-pi, pi]", Numeric::Widen, scalar::atan2<double>,
     [](Vjp& g) { return turned(g, 1); }, [](Vjp& g) { return -turned(g, 0); }, "", 0.3, 2},
    {"mod", "a less the multiple of b towards 0: its sign is a's", Numeric::Follow,
     scalar::mod<double>, [](Vjp& g) { return g.cotangent(0); },
     [](Vjp& g) { return by_quotient(g, truncated_quotient); }, "Mod", 0.3, 2, scalar::int_mod},
    {"remainder", "a less the multiple of b below: its sign is b's", Numeric::Follow,
     scalar::remainder<double>, [](Vjp& g) { return g.cotangent(0); },
     [](Vjp& g) { return by_quotient(g, floored_quotient); }, "", 0.3, 2, scalar::int_remainder},
};

OpDef binary_op(const Row& row) {
  using A = NoAttrs;
  return define<A>({
      .name = row.name,
      .doc = row.doc,
      .infer =
          [floats_only = row.whole == nullptr](const A&, Infer& c) {
            c.need_count(2);
            if (floats_only) c.need_float(0);
            c.need_same_dtype(0, 1);
            c.out(c.dtype(0), c.broadcast(c.shape(0), c.shape(1)));
          },
      .numeric = row.numeric,
      .meaning = Eval<A>([f = row.eval, whole = row.whole](const A&, EvalCall& c) {
        const BroadcastIndex a(c.in[0].shape, c.out[0].shape), b(c.in[1].shape, c.out[0].shape);
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i) {
          const HostNumber &x = c.in[0][a(i)], &y = c.in[1][b(i)];
          if (is_integer(c.out[0].dtype))
            c.out[0][i] = wrapped(whole(x.whole(), y.whole()), c.out[0].dtype);
          else
            c.out[0][i] = f(x, y);
        }
      }),
      .vjp = VjpOf<A>([da = row.da, db = row.db](const A&, Vjp& g) {
        if (g.needs(0)) g.give(0, sum_to(da(g), g.in(0)));
        if (g.needs(1)) g.give(1, sum_to(db(g), g.in(1)));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "..., ... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{row.onnx, 13},
      .samples =
          [lo = row.lo, hi = row.hi, whole = row.whole != nullptr](Samples& s) {
            const auto both = [&](Shape a, Shape b) {
              s.add(A{},
                    {{std::move(a), Fill::Uniform, lo, hi}, {std::move(b), Fill::Uniform, lo, hi}});
            };
            both({3, 17}, {3, 17});
            both({2, 3, 5}, {5});
            both({2, 3, 5}, {3, 1});
            both({}, {4, 2});
            both({2, 1}, {1, 3});
            both({0, 3}, {3});
            both({4097}, {1});
            s.add(A{}, {{{64}, Fill::Special}, {{64}, Fill::Special}}, "special values").gradient =
                false;
            if (whole)
              for (const DType t : {DType::I64, DType::I32, DType::I8, DType::U8})
                s.add(A{}, {whole_numbers({5, 67}, t), whole_numbers({67}, t)}, "integers");
          },
      .only_moves = row.picks,
  });
}

Tensor emit_binary(Name op, Operand a, Operand b) {
  meet(a, b);
  return emit_one(op, {}, {a, b});
}
// Of ops that integers have no result of.
Tensor emit_float_binary(Name op, Operand a, Operand b) {
  const DType t = as_float(promoted(a.tensor.dtype(), b.tensor.dtype()));
  return emit_one(op, {}, {as_type(a, t), as_type(b, t)});
}

}  // namespace

std::vector<OpDef> binary_ops() {
  std::vector<OpDef> all;
  for (const Row& row : kRows) all.push_back(binary_op(row));
  return all;
}

Tensor add(Operand a, Operand b) { return emit_binary("add", a, b); }
Tensor sub(Operand a, Operand b) { return emit_binary("sub", a, b); }
Tensor mul(Operand a, Operand b) { return emit_binary("mul", a, b); }
Tensor div(Operand a, Operand b) { return emit_float_binary("div", a, b); }
Tensor pow(Operand a, Operand b) { return emit_binary("pow", a, b); }
Tensor maximum(Operand a, Operand b) { return emit_binary("maximum", a, b); }
Tensor minimum(Operand a, Operand b) { return emit_binary("minimum", a, b); }
Tensor squared_difference(Operand a, Operand b) { return emit_binary("squared_difference", a, b); }
Tensor atan2(Operand a, Operand b) { return emit_float_binary("atan2", a, b); }
Tensor mod(Operand a, Operand b) { return emit_binary("mod", a, b); }
Tensor remainder(Operand a, Operand b) { return emit_binary("remainder", a, b); }

std::int64_t signed_of(std::uint64_t value) {
  if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    throw UserError("E0314", "a number beside a tensor is above the largest 64-bit integer")
        .saw(std::to_string(value))
        .need("at most " + std::to_string(std::numeric_limits<std::int64_t>::max()))
        .advice("write it as a double, or cast it to a signed integer if it is meant to wrap");
  return static_cast<std::int64_t>(value);
}

namespace {
Tensor beside(Name op, const Operand& x, const Operand& number, Side side) {
  return side == Side::Left ? emit_one(op, {}, {number, x}) : emit_one(op, {}, {x, number});
}
}  // namespace

Tensor with_number(Name op, const Operand& a, double b, Side side) {
  const auto put = [&](const Operand& x) {
    return beside(op, x, Operand(number_like(x.tensor, b), x.loc), side);
  };
  const DType t = a.tensor.dtype();
  if (!is_float(t)) return put(as_type(a, promoted(t, NumberKind::Real)));
  if (holds(t, b)) return put(a);
  // A policy says what types are, and keeps the number all the same.
  if (current_where().policy && a.tensor.emitter()->decides_types()) {
    EmitterScope scope(*a.tensor.emitter());
    return beside(op, a, Operand(full(Shape{}, b), a.loc), side);
  }
  return as_type(put(as_type(a, DType::F32)), t).tensor;
}

Tensor with_number(Name op, const Operand& a, std::int64_t b, Side side, Ends ends) {
  if (is_low(a.tensor.dtype())) return with_number(op, a, static_cast<double>(b), side);
  Operand x = a, n(number_like(a.tensor, b, ends), a.loc);
  meet(x, n);
  return beside(op, x, n, side);
}

Tensor pow_number(const Operand& a, std::int64_t b) {
  const DType t = a.tensor.dtype();
  if (reaches(t, b)) return with_number("pow", a, b);
  const Operand wide = as_type(a, DType::I64);
  return as_type(pow(wide, number_like(wide.tensor, b)), t).tensor;
}

Tensor pow_number(const Operand& a, double b) { return with_number("pow", a, b); }

Tensor scalar_like(const Tensor& x, double value) {
  EmitterScope scope(*x.emitter());
  return full(Shape{}, value, x.dtype());
}

Tensor number_like(const Tensor& x, double value) {
  EmitterScope scope(*x.emitter());
  return full(Shape{}, value, promoted(x.dtype(), NumberKind::Real));
}

Tensor number_like(const Tensor& x, std::int64_t value, Ends ends) {
  EmitterScope scope(*x.emitter());
  const DType t = promoted(x.dtype(), NumberKind::Integer);
  // As the tensor's own numbers, it wraps around at the ends of their type.
  const bool wraps = is_integer(t) && ends == Ends::Wrap;
  const HostNumber number = wraps ? wrapped(value, t) : HostNumber::of(value);
  const Tensor near = full(Shape{}, number, t);
  // A double does not hold every i64; of the narrower types it holds all.
  if (t != DType::I64 || HostNumber(static_cast<double>(number)).whole() == value) return near;
  const auto rest = static_cast<double>(
      scalar::wrapping_sub(value, HostNumber(static_cast<double>(number)).whole()));
  return near + full(Shape{}, rest, t);
}

Tensor sum_to(const Tensor& t, const Tensor& like) {
  const Shape from = t.shape(), to = like.shape();
  if (from == to) return t;
  Ints axes;
  const int added = from.rank() - to.rank();
  for (int i = 0; i < from.rank(); ++i)
    if (i < added || (to[i - added] == Dim(1) && !(from[i] == Dim(1)))) axes.push_back(i);
  const Tensor summed = axes.empty() ? t : sum(t, axes, /*keep_dims=*/true);
  return reshape(summed, to);
}

}  // namespace aloft
