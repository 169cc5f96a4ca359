#include "ops/concat.h"

#include "graph/scope.h"
#include "ops/constant.h"
#include "ops/extents.h"
#include "ops/op.h"
#include "ops/promote.h"
#include "ops/reshape.h"
#include "ops/slice.h"

namespace aloft {
namespace {

Cost copy_cost(CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); }

Tensor zeros_like(const Tensor& t) {
  EmitterScope scope(*t.emitter());
  return full(t.shape(), 0, t.dtype());
}

void infer_concat(const ConcatAttrs& a, Infer& c) {
  c.check(c.count() >= 1, "nothing to join", "at least one tensor");
  const int axis = c.axis(0, a.axis);
  Shape out = c.shape(0);
  std::int64_t length = 0;
  for (int i = 0; i < c.count(); ++i) {
    c.need_same_dtype(0, i);
    c.check(c.shape(i).rank() == out.rank(), "the ranks differ", "tensors of one rank");
    c.check(c.shape(i)[axis].is_constant(), "the axis is symbolic", "constant lengths");
    length = extent_sum(length, c.shape(i)[axis].max());
    Shape other = c.shape(i);
    other[axis] = out[axis];
    c.check(other == out, "operand " + std::to_string(i) + " does not fit",
            "shapes that are equal but for axis " + std::to_string(axis));
  }
  out[axis] = length;
  c.out(c.dtype(0), out);
}

OpDef concat_op() {
  using A = ConcatAttrs;
  return define<A>({
      .name = "concat",
      .doc = "Joins tensors along an axis.",
      .infer = infer_concat,
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        HostArray& y = c.out[0];
        const int axis = normal_axis(a.axis, y.rank());
        const std::int64_t inner = product(y.shape, axis + 1, y.rank()), m = y.shape[axis];
        std::int64_t before = 0;
        for (const HostArray& x : c.in) {
          const std::int64_t n = x.shape[axis];
          for (std::int64_t i = 0; i < x.numel(); ++i)
            y[(i / inner / n * m + before + i / inner % n) * inner + i % inner] = x[i];
          before += n;
        }
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        std::int64_t before = 0;
        for (int i = 0; i < g.count(); ++i) {
          const std::int64_t n = g.in(i).dim(normal_axis(a.axis, g.in(i).rank())).max();
          if (g.needs(i)) g.give(i, slice(g.cotangent(0), a.axis, before, before + n));
          before += n;
        }
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return copy_cost(in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Concat", 13},
      .samples =
          [](Samples& s) {
            s.add(A{0}, {{{3, 17}}, {{1, 17}}, {{2, 17}}});
            s.add(A{-1}, {{{3, 5}}, {{3, 4}}});
            s.add(A{1}, {{{2, 3, 4}}, {{2, 1, 4}}});
            s.add(A{0}, {{{0, 3}}, {{2, 3}}});
            s.add(A{0}, {{{4097}}, {{1}}});
            s.add(A{0}, {{{5}}});
            s.add(A{1}, {ids({2, 3}, 0, 9), ids({2, 2}, 0, 9)}).gradient = false;
          },
      .only_moves = true,
  });
}

Shape with_axis(const Shape& shape, int axis) {
  Shape out = shape;
  out.dims().insert(out.dims().begin() + axis, Dim(1));
  return out;
}

OpDef stack_op() {
  using A = ConcatAttrs;
  return define<A>({
      .name = "stack",
      .doc = "Joins tensors of one shape along a new axis.",
      .infer =
          [](const A& a, Infer& c) {
            c.check(c.count() >= 1, "nothing to stack", "at least one tensor");
            for (int i = 1; i < c.count(); ++i) {
              c.need_same_dtype(0, i);
              c.need_same_shape(0, i);
            }
            const int axis = normal_axis(a.axis, c.shape(0).rank() + 1);
            c.check(axis >= 0, "axis " + std::to_string(a.axis) + " is out of range",
                    "a place among the axes");
            Shape out = with_axis(c.shape(0), axis);
            c.check(axis > 0 || c.shape(0).is_constant(),
                    "the symbolic dimension would not stay outermost", "another axis");
            out[axis] = c.count();
            c.out(c.dtype(0), out);
          },
      .numeric = Numeric::Follow,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> x) -> std::vector<Tensor> {
        const int axis = normal_axis(a.axis, x[0].rank() + 1);
        std::vector<Tensor> parts;
        for (const Tensor& t : x) parts.push_back(reshape(t, with_axis(t.shape(), axis)));
        return {concat(parts, axis)};
      }),
      .vjp = FromBody{},
      .cost = [](const A&, CallTypes in, CallTypes out) { return copy_cost(in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{0}, {{{3, 17}}, {{3, 17}}});
            s.add(A{-1}, {{{5}}, {{5}}, {{5}}});
            s.add(A{1}, {{{2, 3}}, {{2, 3}}});
            s.add(A{0}, {{{}}, {{}}});
            s.add(A{0}, {{{1}}, {{1}}});
            s.add(A{1}, {{{0}}, {{0}}});
            s.add(A{1}, {{{4097}}, {{4097}}});
          },
      .only_moves = true,
  });
}

