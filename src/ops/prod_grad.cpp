#include "ops/prod_grad.h"

#include <cmath>

#include "ops/op.h"
#include "ops/reduce.h"

namespace aloft {
namespace {

using A = ProdGradAttrs;

void infer(const A& a, Infer& c) {
  c.need_count(1, 1 + kMostProdDirections);
  c.need_float(0);
  c.axes(0, a.axes);
  for (int i = 1; i < c.count(); ++i) {
    c.need_same_dtype(0, i);
    c.need_same_shape(0, i);
  }
  c.out(c.in(0));
}

// A product of some elements, derived along each set of directions (a set of bits).
using Products = std::vector<double>;

// p times element i: each direction may take the element's place. From the largest set down, so
// that subsets are still those without the element.
void multiply(std::span<const HostArray> in, std::int64_t i, Products& p) {
  for (std::size_t s = p.size(); s-- > 0;) {
    double next = p[s] * in[0][i];
    for (std::size_t k = 1; k < in.size(); ++k)
      if (const std::size_t bit = std::size_t{1} << (k - 1); s & bit) next += p[s ^ bit] * in[k][i];
    p[s] = next;
  }
}

// For each member the product of those before it times that of those behind it.
void one_group(std::span<const HostArray> in, const std::vector<std::int64_t>& members,
               HostArray& y) {
  Products one(std::size_t{1} << (in.size() - 1), 0.0);
  one[0] = 1;
  std::vector<Products> behind(members.size() + 1, one);
  for (std::size_t r = members.size(); r-- > 0;) {
    behind[r] = behind[r + 1];
    multiply(in, members[r], behind[r]);
  }
  Products before = one;
  for (std::size_t r = 0; r < members.size(); ++r) {
    const Products& rest = behind[r + 1];
    double sum = before[0] * rest.back();
    for (std::size_t s = 1; s < rest.size(); ++s) sum += before[s] * rest[rest.size() - 1 - s];
    y[members[r]] = sum;
    multiply(in, members[r], before);
  }
}

void evaluate(const A& a, EvalCall& c) {
  const HostArray& x = c.in[0];
  std::vector<std::int64_t> kept = x.shape;
  for (int axis = 0; axis < x.rank(); ++axis)
    if (a.axes.empty()) kept[axis] = 1;
  for (const std::int64_t axis : a.axes) kept[normal_axis(axis, x.rank())] = 1;
  const BroadcastIndex at(kept, x.shape);
  std::vector<std::vector<std::int64_t>> groups(product(kept, 0, x.rank()));
  for (std::int64_t i = 0; i < x.numel(); ++i) groups[at(i)].push_back(i);
  for (const std::vector<std::int64_t>& members : groups) one_group(c.in, members, c.out[0]);
}

// A product is linear in each factor, so its derivatives along directions do not depend on their
// order: the gradient by any operand is the same op, with the cotangent as a direction.
void vjp(const A& a, Vjp& g) {
  for (int i = 0; i < g.count(); ++i) {
    if (!g.needs(i)) continue;
    std::vector<Tensor> directions;
    for (int k = 1; k < g.count(); ++k)
      if (k != i) directions.push_back(g.in(k));
    directions.push_back(g.cotangent(0));
    g.give(i, prod_grad(g.in(0), a.axes, directions));
  }
}

void samples(Samples& s) {
  // Few integers: rows without a zero, with one, with several.
  const auto add = [&](Ints axes, const Shape& shape, int directions) {
    std::vector<SampleInput> in = {{shape, Fill::Ids, 0, 4}};
    for (int k = 0; k < directions; ++k) in.push_back({shape, Fill::Uniform, -1, 1});
    s.add(A{std::move(axes)}, std::move(in));
  };
  for (int directions : {0, 1, 2}) {
    add({-1}, {5, 3}, directions);
    add({}, {2, 3}, directions);
    add({0, 2}, {2, 3, 2}, directions);
  }
  add({0}, {4, 3}, 0);
  add({1}, {2, 3, 17}, 1);
  add({-1}, {0, 3}, 1);
  add({-1}, {3, 0}, 1);
  add({0}, {1, 1}, 0);
  s.add(A{{0}}, {{{4097, 2}, Fill::Uniform, 0.999, 1.001}});
  s.add(A{{-1}}, {{{2, 4097}, Fill::Uniform, 0.999, 1.001}});
  s.add(A{{-1}}, {{{8, 16}, Fill::Special}}, "special values").gradient = false;
}

}  // namespace

std::vector<OpDef> prod_grad_ops() {
  return {define<A>({
      .name = "prod_grad",
      .doc = "For each element the product of the others over axes; with directions, the "
             "derivative of that along them.",
      .infer = infer,
      .numeric = Numeric::Widen,
      .meaning = Eval<A>(evaluate),
      .vjp = VjpOf<A>(vjp),
      .cost =
          [](const A&, CallTypes in, CallTypes out) {
            const auto directions = static_cast<double>(in.size()) - 1;
            return elementwise_cost(3 * std::pow(2.0, directions) * (1 + directions), in, out);
          },
      .labels = "*",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
  })};
}

Tensor prod_grad(Operand x, const Ints& axes, const std::vector<Tensor>& directions) {
  std::vector<Operand> in = {x};
  in.insert(in.end(), directions.begin(), directions.end());
  return emit_op("prod_grad", to_attrs(A{axes}), in)[0];
}

}  // namespace aloft
