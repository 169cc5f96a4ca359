// The kernels of attention and its gradient against the formulas in double, at lengths that cross
// the blocks and spans in which they work, and at widths that do not fill whole tiles; with windows
// and caps; and the kernels of decoding beside those of whole sequences.
#include "ops/attention.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>

#include "backends/cpu/cpu_backend.h"
#include "backends/cpu/float_buffer.h"
#include "runtime/backend.h"
#include "types/tolerance.h"

namespace aloft {
namespace {

using test::FloatBuffer;
using test::random_values;
using Values = std::vector<double>;

struct Case {
  std::int64_t batch, queries, keys, heads, kv, width;
  bool causal;
  std::int64_t window = 0;
  double cap = 0;
  AttentionAttrs attrs() const { return {causal, 0, window, cap}; }
};
// Lengths around blocks of 32 and 64 and spans of 256; shared heads; widths of part of a tile.
constexpr Case kCases[] = {
    {1, 64, 64, 2, 2, 64, true},   {2, 33, 33, 2, 1, 32, true},    {1, 256, 256, 1, 1, 64, true},
    {1, 257, 257, 2, 2, 40, true}, {1, 300, 300, 4, 2, 8, true},   {1, 70, 333, 2, 1, 64, true},
    {1, 600, 600, 1, 1, 24, true}, {1, 37, 531, 1, 1, 72, false},  {1, 290, 41, 2, 2, 64, false},
    {1, 20, 20, 3, 3, 96, true},   {1, 1100, 1100, 1, 1, 16, true}};
// Windows of one key, of less than a vector, of a block and its neighbours, of more; longer than
// the keys; with keys before the first query. Caps that bend much and little.
constexpr Case kBent[] = {
    {1, 200, 200, 2, 1, 16, true, 1},      {1, 200, 200, 1, 1, 24, true, 7},
    {2, 150, 150, 2, 2, 16, true, 63},     {1, 300, 300, 2, 1, 40, true, 64},
    {1, 300, 300, 1, 1, 16, true, 65},     {1, 513, 513, 1, 1, 16, true, 100},
    {1, 70, 333, 2, 1, 64, true, 90},      {1, 70, 333, 1, 1, 16, true, 300},
    {1, 33, 33, 1, 1, 16, true, 40},       {1, 70, 600, 1, 1, 16, true, 90},
    {1, 130, 130, 2, 1, 16, true, 0, 0.5}, {1, 70, 133, 2, 2, 24, false, 0, 3},
    {2, 200, 200, 2, 1, 16, true, 50, 2}};

struct Reference {
  Values o, lse, dq, dk, dv;
};

Reference reference(const Case& c, const Values& q, const Values& k, const Values& v,
                    const Values& d_o, const Values& dlse) {
  const double scale = 1 / std::sqrt(static_cast<double>(c.width));
  const auto row = [&](std::int64_t b, std::int64_t t, std::int64_t length, std::int64_t h,
                       std::int64_t heads) { return ((b * length + t) * heads + h) * c.width; };
  const auto dot = [&](const Values& x, std::int64_t i, const Values& y, std::int64_t j) {
    double sum = 0;
    for (std::int64_t d = 0; d < c.width; ++d) sum += x[i + d] * y[j + d];
    return sum;
  };
  Reference r{Values(q.size()), Values(c.batch * c.heads * c.queries), Values(q.size()),
              Values(k.size()), Values(k.size())};
  for (std::int64_t b = 0; b < c.batch; ++b)
    for (std::int64_t h = 0; h < c.heads; ++h)
      for (std::int64_t t = 0; t < c.queries; ++t) {
        const std::int64_t kv = h / (c.heads / c.kv), at = row(b, t, c.queries, h, c.heads),
                           seen = c.causal ? c.keys - c.queries + t + 1 : c.keys;
        const auto key = [&](std::int64_t s) { return row(b, s, c.keys, kv, c.kv); };
        const std::int64_t from = c.window > 0 ? std::max<std::int64_t>(0, seen - c.window) : 0;
        Values p(seen), slope(seen, 1);
        double sum = 0;
        for (std::int64_t s = from; s < seen; ++s) {
          double score = scale * dot(q, at, k, key(s));
          if (c.cap > 0) {
            const double bent = std::tanh(score / c.cap);
            score = c.cap * bent, slope[s] = 1 - bent * bent;
          }
          sum += p[s] = std::exp(score);
        }
        const std::int64_t index = (b * c.heads + h) * c.queries + t;
        r.lse[index] = std::log(sum);
        for (std::int64_t s = 0; s < seen; ++s)
          for (std::int64_t d = 0; d < c.width; ++d)
            r.o[at + d] += (p[s] /= d ? 1 : sum) * v[key(s) + d];
        const double delta = dot(d_o, at, r.o, at) - (dlse.empty() ? 0 : dlse[index]);
        for (std::int64_t s = 0; s < seen; ++s) {
          const double ds = p[s] * (dot(d_o, at, v, key(s)) - delta) * scale * slope[s];
          for (std::int64_t d = 0; d < c.width; ++d) {
            r.dv[key(s) + d] += p[s] * d_o[at + d];
            r.dk[key(s) + d] += ds * q[at + d];
            r.dq[at + d] += ds * k[key(s) + d];
          }
        }
      }
  return r;
}

using Buffers = std::vector<std::unique_ptr<FloatBuffer>>;

void run(const char* op, const Attrs& attrs, const std::vector<TensorType>& in_types,
         const std::vector<TensorType>& out_types, const std::vector<void*>& ins,
         const Buffers& out) {
  CallSpec call{op, attrs, in_types, out_types, omp_get_max_threads()};
  const Choice choice = choose_kernel(cpu_backend(), call);
  ASSERT_NE(choice.kernel, nullptr);
  const auto prepared = choice.kernel->prepare(call);
  // Poisoned with NaN: what is not written must not be read.
  FloatBuffer scratch(DType::F32, static_cast<std::int64_t>(prepared->scratch_bytes() + 3) / 4);
  std::vector<void*> outs;
  for (const auto& b : out) outs.push_back(b->data());
  prepared->run({ins, outs, scratch.data(), {}});
  scratch.expect_guards();
  for (const auto& b : out) b->expect_guards();
}

void run(const char* op, const AttentionAttrs& attrs, const std::vector<TensorType>& in_types,
         const std::vector<TensorType>& out_types, const Buffers& in, const Buffers& out) {
  std::vector<void*> ins;
  for (const auto& b : in) ins.push_back(b->data());
  run(op, to_attrs(attrs), in_types, out_types, ins, out);
}

void expect_near(const char* what, FloatBuffer& got, const Values& want, double tolerance) {
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::abs(want[i]));
    const double e = std::abs(got.get(static_cast<std::int64_t>(i)) - want[i]);
    error = e >= error || std::isnan(e) ? e : error;  // a NaN stays
  }
  EXPECT_LE(error, tolerance * largest) << what;
}

