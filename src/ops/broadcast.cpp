#include "ops/broadcast.h"

#include "ops/binary.h"
#include "ops/op.h"

namespace aloft {
namespace {

OpDef broadcast_op() {
  using A = BroadcastAttrs;
  return define<A>({
      .name = "broadcast",
      .doc = "Repeats x along axes of length 1, and along new axes in front, up to `shape`.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.check(c.broadcast(c.shape(0), a.shape) == a.shape, "the shape does not broadcast",
                    "a target that x broadcasts to; asked for " + a.shape.str());
            c.out(c.dtype(0), a.shape);
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A&, EvalCall& c) {
        const BroadcastIndex at(c.in[0].shape, c.out[0].shape);
        for (std::int64_t i = 0; i < c.out[0].numel(); ++i) c.out[0][i] = c.in[0][at(i)];
      }),
      .vjp = VjpOf<A>([](const A&, Vjp& g) {
        if (g.needs(0)) g.give(0, sum_to(g.cotangent(0), g.in(0)));
      }),
      .cost = [](const A&, CallTypes in, CallTypes out) { return elementwise_cost(0, in, out); },
      .labels = "*",
      .fusion = Fusion::Broadcast,
      .onnx = Onnx{"Expand", 13},
      .samples =
          [](Samples& s) {
            s.add(A{{2, 3, 5}}, {{{3, 1}}});
            s.add(A{{4097}}, {{{}}});
            s.add(A{{3, 17}}, {{{17}}});
            s.add(A{{0, 3}}, {{{1, 3}}});
            s.add(A{{3, 3}}, {{{3, 3}}});
          },
      .only_moves = true,
  });
}

OpDef element_count_op() {
  using A = ElementCountAttrs;
  return define<A>({
      .name = "element_count",
      .doc = "Product of the actual extents along axes, as a scalar.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(1);
            c.axes(0, a.axes);
            c.out(a.dtype, Shape{});
          },
      .numeric = Numeric::Exact,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const auto& shape = c.in[0].shape;
        double n = 1;
        if (a.axes.empty())
          for (std::int64_t e : shape) n *= static_cast<double>(e);
        for (std::int64_t axis : a.axes)
          n *= static_cast<double>(shape[normal_axis(axis, c.in[0].rank())]);
        c.out[0][0] = n;
      }),
      .vjp = NoGradient{},
      .cost =
          [](const A&, CallTypes, CallTypes) {
            return Cost{0, 4};
          },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{{}, DType::F32}, {{{3, 17}}});
            s.add(A{{-1}, DType::F32}, {{{3, 17}}});
            s.add(A{{0}, DType::I32}, {{{0, 4}}});
            s.add(A{{-1}, DType::F32}, {{{1, 4097}}});
          },
  });
}

// Until the end of the block.
class LentLengths {
 public:
  explicit LentLengths(const Tensor& like) : emitter_(emitter_of(like)) {
    emitter_.lend_lengths(&like);
  }
  ~LentLengths() { emitter_.lend_lengths(nullptr); }
  LentLengths(const LentLengths&) = delete;
  LentLengths& operator=(const LentLengths&) = delete;

 private:
  Emitter& emitter_;
};

}  // namespace

std::vector<OpDef> broadcast_ops() { return {broadcast_op(), element_count_op()}; }

Tensor broadcast_to(Operand x, const Shape& shape) {
  if (x.tensor.shape() == shape) return x.tensor;
  return emit_one("broadcast", to_attrs(BroadcastAttrs{shape}), {x});
}
Tensor broadcast_like(Operand x, const Tensor& like) {
  const LentLengths lent(like);  // a single number has none of its own
  return broadcast_to(x, like.shape());
}
Tensor element_count(Operand x, const Ints& axes, DType dtype) {
  return emit_one("element_count", to_attrs(ElementCountAttrs{axes, dtype}), {x});
}

}  // namespace aloft