OpDef split_op() {
  using A = SplitAttrs;
  return define<A>({
      .name = "split",
      .doc = "Takes an axis apart into parts of given lengths.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            const int axis = c.axis(0, a.axis);
            std::int64_t total = 0;
            for (std::int64_t size : a.sizes) {
              c.check(size >= 0, "a part's length is negative", "lengths >= 0");
              total = extent_sum(total, size);
              Shape out = c.shape(0);
              out[axis] = size;
              c.out(c.dtype(0), out);
            }
            c.check(c.shape(0)[axis] == Dim(total) && !a.sizes.empty(),
                    "the parts do not add up to the axis",
                    "lengths that add up to " + c.shape(0)[axis].str());
          },
      .numeric = Numeric::Follow,
      .meaning = Body<A>([](const A& a, std::span<const Tensor> x) {
        std::vector<Tensor> parts;
        std::int64_t before = 0;
        for (std::int64_t size : a.sizes) {
          parts.push_back(slice(x[0], a.axis, before, before + size));
          before += size;
        }
        return parts;
      }),
      .vjp = VjpOf<A>([](const A& a, Vjp& g) {
        if (!g.needs(0)) return;
        std::vector<Tensor> parts;
        for (std::size_t i = 0; i < a.sizes.size(); ++i)
          parts.push_back(g.has_cotangent(static_cast<int>(i))
                              ? g.cotangent(static_cast<int>(i))
                              : zeros_like(g.out(static_cast<int>(i))));
        g.give(0, concat(parts, a.axis));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return copy_cost(in, out); },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Split", 13},
      .samples =
          [](Samples& s) {
            s.add(A{0, {1, 2}}, {{{3, 17}}});
            s.add(A{-1, {5, 0, 12}}, {{{3, 17}}});
            s.add(A{1, {2, 3}}, {{{2, 5, 3}}});
            s.add(A{0, {4000, 97}}, {{{4097}}});
            s.add(A{0, {0}}, {{{0, 2}}});
          },
      .only_moves = true,
  });
}

std::vector<Operand> operands_of(const std::vector<Tensor>& parts, const SourceLocation& at) {
  std::vector<Operand> operands;
  for (const Tensor& part : parts) operands.emplace_back(part, at);
  if (parts.empty()) return operands;
  DType t = parts[0].dtype();
  for (const Tensor& part : parts) t = promoted(t, part.dtype());
  for (Operand& o : operands) o = as_type(o, t);
  return operands;
}

}  // namespace

std::vector<OpDef> concat_ops() { return {concat_op(), stack_op(), split_op()}; }

Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis, SourceLocation at) {
  const Scope scope(where_of(at));  // of nothing to join, too
  return emit_op("concat", to_attrs(ConcatAttrs{axis}), operands_of(parts, at))[0];
}
Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis, SourceLocation at) {
  const Scope scope(where_of(at));
  return emit_op("stack", to_attrs(ConcatAttrs{axis}), operands_of(parts, at))[0];
}
std::vector<Tensor> split(Operand x, const Ints& sizes, std::int64_t axis) {
  return emit_op("split", to_attrs(SplitAttrs{axis, sizes}), std::span<const Operand>(&x, 1));
}

}  // namespace aloft