// All results of both directions as bytes.
std::vector<std::vector<unsigned char>> check(const Case& c, DType type, bool with_dlse) {
  const TensorType q{type, {c.batch, c.queries, c.heads, c.width}},
      k{type, {c.batch, c.keys, c.kv, c.width}}, lse{DType::F32, {c.batch, c.heads, c.queries}};
  const auto count = [](const TensorType& t) { return t.shape.max_numel(); };
  const Values qs = random_values(count(q), type, 1), ks = random_values(count(k), type, 2),
               vs = random_values(count(k), type, 3), ds = random_values(count(q), type, 4),
               ls = with_dlse ? random_values(count(lse), DType::F32, 5) : Values();
  const Reference want = reference(c, qs, ks, vs, ds, ls);
  const auto filled = [](DType t, const Values& v) { return std::make_unique<FloatBuffer>(t, v); };
  const auto empty = [&](const TensorType& t) {
    return std::make_unique<FloatBuffer>(t.dtype, count(t));
  };
  Buffers in, out, grad_in, grads;
  for (const auto& v : {qs, ks, vs}) in.push_back(filled(type, v));
  out.push_back(empty(q)), out.push_back(empty(lse));
  run("attention", c.attrs(), {q, k, k}, {q, lse}, in, out);
  const Tolerance sums = tolerance_of(DType::F32, std::max(c.queries, c.keys));
  const double wide = sums.relative + sums.absolute;
  // To a low type the weights, their gradients and the results are rounded.
  const double tolerance = type == DType::F32 ? wide : wide + chain_tolerance(type, 3);
  expect_near("o", *out[0], want.o, tolerance);
  expect_near("lse", *out[1], want.lse, wide);
  std::vector<std::vector<unsigned char>> bytes{out[0]->copy(), out[1]->copy()};
  for (auto* b : {&in[0], &in[1], &in[2], &out[0], &out[1]}) grad_in.push_back(std::move(*b));
  grad_in.push_back(filled(type, ds));
  std::vector<TensorType> types{q, k, k, q, lse, q};
  if (with_dlse) grad_in.push_back(filled(DType::F32, ls)), types.push_back(lse);
  for (const auto& t : {q, k, k}) grads.push_back(empty(t));
  run("attention_grad", c.attrs(), types, {q, k, k}, grad_in, grads);
  expect_near("dq", *grads[0], want.dq, tolerance);
  expect_near("dk", *grads[1], want.dk, tolerance);
  expect_near("dv", *grads[2], want.dv, tolerance);
  for (const auto& g : grads) bytes.push_back(g->copy());
  return bytes;
}

