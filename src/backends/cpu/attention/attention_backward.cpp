// Backward attention. A task is one key/value head of one batch element. It recomputes the weights
// P from lse, block by block of keys, and for all queries of the heads that share these keys:
//   dV += P^T dO,  dS = P (dO V^T - delta) scale,  dK += dS^T Q,  dQ += dS K
// with delta = rowsum(dO O) - dlse. Blocks of P and dS are kept transposed, [keys][queries]. All
// three gradients are gathered in fp32, in one fixed order of blocks.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/attention_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/attention/attention-inl.h"
#include "backends/cpu/attention/attention_bf16.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace {

// Scores s and products dp = V dO^T, [keys][kBlock] each, become the weights and their cotangents.
void cotangents_of(float* s, float* dp, float scale, const BlockMask& mask, const float* lse,
                   const float* delta) {
  const Floats d;
  const FloatV factor = hn::Set(d, scale);
  for (std::int64_t j = 0; j < kBlock; j += kVectorLanes) {
    const std::int64_t plain = mask.rows_before(j), until = mask.rows_until(j);
    const std::int64_t behind = mask.rows_behind(j), edge = std::max(plain, behind);
    const FloatV columns = columns_from(j), log_sum = hn::LoadU(d, lse + j),
                 row_sum = hn::LoadU(d, delta + j);
    enum class Mask { None, Causal, Window };
    const auto row = [&](std::int64_t r, Mask hides, auto shifted) HWY_ATTR {
      float *at = s + r * kBlock + j, *dp_at = dp + r * kBlock + j;
      FloatV p = exp_below(shifted(hn::LoadU(d, at)));
      FloatV ds = hn::Mul(hn::Mul(p, hn::Sub(hn::LoadU(d, dp_at), row_sum)), factor);
      if (hides != Mask::None) {
        const auto seen =
            hides == Mask::Causal ? mask.seen(r, columns) : mask.seen_in_window(r, columns);
        p = hn::IfThenElseZero(seen, p);
        ds = hn::IfThenElseZero(seen, ds);
      }
      hn::StoreU(p, d, at);
      hn::StoreU(ds, d, dp_at);
    };
    const auto rows = [&](auto shifted) HWY_ATTR {
      for (std::int64_t r = 0; r < behind; ++r) row(r, Mask::Window, shifted);
      for (std::int64_t r = behind; r < plain; ++r) row(r, Mask::None, shifted);
      for (std::int64_t r = edge; r < until; ++r) row(r, Mask::Causal, shifted);
    };
    if (const auto far = is_far(log_sum); hn::AllFalse(d, far))
      rows([&](FloatV x) HWY_ATTR { return hn::MulSub(x, factor, log_sum); });
    else
      rows([&](FloatV x) HWY_ATTR { return shifted_score(x, factor, log_sum, far); });
  }
}

// Cotangents of capped scores, on to those of what was capped.
void times_slopes(float* ds, const float* slopes, const BlockMask& mask) {
  const Floats d;
  for (std::int64_t r = 0; r < mask.keys; ++r)
    for (std::int64_t i = r * kBlock + mask.column_of(r); i < (r + 1) * kBlock; i += kVectorLanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, ds + i), hn::LoadU(d, slopes + i)), d, ds + i);
}

// Where a task gathers gradients: rows of `ld`.
struct Sums {
  float *dk, *dv, *dq;
  std::int64_t ld;
};

// One block: queries [query, query + queries) against keys from `key` on.
struct BlockCall {
  std::int64_t query, queries, key;
  BlockMask mask;
  const float *lse, *delta;  // of the block's queries, padded to kBlock
};

// ---- where a head's operands lie and how blocks are multiplied ----

class F32Backward {
 public:
  F32Backward(const AttentionShape& s, Carve& carve) : o_(s), scale_(s.scale), cap_(s.cap) {
    k_memory_ = carve.take<float>(o_.rows_floats(s.keys));
    v_memory_ = carve.take<float>(o_.rows_floats(s.keys));
    for (Head* h : {&q_, &do_}) {
      h->turned = carve.take<float>(blocks_of(s.queries) * o_.turned_floats());
      h->memory = carve.take<float>(o_.rows_floats(s.queries));
    }
    s_ = carve.take<float>(kBlock * kBlock);
    dp_ = carve.take<float>(kBlock * kBlock);
    slopes_ = carve.take<float>(cap_ > 0 ? kBlock * kBlock : 0);
  }
  std::int64_t ld() const { return o_.ld; }

