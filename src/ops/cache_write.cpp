#include "ops/cache_write.h"

#include "ops/op.h"

namespace aloft {
namespace {

void infer(const NoAttrs&, Infer& c) {
  c.need_count(3);
  c.need_rank(0, 2);
  c.need_same_dtype(0, 1);
  Shape rows = c.shape(0);
  c.need_rank(1, rows.rank(), rows.rank());
  rows[1] = c.shape(1)[1];
  c.need_shape(1, rows);
  c.check(rows[1].max() <= c.shape(0)[1].max(), "more rows than the cache holds",
          "at most as many rows as the cache's second dimension");
  const TensorType position{DType::I32, Shape{}};
  c.check(c.in(2) == position, "the position has the wrong type", position.str());
  c.out(c.in(0));
}

void evaluate(const NoAttrs&, EvalCall& c) {
  const HostArray &cache = c.in[0], &rows = c.in[1];
  const auto position = static_cast<std::int64_t>(c.in[2][0]);
  const std::int64_t batch = cache.shape[0], most = cache.shape[1], n = rows.shape[1],
                     width = product(cache.shape, 2, cache.rank());
  c.out[0].values = cache.values;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t i = 0; i < n; ++i) {
      if (position + i < 0 || position + i >= most) continue;
      for (std::int64_t j = 0; j < width; ++j)
        c.out[0][(b * most + position + i) * width + j] = rows[(b * n + i) * width + j];
    }
}

void samples(Samples& s) {
  const auto one = [&](Shape cache, Shape rows, int position) {
    s.add(NoAttrs{}, {{std::move(cache)}, {std::move(rows)}, ids({}, position, position + 1)})
        .gradient = false;
  };
  one({2, 9, 2, 4}, {2, 1, 2, 4}, 0);
  one({2, 9, 2, 4}, {2, 3, 2, 4}, 6);
  one({1, 5, 17}, {1, 5, 17}, 0);
  one({1, 5, 3}, {1, 3, 3}, 4);
  one({0, 5, 3}, {0, 1, 3}, 2);
  one({1, 4097}, {1, 17}, 40);
}

}  // namespace

std::vector<OpDef> cache_write_ops() {
  return {define<NoAttrs>({
      .name = "cache_write",
      .doc = "The cache [B, Tmax, ...] with rows [position, position + n) replaced by the given "
             "ones; rows outside are dropped. In place where the old cache is not read again.",
      .infer = infer,
      .numeric = Numeric::Exact,
      .meaning = Eval<NoAttrs>(evaluate),
      .vjp = NoGradient{},
      .cost =
          [](const NoAttrs&, CallTypes in, CallTypes) {
            return Cost{0, 2.0 * static_cast<double>(in[1].max_bytes())};
          },
      .labels = "b * ..., b * ..., -> b * ...",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples = samples,
      .only_moves = true,
  })};
}

Tensor cache_write(Operand cache, Operand rows, Operand position) {
  return emit_one("cache_write", {}, {cache, rows, position});
}

}  // namespace aloft
