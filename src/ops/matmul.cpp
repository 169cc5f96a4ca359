#include "ops/matmul.h"

#include "ops/binary.h"
#include "ops/op.h"
#include "ops/reshape.h"

namespace aloft {
namespace {

// Shape without its last two axes.
Shape leading(const Shape& s) { return Shape(std::vector<Dim>(s.begin(), s.end() - 2)); }

Dim rows(const Shape& s, bool t) { return t ? s[-1] : s[-2]; }
Dim columns(const Shape& s, bool t) { return t ? s[-2] : s[-1]; }

void infer(const MatmulAttrs& a, Infer& c) {
  c.need_count(2);
  c.need_rank(0, 2);
  c.need_rank(1, 2);
  c.need_float(0);
  c.need_same_dtype(0, 1);
  c.check(a.same_out || is_float(a.out), "the result would be " + std::string(name_of(a.out)),
          "a floating-point type", "cast the result");
  const Dim ka = columns(c.shape(0), a.transpose_a), kb = rows(c.shape(1), a.transpose_b);
  if (!(ka == kb)) {
    const bool other = ka == columns(c.shape(1), a.transpose_b);
    c.fail("the inner dimensions do not agree",
           "a's columns == b's rows, got " + ka.str() + " and " + kb.str(),
           other ? (a.transpose_b ? "transpose_b = false" : "transpose_b = true") : "");
  }
  Shape out = c.broadcast(leading(c.shape(0)), leading(c.shape(1)));
  out.dims().push_back(rows(c.shape(0), a.transpose_a));
  out.dims().push_back(columns(c.shape(1), a.transpose_b));
  c.out(a.same_out ? c.dtype(0) : a.out, out);
}

void evaluate(const MatmulAttrs& a, EvalCall& c) {
  const HostArray &x = c.in[0], &y = c.in[1];
  HostArray& z = c.out[0];
  const auto rank = z.rank();
  const std::int64_t m = z.shape[rank - 2], n = z.shape[rank - 1];
  const std::int64_t k = x.shape[x.rank() - (a.transpose_a ? 2 : 1)];
  const auto lead = [](const HostArray& h) {
    return std::vector<std::int64_t>(h.shape.begin(), h.shape.end() - 2);
  };
  const BroadcastIndex ax(lead(x), lead(z)), by(lead(y), lead(z));
  const std::int64_t batch = product(z.shape, 0, rank - 2);
  for (std::int64_t b = 0; b < batch; ++b) {
    const HostNumber* px = x.values.data() + ax(b) * m * k;
    const HostNumber* py = y.values.data() + by(b) * k * n;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum +=
              px[a.transpose_a ? l * m + i : i * k + l] * py[a.transpose_b ? j * k + l : l * n + j];
        z[(b * m + i) * n + j] = sum;
      }
  }
}

// [..., r, c] -> [prod(...) * r, c], so that a product with one shared matrix sums over rows.
Tensor fold(const Tensor& t) { return t.rank() == 2 ? t : flatten(t, 0, t.rank() - 2); }

// C = A B:  dA = dC B^T, dB = A^T dC, with the transposes of the forward product folded in.
void vjp(const MatmulAttrs& at, Vjp& g) {
  const Tensor &a = g.in(0), &b = g.in(1), &dy = g.cotangent(0);
  if (g.needs(0)) {
    const Tensor da = at.transpose_a ? matmul(b, dy, at.transpose_b, true)
                                     : matmul(dy, b, false, !at.transpose_b);
    g.give(0, sum_to(da, a));
  }
  if (!g.needs(1)) return;
  if (b.rank() == 2 && a.rank() > 2 && !at.transpose_a) {
    const Tensor fa = fold(a), fd = fold(dy);
    g.give(1, at.transpose_b ? matmul(fd, fa, true, false) : matmul(fa, fd, true, false));
    return;
  }
  const Tensor db =
      at.transpose_b ? matmul(dy, a, true, at.transpose_a) : matmul(a, dy, !at.transpose_a, false);
  g.give(1, sum_to(db, b));
}

std::vector<Product> products(const MatmulAttrs& a, CallTypes in, CallTypes out) {
  const Shape& z = out[0].shape;
  Product p{1,
            z[-2].max(),
            z[-1].max(),
            columns(in[0].shape, a.transpose_a).max(),
            a.transpose_a,
            a.transpose_b};
  const std::int64_t lead = leading(z).max_numel();
  if (in[1].shape.rank() == 2 && !a.transpose_a)
    p.m *= lead;  // one shared right-hand side: the leading axes are rows
  else
    p.batch = lead;
  return {p};
}

void samples(Samples& s) {
  const auto one = [&](bool ta, bool tb, Shape a, Shape b) {
    s.add(MatmulAttrs{ta, tb}, {{std::move(a)}, {std::move(b)}});
  };
  one(false, false, {3, 17}, {17, 5});
  one(true, false, {17, 3}, {17, 5});
  one(false, true, {3, 17}, {5, 17});
  one(true, true, {17, 3}, {5, 17});
  one(false, false, {2, 3, 4}, {4, 5});
  one(false, true, {2, 3, 4}, {5, 4});
  one(false, false, {2, 1, 3, 4}, {2, 4, 5});
  one(true, true, {2, 4, 3}, {2, 5, 4});
  one(false, false, {1, 1}, {1, 1});
  one(false, false, {3, 0}, {0, 5});
  one(false, false, {0, 3}, {3, 5});
  one(false, false, {2, 4097}, {4097, 3});
  one(false, false, {4097, 3}, {3, 2});
  one(false, false, {2, 3}, {3, 4097});
  one(false, false, {33, 64}, {64, 70});
  s.add(MatmulAttrs{}, {{{4, 8}, Fill::Special}, {{8, 3}}}, "special values").gradient = false;
  s.add_special(MatmulAttrs{}, {{{17, 40}}, {{40, 33}}}, {0, 1});
}

}  // namespace

std::vector<OpDef> matmul_ops() {
  using A = MatmulAttrs;
  return {define<A>({
      .name = "matmul",
      .doc = "Matrix product over the last two axes; leading axes broadcast. Sums in fp32 or "
             "wider. A bf16 matrix unit may flush denormals to zero.",
      .infer = infer,
      .numeric = Numeric::Narrow,
      .meaning = Eval<A>(evaluate),
      .vjp = VjpOf<A>(vjp),
      .cost =
          [](const A& a, CallTypes in, CallTypes out) {
            Cost cost = elementwise_cost(0, in, out);
            cost.flops = 2.0 * static_cast<double>(out[0].shape.max_numel()) *
                         static_cast<double>(columns(in[0].shape, a.transpose_a).max());
            return cost;
          },
      .labels = "... m k, ... k n -> ... m n",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"MatMul", 13},
      .samples = samples,
      .products = products,
      .product_forms = kFormsOfF32,
  })};
}

Tensor matmul(Operand a, Operand b, bool transpose_a, bool transpose_b) {
  return emit_one("matmul", to_attrs(MatmulAttrs{transpose_a, transpose_b}), {a, b});
}

}  // namespace aloft