  void begin(const HeadRows& k, const HeadRows& v, std::int64_t keys) {
    k_ = o_.rows(k, keys, k_memory_);
    v_ = o_.rows(v, keys, v_memory_);
  }
  void begin_head(const HeadRows& q, const HeadRows& d_o, std::int64_t queries) {
    prepare(q_, q, queries);
    prepare(do_, d_o, queries);
  }
  void block(const BlockCall& c, const Sums& sums) {
    const std::int64_t turned = c.query * o_.width;  // turned blocks lie one after another
    o_.scores(k_, c.key, c.mask, q_.turned + turned, s_);
    o_.scores(v_, c.key, c.mask, do_.turned + turned, dp_);
    if (cap_ > 0) bend(s_, slopes_, scale_, cap_, c.mask);
    cotangents_of(s_, dp_, cap_ > 0 ? 1 : scale_, c.mask, c.lse, c.delta);
    if (cap_ > 0) times_slopes(dp_, slopes_, c.mask);
    o_.add_by_keys(s_, c.queries, c.mask, do_.rows.at(c.query), do_.rows.ld,
                   sums.dv + c.key * sums.ld);
    o_.add_by_keys(dp_, c.queries, c.mask, q_.rows.at(c.query), q_.rows.ld,
                   sums.dk + c.key * sums.ld);
    o_.add_by_queries(dp_, c.queries, c.mask, k_.at(c.key), k_.ld, sums.dq + c.query * sums.ld);
  }

 private:
  struct Head {
    float *turned = nullptr, *memory = nullptr;
    F32Rows rows;
  };
  void prepare(Head& to, const HeadRows& h, std::int64_t queries) const {
    to.rows = o_.rows(h, queries, to.memory);
    for (std::int64_t first = 0; first < queries; first += kBlock)
      o_.turn(to.rows, first, std::min(kBlock, queries - first), to.turned + first * o_.width);
  }

  F32Operands o_;
  float scale_, cap_;
  F32Rows k_, v_;
  Head q_, do_;
  float *k_memory_, *v_memory_, *s_, *dp_, *slopes_;
};

// ---- one task ----

template <class T>
float dot(const T* x, const T* y, std::int64_t n) {
  const Floats d;
  FloatV sum = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + kVectorLanes <= n; i += kVectorLanes)
    sum = hn::MulAdd(load(d, x + i), load(d, y + i), sum);
  if (i < n) sum = hn::MulAdd(load_n(d, x + i, n - i), load_n(d, y + i, n - i), sum);
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

template <class T>
void row_dots(const HeadRows& x, const HeadRows& y, std::int64_t rows, float* to) {
  for (std::int64_t t = 0; t < rows; ++t)
    to[t] = dot(static_cast<const T*>(x.at_row(t)), static_cast<const T*>(y.at_row(t)), x.width);
}

// delta[t] = sum over the width of dO O, minus dlse; lse padded so that no query past the last
// gets a weight.
void row_sums(const AttentionShape& s, const HeadRows& o, const HeadRows& d_o, const float* lse,
              const float* dlse, float* log_sums, float* delta) {
  if (s.dtype == DType::F32)
    row_dots<float>(o, d_o, s.queries, delta);
  else if (s.dtype == DType::BF16)
    row_dots<scalar::Bf16>(o, d_o, s.queries, delta);
  else
    row_dots<scalar::F16>(o, d_o, s.queries, delta);
  const std::int64_t padded = blocks_of(s.queries) * kBlock;
  for (std::int64_t t = 0; t < s.queries && dlse; ++t) delta[t] -= dlse[t];
  std::copy_n(lse, s.queries, log_sums);
  std::fill(delta + s.queries, delta + padded, 0.0f);
  std::fill(log_sums + s.queries, log_sums + padded, std::numeric_limits<float>::infinity());
}

}  // namespace

