// Forward attention. A task is one head of one batch element and a stretch of queries; it walks the
// keys block by block and keeps, for each query, the largest score, the sum of exponentials and the
// weighted values, rescaling them when a larger score turns up. In f32 vectors; with
// products of bf16 the same task is attention_bf16_forward.cpp's.
#if defined(__x86_64__)
#define HWY_BASELINE_TARGETS HWY_AVX2
#endif
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/attention_forward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/cpu/attention/attention-inl.h"
#include "backends/cpu/attention/attention_bf16.h"

HWY_BEFORE_NAMESPACE();
namespace aloft::cpu::HWY_NAMESPACE {
namespace {

// What one task keeps of a block of queries.
struct Running {
  float *top, *sum, *alpha;  // [kBlock]
  float* values;             // [kBlock][ld]: values, weighted and summed
};

// Turns a block of scores s[keys][kBlock] into weights exp(scale s - top), in place, and brings
// top, sum and alpha (what earlier sums are to be multiplied with) up to date.
void weights_of(float* s, float scale, const BlockMask& mask, const Running& run) {
  const Floats d;
  const FloatV factor = hn::Set(d, scale), none = hn::Neg(hn::Inf(d));
  for (std::int64_t j = 0; j < kBlock; j += kVectorLanes) {
    const std::int64_t plain = mask.rows_before(j), until = mask.rows_until(j);
    const std::int64_t behind = mask.rows_behind(j), edge = std::max(plain, behind);
    const FloatV columns = columns_from(j);
    const FloatV before = hn::LoadU(d, run.top + j);
    const auto scaled = [&](std::int64_t r)
                            HWY_ATTR { return hn::Mul(hn::LoadU(d, s + r * kBlock + j), factor); };
    FloatV top = before;
    for (std::int64_t r = 0; r < behind; ++r)
      top = hn::Max(top, hn::IfThenElse(mask.seen_in_window(r, columns), scaled(r), none));
    // A query that has seen nothing yet has no largest score: its weights are 0 all the same.
    if (behind > 0) top = hn::Max(top, hn::Set(d, std::numeric_limits<float>::lowest()));
    for (std::int64_t r = behind; r < plain; ++r) top = hn::Max(top, scaled(r));
    for (std::int64_t r = edge; r < until; ++r)
      top = hn::Max(top, hn::IfThenElse(mask.seen(r, columns), scaled(r), none));
    const FloatV alpha = exp_below(hn::Sub(before, top));
    FloatV sum = hn::Mul(hn::LoadU(d, run.sum + j), alpha);
    const auto weigh = [&](auto shifted) HWY_ATTR {
      for (std::int64_t r = 0; r < behind; ++r) {
        const FloatV p = hn::IfThenElseZero(mask.seen_in_window(r, columns),
                                            exp_below(shifted(hn::LoadU(d, s + r * kBlock + j))));
        sum = hn::Add(sum, p);
        hn::StoreU(p, d, s + r * kBlock + j);
      }
      for (std::int64_t r = behind; r < plain; ++r) {
        const FloatV p = exp_below(shifted(hn::LoadU(d, s + r * kBlock + j)));
        sum = hn::Add(sum, p);
        hn::StoreU(p, d, s + r * kBlock + j);
      }
      for (std::int64_t r = edge; r < until; ++r) {
        const FloatV p = hn::IfThenElseZero(mask.seen(r, columns),
                                            exp_below(shifted(hn::LoadU(d, s + r * kBlock + j))));
        sum = hn::Add(sum, p);
        hn::StoreU(p, d, s + r * kBlock + j);
      }
    };
    if (const auto far = is_far(top); hn::AllFalse(d, far))
      weigh([&](FloatV x) HWY_ATTR { return hn::MulSub(x, factor, top); });
    else
      weigh([&](FloatV x) HWY_ATTR { return shifted_score(x, factor, top, far); });
    hn::StoreU(top, d, run.top + j);
    hn::StoreU(alpha, d, run.alpha + j);
    hn::StoreU(sum, d, run.sum + j);
  }
}

void rescale(const Running& run, std::int64_t rows, std::int64_t ld) {
  const Floats d;
  for (std::int64_t t = 0; t < rows; ++t) {
    if (run.alpha[t] == 1.0f) continue;
    const FloatV alpha = hn::Set(d, run.alpha[t]);
    for (float *p = run.values + t * ld, *end = p + ld; p < end; p += kVectorLanes)
      hn::StoreU(hn::Mul(hn::LoadU(d, p), alpha), d, p);
  }
}

// ---- where a head's operands lie and how blocks are multiplied ----

class F32Forward {
 public:
  F32Forward(const AttentionShape& s, Carve& carve) : o_(s), scale_(s.scale), cap_(s.cap) {
    k_memory_ = carve.take<float>(o_.rows_floats(s.keys));
    v_memory_ = carve.take<float>(o_.rows_floats(s.keys));
    q_memory_ = carve.take<float>(o_.rows_floats(kBlock));
    turned_ = carve.take<float>(o_.turned_floats());
    s_ = carve.take<float>(kBlock * kBlock);
  }
  std::int64_t ld() const { return o_.ld; }
  void begin(const HeadRows& k, const HeadRows& v, std::int64_t keys) {
    k_ = o_.rows(k, keys, k_memory_);
    v_ = o_.rows(v, keys, v_memory_);
  }
  void begin_queries(HeadRows q, std::int64_t first, std::int64_t count) {
    q.data = q.at_row(first);
    o_.turn(o_.rows(q, count, q_memory_), 0, count, turned_);
  }
  void block(std::int64_t first, std::int64_t queries, const BlockMask& mask, const Running& run) {
    o_.scores(k_, first, mask, turned_, s_);
    if (cap_ > 0) bend(s_, nullptr, scale_, cap_, mask);
    weights_of(s_, cap_ > 0 ? 1 : scale_, mask, run);
    rescale(run, queries, o_.ld);
    o_.add_by_queries(s_, queries, mask, v_.at(first), v_.ld, run.values);
  }

