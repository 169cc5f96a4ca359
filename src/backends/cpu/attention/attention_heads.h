// How attention's operands lie in memory, and how a forward pass is cut into tasks.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/attention/attention.h"
#include "backends/cpu/rounding.h"
#include "backends/cpu/vectors/tiles.h"

namespace aloft::cpu {

// From 2^24 on a rounded score is up to 1 and more away from the exact product that a fused
// multiply-subtract makes: its exponential could leave f32. There products are rounded first, as
// the largest one, or the sum's logarithm, was.
constexpr float kFarScore = 0x1p24f;

// Rows of `width` elements, `row` elements apart.
struct HeadRows {
  const void* data;
  DType type;
  std::int64_t row, width;
  const void* at_row(std::int64_t t) const { return cpu::at(data, t * row, type); }
};

inline HeadRows head_rows(const void* data, DType type, const HeadsLayout& l, std::int64_t width,
                          std::int64_t batch, std::int64_t head) {
  return {cpu::at(data, l.offset + batch * l.batch + head * width, type), type, l.row, width};
}

// A forward task: one head of one sequence, and a stretch of its queries, which share the keys that
// are prepared for them.
struct QueryStretch {
  std::int64_t batch, head, kv_head, begin, end;
  std::int64_t before;  // keys seen by query 0 besides its own
  std::int64_t keys;
  bool causal;
  std::int64_t window;

  static std::int64_t queries(const AttentionShape& s) { return s.queries <= 2048 ? 512 : 1024; }
  static std::int64_t count(const AttentionShape& s) { return ceil_div(s.queries, queries(s)); }
  static std::int64_t tasks(const AttentionShape& s, const AttentionExtents& actual) {
    return actual.batch * s.heads * count(s);
  }
  QueryStretch(const AttentionShape& s, const AttentionExtents& actual, std::int64_t task)
      : batch(task / count(s) / s.heads),
        head(task / count(s) % s.heads),
        kv_head(head / (s.heads / s.kv_heads)),
        begin(task % count(s) * queries(s)),
        end(std::min(s.queries, begin + queries(s))),
        before(actual.keys - s.queries),
        keys(actual.keys),
        causal(s.causal),
        window(s.window) {}
  // Keys that queries before this one can see.
  std::int64_t keys_for(std::int64_t query_end) const {
    return causal ? std::min(keys, query_end + before) : keys;
  }
  // The first key that this query, and any behind it, can see.
  std::int64_t first_key_of(std::int64_t query) const {
    return window > 0 ? std::max<std::int64_t>(0, query + before + 1 - window) : 0;
  }
};

}  // namespace aloft::cpu
