#include "ops/logical.h"

#include <algorithm>
#include <cmath>

#include "ops/op.h"

namespace aloft {
namespace {

using A = NoAttrs;

Cost cost(const A&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); }

OpDef two_operand_op(const char* name, const char* doc, bool (*f)(bool, bool), const char* onnx) {
  return define<A>({
      .name = name,
      .doc = doc,
      .infer =
          [](const A&, Infer& c) {
            c.need_count(2);
            for (int i : {0, 1})
              c.check(c.dtype(i) == DType::Bool, "an operand is not bool", "bool tensors",
                      "compare with 0 first");
            c.out(DType::Bool, c.broadcast(c.shape(0), c.shape(1)));
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([f](const A&, EvalCall& c) {
        const BroadcastIndex a(c.in[0].shape, c.out[0].shape), b(c.in[1].shape, c.out[0].shape);
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i)
          c.out[0][i] = f(c.in[0][a(i)] != 0, c.in[1][b(i)] != 0);
      }),
      .vjp = NoGradient{},
      .cost = cost,
      .labels = "..., ... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{onnx, 7},
      .samples =
          [](Samples& s) {
            const auto mask = [](Shape shape) { return ids(std::move(shape), 0, 2, DType::Bool); };
            s.add(A{}, {mask({3, 17}), mask({3, 17})});
            s.add(A{}, {mask({2, 3, 5}), mask({3, 1})});
            s.add(A{}, {mask({0}), mask({0})});
            s.add(A{}, {mask({4097}), mask({1})});
          },
  });
}

OpDef one_operand_op(const char* name, const char* doc, bool of_floats, bool (*f)(double),
                     const char* onnx) {
  return define<A>({
      .name = name,
      .doc = doc,
      .infer =
          [of_floats](const A&, Infer& c) {
            c.need_count(1);
            if (of_floats)
              c.need_float(0);
            else
              c.check(c.dtype(0) == DType::Bool, "the operand is not bool", "a bool tensor",
                      "compare with 0 first");
            c.out(DType::Bool, c.shape(0));
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([f](const A&, EvalCall& c) {
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i) c.out[0][i] = f(c.in[0][i]);
      }),
      .vjp = NoGradient{},
      .cost = cost,
      .labels = "... -> ...",
      .fusion = Fusion::Elementwise,
      .onnx = Onnx{onnx, 10},
      .samples =
          [of_floats](Samples& s) {
            for (const Shape& shape : {Shape{3, 17}, Shape{0}, Shape{1}, Shape{4097}, Shape{}})
              s.add(A{}, {of_floats ? SampleInput{shape, Fill::Special}
                                    : ids(shape, 0, 2, DType::Bool)});
          },
  });
}

OpDef quantifier_op(const char* name, const char* doc, bool start) {
  using R = ReduceAttrs;
  return define<R>({
      .name = name,
      .doc = doc,
      .infer =
          [](const R& a, Infer& c) {
            c.need_count(1);
            c.out(DType::Bool, reduced_shape(c.shape(0), c.axes(0, a.axes), a.keep_dims));
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<R>([start](const R& a, EvalCall& c) {
        const HostArray& x = c.in[0];
        std::vector<std::int64_t> kept = x.shape;
        for (std::size_t d = 0; d < kept.size(); ++d)
          if (a.axes.empty()) kept[d] = 1;
        for (std::int64_t axis : a.axes) kept[normal_axis(axis, x.rank())] = 1;
        const BroadcastIndex at(kept, x.shape);
        std::fill(c.out[0].values.begin(), c.out[0].values.end(), start);
        for (std::int64_t i = 0; i < x.numel(); ++i)
          if ((x[i] != 0) != start) c.out[0][at(i)] = !start;
      }),
      .vjp = NoGradient{},
      .cost = [](const R&, CallTypes in, CallTypes out) { return elementwise_cost(1, in, out); },
      .labels = "*",
      .fusion = Fusion::RowReduce,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            const auto mask = [](Shape shape) { return ids(std::move(shape), 0, 2, DType::Bool); };
            s.add(R{{}, false}, {mask({3, 17})});
            s.add(R{{-1}, true}, {mask({64, 3})});
            s.add(R{{0}, false}, {mask({3, 17})});
            s.add(R{{-1}, false}, {mask({3, 0})});
            s.add(R{{-1}, false}, {mask({2, 4097})});
            s.add(R{{-1}, false}, {ids({17, 2}, 0, 2)});
            s.add(R{{1}, false}, {{{5, 3}, Fill::Special}});
          },
  });
}

}  // namespace

std::vector<OpDef> logical_ops() {
  return {
      two_operand_op(
          "logical_and", "a and b", [](bool a, bool b) { return a && b; }, "And"),
      two_operand_op(
          "logical_or", "a or b", [](bool a, bool b) { return a || b; }, "Or"),
      two_operand_op(
          "logical_xor", "a or b, not both", [](bool a, bool b) { return a != b; }, "Xor"),
      one_operand_op(
          "logical_not", "not x", false, [](double x) { return x == 0; }, "Not"),
      one_operand_op(
          "is_nan", "whether x is NaN", true, [](double x) { return std::isnan(x); }, "IsNaN"),
      one_operand_op(
          "is_inf", "whether x is infinite", true, [](double x) { return std::isinf(x); }, "IsInf"),
      one_operand_op(
          "is_finite", "whether x is neither infinite nor NaN", true,
          [](double x) { return std::isfinite(x); }, ""),
      quantifier_op("any", "Whether an element over axes is not 0.", false),
      quantifier_op("all", "Whether no element over axes is 0.", true),
  };
}

#define ONE(name) \
  Tensor name(Operand x) { return emit_one(#name, {}, {x}); }
#define TWO(name) \
  Tensor name(Operand a, Operand b) { return emit_one(#name, {}, {a, b}); }
TWO(logical_and)
TWO(logical_or)
TWO(logical_xor)
ONE(logical_not)
ONE(is_nan)
ONE(is_inf)
ONE(is_finite)
#undef ONE
#undef TWO

Tensor any(Operand x, const Ints& axes, bool keep_dims) {
  return emit_one("any", to_attrs(ReduceAttrs{axes, keep_dims}), {x});
}
Tensor all(Operand x, const Ints& axes, bool keep_dims) {
  return emit_one("all", to_attrs(ReduceAttrs{axes, keep_dims}), {x});
}

}  // namespace aloft