 private:
  F32Operands o_;
  float scale_, cap_;
  F32Rows k_, v_;
  float *k_memory_, *v_memory_, *q_memory_, *turned_, *s_;
};

// ---- one task ----

void finish(const Running& run, std::int64_t count, std::int64_t ld, void* o, const HeadRows& head,
            float* lse) {
  const Floats d;
  for (std::int64_t j = 0; j < kBlock; j += kVectorLanes) {
    const FloatV sum = hn::LoadU(d, run.sum + j);
    hn::StoreU(hn::Div(hn::Set(d, 1.0f), sum), d, run.alpha + j);
    hn::StoreU(hn::Add(hn::LoadU(d, run.top + j), log_of(sum)), d, run.sum + j);
  }
  rescale(run, count, ld);
  store_rows(run.values, ld, count, o, head);
  if (lse) std::memcpy(lse, run.sum, static_cast<std::size_t>(count) * sizeof(float));
}

}  // namespace

void attention_forward_task(const AttentionShape& s, const AttentionExtents& actual,
                            const AttentionForward& x, std::int64_t task, void* scratch,
                            std::size_t* bytes) {
  Carve carve(scratch);
  Running run;
  run.top = carve.take<float>(kBlock);
  run.sum = carve.take<float>(kBlock);
  run.alpha = carve.take<float>(kBlock);
  F32Forward engine(s, carve);
  run.values = carve.take<float>(kBlock * engine.ld());
  if (bytes) {
    *bytes = carve.used();
    return;
  }
  const QueryStretch t(s, actual, task);
  engine.begin(head_rows(x.k, s.dtype, s.k, s.width, t.batch, t.kv_head),
               head_rows(x.v, s.dtype, s.v, s.width, t.batch, t.kv_head), t.keys_for(t.end));
  const HeadRows q = head_rows(x.q, s.dtype, s.q, s.width, t.batch, t.head);
  const HeadRows o = head_rows(x.o, s.dtype, s.o, s.width, t.batch, t.head);
  for (std::int64_t first = t.begin; first < t.end; first += kBlock) {
    const std::int64_t count = std::min(kBlock, t.end - first), keys = t.keys_for(first + count);
    std::fill_n(run.top, kBlock, -std::numeric_limits<float>::infinity());
    std::fill_n(run.sum, kBlock, 0.0f);
    std::memset(run.values, 0, static_cast<std::size_t>(count * engine.ld()) * sizeof(float));
    engine.begin_queries(q, first, count);
    for (std::int64_t key = t.first_key_of(first) / kBlock * kBlock; key < keys; key += kBlock) {
      const std::int64_t n = std::min(kBlock, keys - key);
      engine.block(key, count, mask_of(s, key, n, first, t.before), run);
    }
    float* lse = x.lse ? x.lse + (t.batch * s.heads + t.head) * s.queries + first : nullptr;
    finish(run, count, engine.ld(), const_cast<void*>(o.at_row(first)), o, lse);
  }
}

}  // namespace aloft::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "backends/cpu/isa.h"
#include "backends/cpu/parallel.h"

namespace aloft::cpu {
HWY_EXPORT(attention_forward_task);

namespace {
void run_task(const AttentionShape& s, const AttentionExtents& actual, const AttentionForward& x,
              std::int64_t task, void* scratch, std::size_t* bytes) {
  if (attention_uses_bf16(s))
    return bf16_attention_forward_task(s, actual, x, task, scratch, bytes);
  HWY_DYNAMIC_DISPATCH(attention_forward_task)(s, actual, x, task, scratch, bytes);
}
}  // namespace

std::size_t attention_forward_scratch(const AttentionShape& s) {
  std::size_t bytes = 0;
  run_task(s, {}, {}, 0, nullptr, &bytes);
  return bytes * static_cast<std::size_t>(s.threads);
}

void run_attention_forward(const AttentionShape& s, const AttentionExtents& actual,
                           const AttentionForward& x, void* scratch) {
  const std::size_t bytes = attention_forward_scratch(s) / static_cast<std::size_t>(s.threads);
  const auto task = [&](std::int64_t i) {
    run_task(s, actual, x, i, static_cast<char*>(scratch) + pool_rank() * bytes, nullptr);
  };
  for_each_chunk(QueryStretch::tasks(s, actual), task, s.threads);
}

}  // namespace aloft::cpu
#endif
