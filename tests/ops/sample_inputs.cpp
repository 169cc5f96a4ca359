#include "ops/sample_inputs.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "scalar/philox.h"

namespace aloft::testing {
namespace {

double special(std::uint64_t i, double normal) {
  const double inf = std::numeric_limits<double>::infinity();
  const double list[] = {
      inf,      -inf, std::numeric_limits<double>::quiet_NaN(), 0.0, -0.0, 1e-40, -6e-8, 3e38,
      -65504.0, 1.0};
  return i % 3 == 0 ? list[i / 3 % 10] : normal;
}

// Where the largest numbers meet, whether a sum ends in inf or NaN is a matter of its order.
double special_in_range(std::uint64_t i, double normal) {
  const double inf = std::numeric_limits<double>::infinity();
  const double list[] = {inf,  -0.0,  1e-40, -inf, 200, std::numeric_limits<double>::quiet_NaN(),
                         -100, -6e-8, 0.0};
  return i % 11 == 3 ? list[i / 11 % std::size(list)] : normal;
}

// Over the whole range of the type, the values where arithmetic in double goes wrong among them.
HostNumber whole_number(DType t, std::uint64_t i, const scalar::RandomKey& key) {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::int64_t bound = t == DType::I64 ? Limits::max() : INT32_MAX;
  const std::int64_t list[] = {bound,
                               -bound - 1,
                               (std::int64_t{1} << 53) + 1,
                               std::int64_t{1} << 53,
                               0,
                               -1,
                               1,
                               2,
                               bound - 1,
                               127,
                               -128,
                               255,
                               3,
                               -7};
  if (i % 2 == 0) return wrapped(list[i / 2 % std::size(list)], t);
  const auto word = [&](std::uint64_t j) { return std::uint64_t{scalar::random_bits(key, j)}; };
  return wrapped(static_cast<std::int64_t>(word(2 * i) << 32 | (word(2 * i + 1) & 0xffffffffu)), t);
}

void fill(HostArray& a, const SampleInput& spec, const scalar::RandomKey& key) {
  const auto n = static_cast<std::uint64_t>(a.numel());
  std::vector<std::uint64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  if (spec.fill == Fill::Distinct)
    for (std::uint64_t i = n; i > 1; --i)
      std::swap(order[i - 1], order[scalar::random_bits(key, i) % i]);
  for (std::uint64_t i = 0; i < n; ++i) {
    const double u = scalar::uniform(key, i), normal = scalar::normal(key, i);
    HostNumber& v = a.values[i];
    switch (spec.fill) {
      case Fill::Normal:
        v = normal * spec.scale;
        break;
      case Fill::Uniform:
        v = spec.lo + (spec.hi - spec.lo) * u;
        break;
      case Fill::Ids:
        v = std::floor(spec.lo + (spec.hi - spec.lo) * u);
        break;
      case Fill::Distinct:
        v = spec.lo +
            (spec.hi - spec.lo) * (static_cast<double>(order[i]) + 0.5) / static_cast<double>(n);
        break;
      case Fill::Special:
        v = special(i, normal);
        break;
      case Fill::InRange:
        v = special_in_range(i, normal);
        break;
      case Fill::Constant:
        v = spec.lo;
        break;
      case Fill::Whole:
        v = whole_number(a.dtype, i, key);
        break;
    }
  }
}

}  // namespace

std::vector<HostArray> make_inputs(const Sample& sample, DType dtype, std::uint64_t seed) {
  std::vector<HostArray> in;
  for (std::size_t i = 0; i < sample.in.size(); ++i) {
    const SampleInput& spec = sample.in[i];
    const DType t = is_float(spec.dtype) && !spec.fixed_dtype ? dtype : spec.dtype;
    HostArray& a = in.emplace_back(HostArray::zeros(t, spec.shape.max_extents()));
    fill(a, spec, scalar::RandomKey{seed, 0, 0, i});
    round_to_dtype(a);
  }
  return in;
}

std::int64_t Draw::operator()(std::int64_t below) {
  return scalar::random_bits({5, 0, 0, 0}, n++) % below;
}

TensorType random_type(Draw& draw) {
  const DType usual[] = {DType::F32, DType::F32, DType::BF16, DType::I32};
  TensorType t;
  t.dtype = draw(4) != 0 ? usual[draw(4)] : kAllDTypes[draw(std::size(kAllDTypes))];
  const std::int64_t rank = draw(5);
  for (std::int64_t d = 0; d < rank; ++d) t.shape.dims().push_back(draw(4));
  return t;
}

std::vector<Sample> samples_of(const OpDef& op) {
  Samples s;
  op.samples(s);
  return s.all();
}

bool sums_products(const OpDef& op) {
  static const std::set<std::string> ops = {"attention",
                                            "attention_cached",
                                            "attention_grad",
                                            "attention_qkv",
                                            "attention_qkv_grad",
                                            "batch_norm",
                                            "batch_norm_grad",
                                            "conv1d",
                                            "conv2d",
                                            "conv2d_grad_input",
                                            "conv2d_grad_weight",
                                            "conv_transpose2d",
                                            "layer_norm_grad",
                                            "layer_norm_grad_add",
                                            "linear",
                                            "matmul",
                                            "norm",
                                            "rms_norm_grad",
                                            "rms_norm_grad_add",
                                            "rotary",
                                            "softmax_grad"};
  return ops.contains(op.name.str());
}

bool has_slope(const OpDef& op) {
  static const std::set<std::string> steps = {"ceil", "floor", "round", "sign"};
  return op.gradient != OpDef::Gradient::None && !steps.contains(op.name.str());
}

std::vector<Sample> special_samples_of(const OpDef& op) {
  std::vector<Sample> special;
  if (sums_products(op)) return special;
  for (Sample& sample : samples_of(op)) {
    bool differs = false;
    for (SampleInput& in : sample.in)
      if (is_float(in.dtype) && in.fill != Fill::Special) in.fill = Fill::Special, differs = true;
    if (differs) special.push_back(std::move(sample));
  }
  return special;
}

std::string case_text(const OpDef& op, const Sample& sample, const std::vector<HostArray>& in) {
  std::string s = op.name.str() + " " + sample.attrs.str() + " (";
  for (std::size_t i = 0; i < in.size(); ++i)
    s += (i ? ", " : "") + TensorType{in[i].dtype, Shape::of(in[i].shape)}.str();
  s += ")";
  return sample.note.empty() ? s : s + " # " + sample.note;
}

}  // namespace aloft::testing