void attention_backward_task(const AttentionShape& s, const AttentionExtents& actual,
                             const AttentionBackward& x, std::int64_t task, void* scratch,
                             std::size_t* bytes) {
  Carve carve(scratch);
  const std::int64_t padded = blocks_of(s.queries) * kBlock;
  float* log_sums = carve.take<float>(padded);
  float* delta = carve.take<float>(padded);
  F32Backward engine(s, carve);
  Sums sums{};
  sums.ld = engine.ld();
  sums.dk = carve.take<float>(s.keys * sums.ld);
  sums.dv = carve.take<float>(s.keys * sums.ld);
  sums.dq = carve.take<float>(s.queries * sums.ld);
  if (bytes) {
    *bytes = carve.used();
    return;
  }
  const std::int64_t batch = task / s.kv_heads, kv_head = task % s.kv_heads;
  const std::int64_t group = s.heads / s.kv_heads, before = actual.keys - s.queries;
  const HeadRows k = head_rows(x.k, s.dtype, s.k, s.width, batch, kv_head),
                 v = head_rows(x.v, s.dtype, s.v, s.width, batch, kv_head);
  engine.begin(k, v, actual.keys);
  std::memset(sums.dk, 0, static_cast<std::size_t>(actual.keys * sums.ld) * sizeof(float));
  std::memset(sums.dv, 0, static_cast<std::size_t>(actual.keys * sums.ld) * sizeof(float));
  for (std::int64_t g = 0; g < group; ++g) {
    const std::int64_t head = kv_head * group + g, row = (batch * s.heads + head) * s.queries;
    const auto rows = [&](const void* data, const HeadsLayout& layout) {
      return head_rows(data, s.dtype, layout, s.width, batch, head);
    };
    const HeadRows d_o = rows(x.d_o, s.o);
    engine.begin_head(rows(x.q, s.q), d_o, s.queries);
    row_sums(s, rows(x.o, s.o), d_o, x.lse + row, x.dlse ? x.dlse + row : nullptr, log_sums, delta);
    std::memset(sums.dq, 0, static_cast<std::size_t>(s.queries * sums.ld) * sizeof(float));
    for (std::int64_t key = 0; key < actual.keys; key += kBlock) {
      const std::int64_t n = std::min(kBlock, actual.keys - key);
      // The first block of queries that sees any of these keys, and the last query that does.
      const std::int64_t first = s.causal ? std::max<std::int64_t>(0, key - before) : 0;
      const std::int64_t end =
          s.window > 0 ? std::min(s.queries, key + n - 1 - before + s.window) : s.queries;
      for (std::int64_t q = first / kBlock * kBlock; q < end; q += kBlock)
        engine.block({q, std::min(kBlock, s.queries - q), key, mask_of(s, key, n, q, before),
                      log_sums + q, delta + q},
                     sums);
    }
    const HeadRows dq = rows(x.dq, s.q);
    store_rows(sums.dq, sums.ld, s.queries, const_cast<void*>(dq.data), dq);
  }
  const HeadRows dk = head_rows(x.dk, s.dtype, s.k, s.width, batch, kv_head),
                 dv = head_rows(x.dv, s.dtype, s.v, s.width, batch, kv_head);
  store_rows(sums.dk, sums.ld, actual.keys, const_cast<void*>(dk.data), dk);
  store_rows(sums.dv, sums.ld, actual.keys, const_cast<void*>(dv.data), dv);
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
#include "backends/cpu/parallel.h"

namespace aloft::cpu {
HWY_EXPORT(attention_backward_task);

namespace {
void run_task(const AttentionShape& s, const AttentionExtents& actual, const AttentionBackward& x,
              std::int64_t task, void* scratch, std::size_t* bytes) {
  if (attention_uses_bf16(s))
    return bf16_attention_backward_task(s, actual, x, task, scratch, bytes);
  HWY_DYNAMIC_DISPATCH(attention_backward_task)(s, actual, x, task, scratch, bytes);
}
}  // namespace

std::size_t attention_backward_scratch(const AttentionShape& s) {
  std::size_t bytes = 0;
  run_task(s, {}, {}, 0, nullptr, &bytes);
  return bytes * static_cast<std::size_t>(s.threads);
}

void run_attention_backward(const AttentionShape& s, const AttentionExtents& actual,
                            const AttentionBackward& x, void* scratch) {
  const std::size_t bytes = attention_backward_scratch(s) / static_cast<std::size_t>(s.threads);
  const auto task = [&](std::int64_t i) {
    run_task(s, actual, x, i, static_cast<char*>(scratch) + pool_rank() * bytes, nullptr);
  };
  for_each_chunk(actual.batch * s.kv_heads, task, s.threads);
}

}  // namespace aloft::cpu
#endif
