// Backward attention with products of bf16 (attention_bf16.h): the task and the formulas of
// attention_backward.cpp. Spans of kSpan keys against kSpan queries. For 32 queries at a time, P
// and dS of the whole span are made, transposed ([keys][queries]), and dQ takes in all its keys; dK
// and dV then take in all queries of the span at once.
#include <algorithm>
#include <cstring>
#include <limits>

#include "backends/cpu/attention/attention_bf16.h"
#include "backends/cpu/attention/attention_softmax.h"
#include "backends/cpu/carve.h"

namespace aloft::cpu {
namespace {

constexpr std::int64_t kPiece = 128;  // keys whose scores stay in the first cache

Bf16Left right_of(const Bf16Left& a, std::int64_t row, std::int64_t column) {
  return {a.data + row * a.ld + column, a.ld, a.plane};
}

class Backward {
 public:
  Backward(const AttentionShape& s, Carve& carve) : o_(s), s_(s) {
    const auto words = [&](std::int64_t n) { return carve.take<std::uint16_t>(n); };
    queries_ = round_up(s.queries, kQueryBlock);
    k_memory_ = words(o_.rows_words(s.keys));
    v_memory_ = words(o_.rows_words(s.keys));
    k_turned_memory_ = words(o_.turned_words(s.keys));
    for (Head* h : {&q_, &do_}) {
      h->turned_memory = words(o_.turned_panels_words(s.queries));
      h->rows_memory = words(o_.row_panels_words(s.queries));
    }
    plane_ = std::min(kSpan, round_up(s.keys, kAmxPanel)) * kSpanStride;
    p_ = words(plane_ * o_.planes);
    ds_ = words(plane_ * o_.planes);
    ds_panel_ = words(kSpan * kAmxPanel * o_.planes);
    scores_ = carve.take<float>(kPiece * kQueryBlock);
    dp_ = carve.take<float>(kPiece * kQueryBlock);
    zeros_ = carve.take<float>(kQueryBlock);
    lse_ = carve.take<float>(queries_);
    delta_ = carve.take<float>(queries_);
    dk_ = carve.take<float>(round_up(s.keys, kAmxPanel) * o_.ld());
    dv_ = carve.take<float>(round_up(s.keys, kAmxPanel) * o_.ld());
    dq_ = carve.take<float>((s.keys > kSpan ? queries_ : kQueryBlock) * o_.ld());
  }

  void begin(const HeadRows& k, const HeadRows& v, std::int64_t keys) {
    keys_ = keys;
    std::fill_n(zeros_, kQueryBlock, 0.0f);
    k_ = o_.rows(k, keys, k_memory_);
    v_ = o_.rows(v, keys, v_memory_);
    k_turned_ = o_.turned(k, keys, k_turned_memory_);
  }

  void begin_head(const HeadRows& q, const HeadRows& o, const HeadRows& d_o, const float* lse,
                  const float* dlse) {
    prepare(q_, q);
    prepare(do_, d_o);
    bf16_attention_dots(o.data, o.row, d_o.data, d_o.row, s_.dtype, s_.queries, s_.width, delta_);
    for (std::int64_t t = 0; t < s_.queries && dlse; ++t) delta_[t] -= dlse[t];
    std::copy_n(lse, s_.queries, lse_);
    // No query past the last gets a weight.
    std::fill(delta_ + s_.queries, delta_ + queries_, 0.0f);
    std::fill(lse_ + s_.queries, lse_ + queries_, std::numeric_limits<float>::infinity());
  }

  // One head's gradients; dK and dV are added to where `add`.
  void head(const HeadRows& dq, bool add) {
    const std::int64_t before = keys_ - s_.queries;
    for (std::int64_t key = 0; key < keys_; key += kSpan) {
      const std::int64_t keys = std::min(kSpan, keys_ - key);
      const std::int64_t first = s_.causal ? std::max<std::int64_t>(0, key - before) : 0;
      bool adds = add;
      for (std::int64_t q = first / kSpan * kSpan; q < s_.queries && is_seen(key, q);
           q += kSpan, adds = true)
        span(key, keys, q, std::min(kSpan, queries_ - q), s_.causal ? key - before : -keys, adds,
             dq);
      if (!adds)
        for (float* sums : {dk_, dv_})
          std::memset(sums + key * o_.ld(), 0,
                      static_cast<std::size_t>(keys * o_.ld()) * sizeof(float));
    }
  }

