// One query of one head: its score with every key, their softmax, the weighted sum of the values.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/attention_decode.cpp"
#include "backends/cpu/attention/attention_decode.h"

#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>

#include "backends/cpu/carve.h"
#include "backends/cpu/vectors/blocks-inl.h"
#include "backends/cpu/vectors/exp-inl.h"
#include "backends/cpu/vectors/functions-inl.h"
#include "backends/cpu/vectors/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace {

constexpr std::int64_t padded(std::int64_t n) {
  return (n + kVectorLanes - 1) / kVectorLanes * kVectorLanes;
}

HWY_INLINE float sum_of(FloatV v) { return hn::GetLane(hn::SumOfLanes(Floats(), v)); }

// Vector number i of a row that may end inside it.
template <class T>
HWY_INLINE FloatV load_part(const T* row, std::int64_t i, std::int64_t width) {
  const Floats d;
  if (i + kVectorLanes <= width) return load(d, row + i);
  return load_n(d, row + i, width - i);
}

// scores[j] = query . key j, for four keys at a time, whose sums do not wait for one another. The
// query is padded with zeros.
template <class T>
void score_keys(const float* query, const T* keys, std::int64_t row, std::int64_t width,
                std::int64_t count, float* scores) {
  const Floats d;
  std::int64_t j = 0;
  for (; j + 4 <= count; j += 4) {
    FloatV s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0;
    const T* k = keys + j * row;
    for (std::int64_t i = 0; i < width; i += kVectorLanes) {
      const FloatV q = hn::LoadU(d, query + i);
      s0 = hn::MulAdd(q, load_part(k, i, width), s0);
      s1 = hn::MulAdd(q, load_part(k + row, i, width), s1);
      s2 = hn::MulAdd(q, load_part(k + 2 * row, i, width), s2);
      s3 = hn::MulAdd(q, load_part(k + 3 * row, i, width), s3);
    }
    scores[j] = sum_of(s0);
    scores[j + 1] = sum_of(s1);
    scores[j + 2] = sum_of(s2);
    scores[j + 3] = sum_of(s3);
  }
  for (; j < count; ++j) {
    FloatV s = hn::Zero(d);
    for (std::int64_t i = 0; i < width; i += kVectorLanes)
      s = hn::MulAdd(hn::LoadU(d, query + i), load_part(keys + j * row, i, width), s);
    scores[j] = sum_of(s);
  }
}

// Scores become cap tanh(scale score / cap).
void bend(float* scores, std::int64_t count, float scale, float cap) {
  const Floats d;
  const FloatV inner = hn::Set(d, scale / cap), outer = hn::Set(d, cap);
  for (std::int64_t j = 0; j < count; j += kVectorLanes)
    hn::StoreU(hn::Mul(tanh_of(hn::Mul(hn::LoadU(d, scores + j), inner)), outer), d, scores + j);
}

// Scores become exp(scale score - largest); returns their sum.
float exponentiate(float* scores, std::int64_t count, float scale) {
  const Floats d;
  const FloatV factor = hn::Set(d, scale);
  const std::int64_t all = padded(count);
  FloatV top = hn::Neg(hn::Inf(d));
  for (std::int64_t j = 0; j < count; j += kVectorLanes) {
    // Padding is -inf whatever lay there and whatever the sign of the scale.
    FloatV x = hn::Mul(hn::LoadU(d, scores + j), factor);
    if (j + kVectorLanes > count)
      x = hn::IfThenElse(hn::FirstN(d, static_cast<std::size_t>(count - j)), x,
                         hn::Neg(hn::Inf(d)));
    hn::StoreU(x, d, scores + j);
    top = hn::Max(top, x);
  }
  top = hn::MaxOfLanes(d, top);
  FloatV sum = hn::Zero(d);
  for (std::int64_t j = 0; j < all; j += kVectorLanes) {
    const FloatV p = exp_below(hn::Sub(hn::LoadU(d, scores + j), top));
    hn::StoreU(p, d, scores + j);
    sum = hn::Add(sum, p);
  }
  return sum_of(sum);
}

