// Backward attention. A task is one key/value head of one batch element. It recomputes the weights
// P from lse, block by block of keys, and for all queries of the heads that share these keys:
//   dV += P^T dO,  dS = P (dO V^T - delta) scale,  dK += dS^T Q,  dQ += dS K
// with delta = rowsum(dO O) - dlse. Blocks of P and dS are kept transposed, [keys][queries]. All
// three gradients are gathered in fp32, dQ as [width][queries], in one fixed order of blocks.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/attention-inl.h"
#include "backends/cpu/attention_amx.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace {

// From scores s and products dp = V dO^T, [keys][kBlock] each, the weights and their cotangents;
// put(row, column, p, p2, ds, ds2) gets those of two neighbouring keys, zeros past the last.
template <class Put>
HWY_INLINE void cotangents_of(const float* s, const float* dp, std::int64_t keys, std::int64_t rows,
                              float scale, const BlockMask& mask, const float* lse,
                              const float* delta, const Put& put) {
  const Floats d;
  const FloatV factor = hn::Set(d, scale);
  for (std::int64_t j = 0; j < kBlock; j += kVectorLanes) {
    const FloatV columns = columns_from(j), log_sum = hn::LoadU(d, lse + j),
                 row_sum = hn::LoadU(d, delta + j);
    const auto weight = [&](std::int64_t r) HWY_ATTR {
      if (r >= keys) return hn::Zero(d);
      const FloatV p = exp_below(hn::MulSub(hn::LoadU(d, s + r * kBlock + j), factor, log_sum));
      return mask.masks ? hn::IfThenElseZero(mask.seen(r, columns), p) : p;
    };
    const auto cotangent = [&](std::int64_t r, FloatV p) HWY_ATTR {
      if (r >= keys) return hn::Zero(d);
      const FloatV x =
          hn::Mul(hn::Mul(p, hn::Sub(hn::LoadU(d, dp + r * kBlock + j), row_sum)), factor);
      return mask.masks ? hn::IfThenElseZero(mask.seen(r, columns), x) : x;
    };
    for (std::int64_t r = 0; r < rows; r += 2) {
      const FloatV p = weight(r), p2 = weight(r + 1);
      put(r, j, p, p2, cotangent(r, p), cotangent(r + 1, p2));
    }
  }
}

// Where a task gathers gradients: dk and dv [keys][ld], dq [width][ld_dq].
struct Sums {
  float *dk, *dv, *dq;
  std::int64_t ld, ld_dq;
};

// One block: queries [query, query + queries) against keys [key, key + keys).
struct BlockCall {
  std::int64_t query, queries, key, keys;
  BlockMask mask;
  const float *lse, *delta;  // of the block's queries, padded to kBlock
};

// ---- where a head's operands lie and how blocks are multiplied ----

class F32Backward {
 public:
  F32Backward(const AttentionShape& s, Carve& carve)
      : o_(s),
        scale_(s.scale),
        ready_(s.dtype == DType::F32 && s.width % 16 == 0),
        ld_(round_up(s.width, 16)) {
    const std::int64_t blocks = blocks_of(s.queries);
    k_memory_ = carve.take<float>(o_.left_floats(s.keys));
    v_memory_ = carve.take<float>(o_.left_floats(s.keys));
    for (Head* h : {&q_, &do_}) {
      h->turned = carve.take<float>(blocks * o_.turned_floats());
      h->memory = carve.take<float>(ready_ ? 0 : s.queries * ld_);
    }
    buffer_ = carve.take<float>(kBlock * s.width);
    s_ = carve.take<float>(kBlock * kBlock);
    dp_ = carve.take<float>(kBlock * kBlock);
  }
  std::int64_t ld() const { return ld_; }