  void store(const HeadRows& dk, const HeadRows& dv) const {
    const float one = 1;
    bf16_attention_store(
        {dk_, o_.ld(), keys_, s_.width, &s_.scale, 0, const_cast<void*>(dk.data), dk.type, dk.row});
    bf16_attention_store(
        {dv_, o_.ld(), keys_, s_.width, &one, 0, const_cast<void*>(dv.data), dv.type, dv.row});
  }

 private:
  // Whether a window leaves any of the keys from `key` on, a span of them, to the query `q`: then
  // it does to those before.
  bool is_seen(std::int64_t key, std::int64_t q) const {
    const std::int64_t end = std::min(keys_, key + kSpan), before = keys_ - s_.queries;
    return s_.window == 0 || end - 1 > q + before - s_.window;
  }

  struct Head {
    Bf16Right turned{}, rows{};
    std::uint16_t *turned_memory = nullptr, *rows_memory = nullptr;
  };
  void prepare(Head& to, const HeadRows& h) const {
    to.turned = o_.turned_panels(h, s_.queries, to.turned_memory);
    to.rows = o_.row_panels(h, s_.queries, to.rows_memory);
  }

  // Keys [key, key + keys) against queries [first, first + queries), a multiple of 32. Key i of the
  // span is seen by the queries from sees + i on.
  void span(std::int64_t key, std::int64_t keys, std::int64_t first, std::int64_t queries,
            std::int64_t sees, bool add, const HeadRows& dq) {
    const std::int64_t end = first + queries;
    std::int64_t begin = end;  // the first block of queries that sees any of these keys
    for (std::int64_t q = end - kQueryBlock; q >= first; q -= kQueryBlock) {
      const std::int64_t seen = std::min(keys, q + kQueryBlock - sees);
      if (seen <= 0 && s_.causal) break;
      begin = q;
    }
    for (std::int64_t q = begin; q < end; q += kQueryBlock)
      queries_block(key, s_.causal ? std::min(keys, q + kQueryBlock - sees) : keys, q, q - first,
                    sees - q, dq);
    for (std::int64_t i = 0; i < keys; i += kAmxPanel) {
      // Blocks of queries before this one were not written in these rows.
      std::int64_t q = begin;
      if (s_.causal)
        while (q + kQueryBlock - sees <= i) q += kQueryBlock;
      const std::int64_t rows = std::min(kAmxPanel, keys - i);
      add_rows(rows, end - q, right_of({p_, kSpanStride, plane_}, i, q - first), do_.rows, q,
               dv_ + (key + i) * o_.ld(), add);
      add_rows(rows, end - q, right_of({ds_, kSpanStride, plane_}, i, q - first), q_.rows, q,
               dk_ + (key + i) * o_.ld(), add);
    }
  }

  void add_rows(std::int64_t m, std::int64_t k, const Bf16Left& a, const Bf16Right& rows,
                std::int64_t first, float* to, bool add) const {
    if (k > 0)
      o_.product(blocks_, m, s_.width, k, a,
                 {rows.data + first * kAmxPanel, rows.panel, rows.plane}, to, o_.ld(), add);
    else if (!add)
      std::memset(to, 0, static_cast<std::size_t>(m * o_.ld()) * sizeof(float));
  }