// out = the values' sum with the given weights, divided by `total`.
template <class T>
void weigh_values(const float* weights, const T* values, std::int64_t row, std::int64_t width,
                  std::int64_t count, float total, T* out) {
  const Floats d;
  const FloatV factor = hn::Set(d, 1.0f / total);
  const auto put = [&](FloatV v, std::int64_t i) HWY_ATTR {
    if (i + kVectorLanes <= width)
      store(d, hn::Mul(v, factor), out + i);
    else if (i < width)
      store_n(d, hn::Mul(v, factor), out + i, width - i);
  };
  for (std::int64_t i = 0; i < width; i += 4 * kVectorLanes) {
    FloatV a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0;
    const bool whole = i + 4 * kVectorLanes <= width;
    for (std::int64_t j = 0; j < count; ++j) {
      const FloatV w = hn::Set(d, weights[j]);
      const T* v = values + j * row + i;
      if (whole) {
        a0 = hn::MulAdd(w, load(d, v), a0);
        a1 = hn::MulAdd(w, load(d, v + kVectorLanes), a1);
        a2 = hn::MulAdd(w, load(d, v + 2 * kVectorLanes), a2);
        a3 = hn::MulAdd(w, load(d, v + 3 * kVectorLanes), a3);
        continue;
      }
      const std::int64_t left = width - i;
      a0 = hn::MulAdd(w, load_part(v, 0, left), a0);
      if (left > kVectorLanes) a1 = hn::MulAdd(w, load_part(v, kVectorLanes, left), a1);
      if (left > 2 * kVectorLanes) a2 = hn::MulAdd(w, load_part(v, 2 * kVectorLanes, left), a2);
      if (left > 3 * kVectorLanes) a3 = hn::MulAdd(w, load_part(v, 3 * kVectorLanes, left), a3);
    }
    put(a0, i);
    put(a1, i + kVectorLanes);
    put(a2, i + 2 * kVectorLanes);
    put(a3, i + 3 * kVectorLanes);
  }
}

struct DecodeScratch {
  DecodeScratch(const AttentionShape& s, void* memory) : carve(memory) {
    query = carve.take<float>(padded(s.width));
    scores = carve.take<float>(padded(s.keys));
  }
  Carve carve;
  float *query, *scores;
};

template <class T>
void decode_head(const AttentionShape& s, const AttentionExtents& actual, const AttentionForward& x,
                 std::int64_t task, const DecodeScratch& scratch) {
  const Floats d;
  const std::int64_t head = task % s.heads, batch = task / s.heads;
  const std::int64_t kv_head = head / (s.heads / s.kv_heads);
  const auto rows = [&](const void* data, const HeadsLayout& l, std::int64_t h) {
    return static_cast<const T*>(data) + l.offset + batch * l.batch + h * s.width;
  };
  const T *q = rows(x.q, s.q, head), *k = rows(x.k, s.k, kv_head), *v = rows(x.v, s.v, kv_head);
  T* o = const_cast<T*>(rows(x.o, s.o, head));
  for (std::int64_t t = 0; t < s.queries; ++t) {
    for (std::int64_t i = 0; i < s.width; i += kVectorLanes)
      hn::StoreU(load_part(q + t * s.q.row, i, s.width), d, scratch.query + i);
    const std::int64_t seen = actual.keys - (s.causal ? s.queries - 1 - t : 0);
    const std::int64_t from = s.window > 0 ? std::max<std::int64_t>(0, seen - s.window) : 0;
    const std::int64_t count = seen - from;
    score_keys(scratch.query, k + from * s.k.row, s.k.row, s.width, count, scratch.scores);
    if (s.cap > 0) bend(scratch.scores, count, s.scale, s.cap);
    const float total = exponentiate(scratch.scores, count, s.cap > 0 ? 1 : s.scale);
    weigh_values(scratch.scores, v + from * s.v.row, s.v.row, s.width, count, total,
                 o + t * s.o.row);
  }
}

}  // namespace

// One head of one batch element; with `bytes`, only says how much scratch a thread needs.
void attention_decode_task(const AttentionShape& s, const AttentionExtents& actual,
                           const AttentionForward& x, std::int64_t task, void* memory,
                           std::size_t* bytes) {
  const DecodeScratch scratch(s, memory);
  if (bytes)
    *bytes = scratch.carve.used();
  else if (s.dtype == DType::F32)
    decode_head<float>(s, actual, x, task, scratch);
  else if (s.dtype == DType::BF16)
    decode_head<scalar::Bf16>(s, actual, x, task, scratch);
  else
    decode_head<scalar::F16>(s, actual, x, task, scratch);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/parallel.h"
#include "base/error.h"

namespace aloft::cpu {
HWY_EXPORT(attention_decode_task);

std::size_t attention_decode_scratch(const AttentionShape& s) {
  std::size_t bytes = 0;
  HWY_DYNAMIC_DISPATCH(attention_decode_task)(s, {}, {}, 0, nullptr, &bytes);
  return bytes * static_cast<std::size_t>(s.threads);
}

void run_attention_decode(const AttentionShape& s, const AttentionExtents& actual,
                          const AttentionForward& x, void* scratch) {
  ensure(!x.lse, "decoding keeps no logarithms of sums");
  const std::size_t bytes = attention_decode_scratch(s) / static_cast<std::size_t>(s.threads);
  // Two multiplications an element of a key and of its value, a vector of them at a time.
  const std::int64_t cost = s.queries * actual.keys * (s.width / 4 + 4);
  const auto tasks = [&](std::int64_t begin, std::int64_t end) {
    char* memory = static_cast<char*>(scratch) + pool_rank() * bytes;
    for (std::int64_t task = begin; task < end; ++task)
      HWY_DYNAMIC_DISPATCH(attention_decode_task)(s, actual, x, task, memory, nullptr);
  };
  parallel_for(actual.batch * s.heads, cost, tasks, s.threads);
}

}  // namespace aloft::cpu
#endif