  void begin(const HeadRows& k, const HeadRows& v, std::int64_t keys) {
    k_ = o_.left(k, keys, k_memory_);
    v_ = o_.left(v, keys, v_memory_);
  }
  void begin_head(const HeadRows& q, const HeadRows& d_o, std::int64_t queries) {
    prepare(q_, q, queries);
    prepare(do_, d_o, queries);
  }
  void block(const BlockCall& c, const Sums& sums) {
    const Floats d;
    const std::int64_t turned = c.query * o_.width;  // turned blocks lie one after another
    o_.scores(k_, c.key, c.keys, q_.turned + turned, s_);
    o_.scores(v_, c.key, c.keys, do_.turned + turned, dp_);
    cotangents_of(s_, dp_, c.keys, round_up(c.keys, 2), scale_, c.mask, c.lse, c.delta,
                  [&](std::int64_t r, std::int64_t j, FloatV p, FloatV p2, FloatV ds, FloatV ds2)
                      HWY_ATTR {
                        hn::StoreU(p, d, s_ + r * kBlock + j);
                        hn::StoreU(p2, d, s_ + (r + 1) * kBlock + j);
                        hn::StoreU(ds, d, dp_ + r * kBlock + j);
                        hn::StoreU(ds2, d, dp_ + (r + 1) * kBlock + j);
                      });
    product(c.keys, ld_, c.queries, {s_, kBlock, 1}, do_.rows + c.query * do_.ld, do_.ld,
            sums.dv + c.key * sums.ld, sums.ld, true);
    product(c.keys, ld_, c.queries, {dp_, kBlock, 1}, q_.rows + c.query * q_.ld, q_.ld,
            sums.dk + c.key * sums.ld, sums.ld, true);
    const Strided k{k_.rows.data + c.key * k_.rows.row, 1, k_.rows.row};
    product(o_.width, kBlock, c.keys, k, dp_, kBlock, sums.dq + c.query, sums.ld_dq, true);
  }

 private:
  struct Head {
    float *turned = nullptr, *memory = nullptr;
    const float* rows = nullptr;
    std::int64_t ld = 0;
  };
  // Rows of low types, or whose width is no multiple of a vector, are copied, padded with zeros.
  void prepare(Head& to, const HeadRows& h, std::int64_t queries) const {
    for (std::int64_t first = 0; first < queries; first += kBlock)
      o_.turn(h, first, std::min(kBlock, queries - first), to.turned + first * o_.width, buffer_);
    to.rows = static_cast<const float*>(h.data);
    to.ld = h.row;
    if (ready_) return;
    std::memset(to.memory, 0, static_cast<std::size_t>(queries * ld_) * sizeof(float));
    for (std::int64_t t = 0; t < queries; ++t)
      widen(h.type, h.at_row(t), to.memory + t * ld_, h.width);
    to.rows = to.memory;
    to.ld = ld_;
  }

  F32Operands o_;
  float scale_;
  bool ready_;
  std::int64_t ld_;
  F32Operands::Left k_{}, v_{};
  Head q_, do_;
  float *k_memory_, *v_memory_, *buffer_, *s_, *dp_;
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
  float* buffer = carve.take<float>(kBlock * s.width);
  F32Backward engine(s, carve);
  Sums sums{};
  sums.ld = engine.ld();
  sums.ld_dq = padded;
  sums.dk = carve.take<float>(s.keys * sums.ld);
  sums.dv = carve.take<float>(s.keys * sums.ld);
  sums.dq = carve.take<float>(s.width * padded);
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
    std::memset(sums.dq, 0, static_cast<std::size_t>(s.width * padded) * sizeof(float));
    for (std::int64_t key = 0; key < actual.keys; key += kBlock) {
      const std::int64_t n = std::min(kBlock, actual.keys - key);
      // The first block of queries that sees any of these keys.
      const std::int64_t first = s.causal ? std::max<std::int64_t>(0, key - before) : 0;
      for (std::int64_t q = first / kBlock * kBlock; q < s.queries; q += kBlock)
        engine.block({q, std::min(kBlock, s.queries - q), key, n,
                      mask_of(s.causal, key, n, q, before), log_sums + q, delta + q},
                     sums);
    }
    const HeadRows dq = rows(x.dq, s.q);
    for (std::int64_t q = 0; q < s.queries; q += kBlock) {
      const std::int64_t count = std::min(kBlock, s.queries - q);
      transpose_block(sums.dq + q, padded, s.width, count, buffer, s.width);
      store_rows(buffer, s.width, count, const_cast<void*>(dq.at_row(q)), dq);
    }
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
  if (attention_uses_amx(s)) return amx_attention_backward_task(s, actual, x, task, scratch, bytes);
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