  // P and dS of 32 queries from `query` on against the first `keys` keys of a span, at column
  // `column`, and what they add to dQ.
  void queries_block(std::int64_t key, std::int64_t keys, std::int64_t query, std::int64_t column,
                     std::int64_t sees, const HeadRows& dq) {
    const auto panel = [&](const Bf16Right& r) {
      return Bf16Right{r.data + query / kAmxPanel * r.panel, r.panel, r.plane};
    };
    const bool bends = s_.cap > 0;
    CotangentsBlock c;
    c.scores = scores_, c.dp = dp_;
    c.scale = bends ? 1 : s_.scale;
    c.lse = lse_ + query, c.delta = bends ? zeros_ : delta_ + query;
    c.ldw = kSpanStride, c.plane = plane_;
    c.panel_plane = kSpan * kAmxPanel;
    c.planes = o_.planes;
    for (std::int64_t i = 0; i < keys; i += kPiece) {
      c.keys = std::min(kPiece, keys - i);
      c.first = sees + i;
      c.window = s_.window > 0 && c.first + s_.window < kQueryBlock ? s_.window : 0;
      o_.product(blocks_, c.keys, kQueryBlock, o_.depth, right_of(k_, key + i, 0), panel(q_.turned),
                 scores_, kQueryBlock, false);
      o_.product(blocks_, c.keys, kQueryBlock, o_.depth, right_of(v_, key + i, 0),
                 panel(do_.turned), dp_, kQueryBlock, false);
      if (bends)
        bf16_attention_bend(
            {scores_, c.keys, kQueryBlock, kQueryBlock, s_.scale, s_.cap, dp_, delta_ + query});
      c.p = p_ + i * kSpanStride + column;
      c.ds = ds_ + i * kSpanStride + column;
      c.ds_panel = ds_panel_ + i * kAmxPanel;
      bf16_attention_cotangents(c);
    }
    float* to = dq_ + (s_.keys > kSpan ? query * o_.ld() : 0);
    o_.product(blocks_, s_.width, kQueryBlock, round_up(keys, kAmxDepth),
               right_of(k_turned_, 0, key), {ds_panel_, 0, kSpan * kAmxPanel}, to, kQueryBlock,
               key > 0 && is_seen(key - kSpan, query / kSpan * kSpan));
    const std::int64_t last =
        s_.causal ? std::min(keys_, query + kQueryBlock + keys_ - s_.queries) : keys_;
    if (key + keys >= last)
      bf16_attention_store_turned({to, 0, std::min(kQueryBlock, s_.queries - query), s_.width,
                                   &s_.scale, 0, const_cast<void*>(dq.at_row(query)), dq.type,
                                   dq.row});
  }

  Bf16Operands o_;
  UnitBlocks blocks_;
  const AttentionShape& s_;
  std::int64_t queries_ = 0, keys_ = 0, plane_ = 0;
  Bf16Left k_{}, v_{}, k_turned_{};
  Head q_, do_;
  std::uint16_t *k_memory_, *v_memory_, *k_turned_memory_, *p_, *ds_, *ds_panel_;
  float *scores_, *dp_, *zeros_, *lse_, *delta_, *dk_, *dv_, *dq_;
};

}  // namespace

void bf16_attention_backward_task(const AttentionShape& s, const AttentionExtents& actual,
                                  const AttentionBackward& x, std::int64_t task, void* scratch,
                                  std::size_t* bytes) {
  Carve carve(scratch);
  Backward backward(s, carve);
  if (bytes) {
    *bytes = carve.used();
    return;
  }
  const std::int64_t batch = task / s.kv_heads, kv_head = task % s.kv_heads;
  const std::int64_t group = s.heads / s.kv_heads;
  const auto of_keys = [&](const void* data, const HeadsLayout& layout) {
    return head_rows(data, s.dtype, layout, s.width, batch, kv_head);
  };
  backward.begin(of_keys(x.k, s.k), of_keys(x.v, s.v), actual.keys);
  for (std::int64_t g = 0; g < group; ++g) {
    const std::int64_t head = kv_head * group + g, row = (batch * s.heads + head) * s.queries;
    const auto rows = [&](const void* data, const HeadsLayout& layout) {
      return head_rows(data, s.dtype, layout, s.width, batch, head);
    };
    backward.begin_head(rows(x.q, s.q), rows(x.o, s.o), rows(x.d_o, s.o), x.lse + row,
                        x.dlse ? x.dlse + row : nullptr);
    backward.head(rows(x.dq, s.q), g > 0);
  }
  backward.store(of_keys(x.dk, s.k), of_keys(x.dv, s.v));
}

}  // namespace aloft::cpu
