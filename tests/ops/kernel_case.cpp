#include "ops/kernel_case.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/evaluate.h"
#include "ops/sample_inputs.h"

namespace aloft::testing {
namespace {

const TensorType* largest_operand(const CallSpec& call) {
  const auto by_size = [](const TensorType& a, const TensorType& b) {
    return a.shape.max_numel() < b.shape.max_numel();
  };
  const auto it = std::max_element(call.in.begin(), call.in.end(), by_size);
  return it == call.in.end() ? nullptr : &*it;
}

std::int64_t of_products(const std::vector<Product>& products, const TensorType& out) {
  std::int64_t most = 1;
  for (const Product& p : products) {
    most = std::max(most, p.k);
    if (out.shape.rank() == 0) most = std::max({most, p.m, p.n});  // and all elements of it
  }
  return most + 1;  // a bias
}

// Extents along the attributes `axis` and `axes` of x; 1 where there are none.
std::int64_t along_axes(const Attrs& attrs, const Shape& x) {
  Ints axes;
  if (const AttrValue* v = attrs.find("axis"); v && std::holds_alternative<std::int64_t>(*v))
    axes = {std::get<std::int64_t>(*v)};
  if (const AttrValue* v = attrs.find("axes"); v && std::holds_alternative<Ints>(*v)) {
    axes = std::get<Ints>(*v);
    if (axes.empty()) return x.max_numel();
  }
  std::int64_t extents = 1;
  for (const std::int64_t axis : axes) extents *= x[normal_axis(axis, x.rank())].max();
  return extents;
}

// What moves elements sums those of a window, or those that have one index.
std::int64_t of_moved(const CallSpec& call) {
  if (const AttrValue* kernel = call.attrs.find("kernel")) {
    double window = 1;
    for (const std::int64_t extent : std::get<Ints>(*kernel)) window *= static_cast<double>(extent);
    const auto all = static_cast<double>(largest_operand(call)->shape.max_numel());
    return static_cast<std::int64_t>(std::min(window, all));
  }
  for (const TensorType& t : call.in)
    if (is_integer(t.dtype)) return 1 + t.shape.max_numel();
  return 1;
}

// Of the reductions within a call. Where a result is as large as its operands, statistics that the
// op takes or gives show over how many elements they are made.
std::int64_t of_statistics(const OpDef& op, const CallSpec& call, const TensorType& out) {
  const TensorType* largest = largest_operand(call);
  if (largest == nullptr) return 2;
  const std::int64_t all = largest->shape.max_numel();
  const auto over = [&](const TensorType& t) {
    const std::int64_t n = t.shape.max_numel();
    return n == 0 ? 1 : (all + n - 1) / n;
  };
  std::int64_t most = std::max<std::int64_t>(2, along_axes(call.attrs, largest->shape));
  if (out.shape.max_numel() < all) return std::max(most, over(out));
  if (op.fusion != Fusion::RowReduce && !op.is_norm) return most;
  for (const auto* list : {&call.in, &call.out})
    for (const TensorType& t : *list)
      if (op.is_norm || t.shape.rank() > 0 || is_integer(t.dtype)) most = std::max(most, over(t));
  return most;
}

}  // namespace

double largest_magnitude(const HostArray& a, double scale) {
  if (!is_float(a.dtype)) return scale;
  for (const double v : a.values)
    if (std::isfinite(v) && std::abs(v) < 1e30) scale = std::max(scale, std::abs(v));
  return scale;
}

std::int64_t terms_of(const OpDef& op, const CallSpec& call, std::size_t out) {
  if (op.fusion == Fusion::View || op.fusion == Fusion::Broadcast) return 1;
  if (op.fusion == Fusion::Elementwise) return op.body ? 16 : 1;  // terms of the body may cancel
  if (op.products) return of_products(op.products(call.attrs, call.in, call.out), call.out[out]);
  const bool may_copy = op.numeric == Numeric::Follow || op.numeric == Numeric::Exact;
  if (may_copy && op.cost(call.attrs, call.in, call.out).flops == 0) return 1;
  if (op.numeric == Numeric::Follow) return of_moved(call);
  return of_statistics(op, call, call.out[out]);
}

std::optional<Case> make_case(const OpDef& op, const Sample& sample, DType dtype) {
  Case c{op, sample, make_inputs(sample, dtype, 7), {}, {}};
  c.dtype = dtype;
  c.call.op = op.name;
  c.call.attrs = sample.attrs;
  for (const HostArray& a : c.in) c.call.in.push_back({a.dtype, Shape::of(a.shape)});
  try {
    c.call.out = infer_types(op, sample.attrs, c.call.in, {});
  } catch (const UserError&) {
    return std::nullopt;
  }
  c.want = evaluate_op(op, sample.attrs, c.in,
                       sample.rounds_between_ops ? EvalRounding::ToDType : EvalRounding::None);
  for (std::size_t o = 0; o < c.want.size(); ++o) c.lengths.push_back(terms_of(op, c.call, o));
  for (const auto* list : {&c.in, &c.want})
    for (const HostArray& a : *list) c.scale = largest_magnitude(a, c.scale);
  return c;
}

}  // namespace aloft::testing