std::string name_of(const Case& c, DType type) {
  return std::string(name_of(type)) + " " + std::to_string(c.queries) + " x " +
         std::to_string(c.keys) + " width " + std::to_string(c.width) + " window " +
         std::to_string(c.window) + " cap " + std::to_string(c.cap);
}

TEST(CpuAttention, BothDirectionsAreTheFormulas) {
  for (const DType type : {DType::F32, DType::BF16, DType::F16})
    for (const Case& c : kCases)
      for (const bool with_dlse : {false, true}) {
        SCOPED_TRACE(name_of(c, type));
        check(c, type, with_dlse);
      }
}

TEST(CpuAttention, BothDirectionsOfWindowsAndCapsAreTheFormulas) {
  for (const DType type : {DType::F32, DType::BF16, DType::F16})
    for (const Case& c : kBent) {
      SCOPED_TRACE(name_of(c, type));
      check(c, type, c.queries % 2 == 0);
    }
}

// The last queries of a sequence, over a cache with room for more, whose rest is NaN.
TEST(CpuAttention, DecodingIsTheEndOfTheWhole) {
  constexpr std::int64_t kRoom = 40;
  for (const DType type : {DType::F32, DType::BF16, DType::F16})
    for (const Case& c : kBent)
      for (const std::int64_t few : {1, 3, 12}) {
        if (!c.causal || c.queries != c.keys || c.batch > 1) continue;
        SCOPED_TRACE(name_of(c, type) + " last " + std::to_string(few));
        const TensorType cache{type, {1, c.keys + kRoom, c.kv, c.width}},
            q{type, {1, few, c.heads, c.width}};
        const std::int64_t all = c.queries * c.heads * c.width, row = c.heads * c.width;
        const Values qs = random_values(all, type, 1),
                     ks = random_values(c.keys * c.kv * c.width, type, 2),
                     vs = random_values(c.keys * c.kv * c.width, type, 3);
        const Values want = reference(c, qs, ks, vs, Values(qs.size()), {}).o;
        const auto with_room = [&](Values v) {
          v.resize(static_cast<std::size_t>(cache.shape.max_numel()), std::nan(""));
          return v;
        };
        Buffers in, out;
        in.push_back(std::make_unique<FloatBuffer>(type, Values(qs.end() - few * row, qs.end())));
        for (const Values& v : {ks, vs})
          in.push_back(std::make_unique<FloatBuffer>(type, with_room(v)));
        out.push_back(std::make_unique<FloatBuffer>(type, few * row));
        auto length = static_cast<std::int32_t>(c.keys - few);
        run("attention_cached", to_attrs(AttentionCachedAttrs{0, c.window, c.cap}),
            {q, cache, cache, {DType::I32, Shape{}}}, {q},
            {in[0]->data(), in[1]->data(), in[2]->data(), &length}, out);
        const Tolerance sums = tolerance_of(DType::F32, c.keys);
        expect_near(
            "o", *out[0], Values(want.end() - few * row, want.end()),
            sums.relative + sums.absolute + (type == DType::F32 ? 0 : chain_tolerance(type, 3)));
      }
}

