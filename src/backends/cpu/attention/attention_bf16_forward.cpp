// Forward attention with products of bf16 (attention_bf16.h). A task is one head of one batch
// element and a stretch of queries, as in attention_forward.cpp; here a row is a query, keys come a
// span at a time, and what a causal mask hides is neither multiplied (beyond 32 keys) nor
// exponentiated.
#include <algorithm>
#include <limits>

#include "backends/cpu/attention/attention_bf16.h"
#include "backends/cpu/attention/attention_softmax.h"
#include "backends/cpu/carve.h"

namespace aloft::cpu {
namespace {

constexpr std::int64_t kScoresStride = kSpan + 16;

class Forward {
 public:
  Forward(const AttentionShape& s, std::int64_t most_keys, Carve& carve)
      : o_(s), s_(s), scale_(s.cap > 0 ? 1 : s.scale) {
    keys_memory_ = carve.take<std::uint16_t>(o_.turned_panels_words(most_keys));
    values_memory_ = carve.take<std::uint16_t>(o_.row_panels_words(most_keys));
    queries_ = carve.take<std::uint16_t>(o_.rows_words(kQueryBlock));
    weights_ = carve.take<std::uint16_t>(kQueryBlock * kSpanStride * o_.planes);
    scores_ = carve.take<float>(kQueryBlock * kScoresStride + 16);
    sums_ = carve.take<float>(kQueryBlock * o_.ld());
    for (float** p : {&top_, &sum_, &alpha_, &lse_}) *p = carve.take<float>(kQueryBlock);
  }

  void begin(const HeadRows& k, const HeadRows& v, std::int64_t keys) {
    keys_ = o_.turned_panels(k, keys, keys_memory_);
    values_ = o_.row_panels(v, keys, values_memory_);
  }

  // Queries [0, count) of q; the first of them sees `seen` keys, all of them up to `keys`, and none
  // any before `from`, a multiple of kSpan.
  void block(const HeadRows& q, std::int64_t count, std::int64_t from, std::int64_t keys,
             std::int64_t seen, const HeadRows& o, float* lse) {
    const Bf16Left queries = o_.rows(q, count, queries_);
    std::fill_n(top_, kQueryBlock, -std::numeric_limits<float>::infinity());
    std::fill_n(sum_, kQueryBlock, 0.0f);
    for (std::int64_t first = from; first < keys; first += kSpan)
      span(queries, count, first, std::min(kSpan, keys - first), seen - first, first > from);
    bf16_attention_log_sums(top_, sum_, scale_, alpha_, lse_);
    bf16_attention_store(
        {sums_, o_.ld(), count, s_.width, alpha_, 1, const_cast<void*>(o.data), o.type, o.row});
    if (lse) std::copy_n(lse_, count, lse);
  }

 private:
  void span(const Bf16Left& queries, std::int64_t count, std::int64_t first, std::int64_t keys,
            std::int64_t seen, bool add) {
    const Bf16Right k{keys_.data + first / kAmxPanel * keys_.panel, keys_.panel, keys_.plane},
        v{values_.data + first * kAmxPanel, values_.panel, values_.plane};
    o_.product(blocks_, count, keys, o_.depth, queries, k, scores_, kScoresStride, false);
    if (s_.cap > 0)
      bf16_attention_bend(
          {scores_, count, keys, kScoresStride, s_.scale, s_.cap, nullptr, nullptr});
    WeightsBlock w;
    w.rows = count, w.keys = keys, w.seen = seen, w.depth = round_up(keys, kAmxDepth);
    // The last row's window begins last.
    if (s_.window > 0 && seen + count - 1 - s_.window > 0) w.window = s_.window;
    w.scores = scores_, w.ld = kScoresStride;
    w.scale = scale_;
    w.top = top_, w.sum = sum_, w.alpha = alpha_;
    w.weights = weights_, w.ldw = kSpanStride, w.plane = kQueryBlock * kSpanStride;
    w.planes = o_.planes;
    bf16_attention_weights(w);
    if (add)
      for (std::int64_t r = 0; r < count; ++r)
        for (std::int64_t j = 0; j < o_.ld(); ++j) sums_[r * o_.ld() + j] *= alpha_[r];
    o_.product(blocks_, count, s_.width, w.depth, {weights_, w.ldw, w.plane}, v, sums_, o_.ld(),
               add);
  }

  Bf16Operands o_;
  UnitBlocks blocks_;
  const AttentionShape& s_;
  float scale_;
  Bf16Right keys_{}, values_{};
  std::uint16_t *keys_memory_, *values_memory_, *queries_, *weights_;
  float *scores_, *sums_, *top_, *sum_, *alpha_, *lse_;
};

}  // namespace

void bf16_attention_forward_task(const AttentionShape& s, const AttentionExtents& actual,
                                 const AttentionForward& x, std::int64_t task, void* scratch,
                                 std::size_t* bytes) {
  Carve carve(scratch);
  Forward forward(s, s.keys, carve);
  if (bytes) {
    *bytes = carve.used();
    return;
  }
  const QueryStretch t(s, actual, task);
  forward.begin(head_rows(x.k, s.dtype, s.k, s.width, t.batch, t.kv_head),
                head_rows(x.v, s.dtype, s.v, s.width, t.batch, t.kv_head), t.keys_for(t.end));
  HeadRows q = head_rows(x.q, s.dtype, s.q, s.width, t.batch, t.head);
  HeadRows o = head_rows(x.o, s.dtype, s.o, s.width, t.batch, t.head);
  const void *q_data = q.data, *o_data = o.data;
  for (std::int64_t first = t.begin; first < t.end; first += kQueryBlock) {
    const std::int64_t count = std::min(kQueryBlock, t.end - first);
    q.data = at(q_data, first * q.row, q.type);
    o.data = at(o_data, first * o.row, o.type);
    float* lse = x.lse ? x.lse + (t.batch * s.heads + t.head) * s.queries + first : nullptr;
    forward.block(q, count, t.first_key_of(first) / kSpan * kSpan, t.keys_for(first + count),
                  s.causal ? first + t.before + 1 : actual.keys, o, lse);
  }
}

}  // namespace aloft::cpu