// Scores whose products with the scale are rounded by up to more than 1: the largest differs from
// the others by far more, so that each query's weights are 1 and 0. All values are 1.
void check_far(DType type, double size, std::int64_t width) {
  constexpr std::int64_t kRows = 70;  // more than one block
  const TensorType q{type, {1, kRows, 1, width}}, lse{DType::F32, {1, 1, kRows}};
  const std::int64_t count = kRows * width;
  Values values(count), ones(count, 1);
  for (std::int64_t i = 0; i < count; ++i) {
    const double sign = i / width % 2 == 0 ? 1 : -1;
    values[i] = sign * size * (1 + 0.001 * static_cast<double>((i * 7919) % 997));
  }
  const auto filled = [&](const Values& v) { return std::make_unique<FloatBuffer>(type, v); };
  const auto empty = [&] { return std::make_unique<FloatBuffer>(type, count); };
  Buffers in, out, grads;
  for (const auto* v : {&values, &values, &ones}) in.push_back(filled(*v));
  out.push_back(empty()), out.push_back(std::make_unique<FloatBuffer>(DType::F32, kRows));
  run("attention", {}, {q, q, q}, {q, lse}, in, out);
  const auto finite = [&](FloatBuffer& b, const char* what) {
    std::int64_t not_finite = 0;
    for (std::int64_t i = 0; i < count; ++i) not_finite += !std::isfinite(b.get(i));
    EXPECT_EQ(not_finite, 0) << what;
  };
  expect_near("o", *out[0], ones, type == DType::F32 ? 1e-5 : 0x1p-7);
  for (auto* b : {&out[0], &out[1]}) in.push_back(std::move(*b));
  in.push_back(filled(Values(count, 0.125)));
  for (int i = 0; i < 3; ++i) grads.push_back(empty());
  run("attention_grad", {}, {q, q, q, q, lse, q}, {q, q, q}, in, grads);
  finite(*grads[0], "dq"), finite(*grads[1], "dk"), finite(*grads[2], "dv");
  // The weights, made again, sum to 1 as well as the logarithm of their sum is known.
  double sum = 0;
  for (std::int64_t i = 0; i < count; i += width) sum += grads[2]->get(i) / 0.125;
  EXPECT_GT(sum, 0.3 * kRows);
  EXPECT_LT(sum, 3.0 * kRows);
}

TEST(CpuAttention, FarScoresHaveFiniteResults) {
  for (const DType type : {DType::F32, DType::BF16, DType::F16})
    for (const double size : {1e3, 1e4, 3e4})
      for (const std::int64_t width : {8, 12, 16, 24, 32, 40}) {
        SCOPED_TRACE(std::string(name_of(type)) + " " + std::to_string(size) + " width " +
                     std::to_string(width));
        check_far(type, size, width);
      }
}

TEST(CpuAttention, TheSameBitsOnAnyThreads) {
  const int before = omp_get_max_threads();
  for (const DType type : {DType::F32, DType::BF16, DType::F16}) {
    std::vector<std::vector<unsigned char>> first;
    for (const int threads : {1, 2, 4}) {
      omp_set_num_threads(threads);
      const auto bytes = check({2, 300, 300, 4, 2, 40, true}, type, true);
      if (first.empty()) first = bytes;
      EXPECT_EQ(bytes, first) << name_of(type) << " on " << threads;
    }
  }
  omp_set_num_threads(before);
}

}  // namespace
}  // namespace aloft
