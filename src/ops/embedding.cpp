#include "ops/embedding.h"

#include <limits>

#include "ops/binary.h"
#include "ops/check_indices.h"
#include "ops/op.h"

namespace aloft {
namespace {

OpDef embedding_op() {
  using A = NoAttrs;
  return define<A>({
      .name = "embedding",
      .doc = "Rows of a table chosen by integer ids; an id outside the table gives a row of NaN.",
      .infer =
          [](const A&, Infer& c) {
            c.need_count(2);
            c.need_rank(0, 2, 2);
            c.need_float(0);
            c.need_rank(1, 0, 7);
            c.need_integer(1);
            Shape out = c.shape(1);
            out.dims().push_back(c.shape(0)[1]);
            c.out(c.dtype(0), out);
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A&, EvalCall& c) {
        const HostArray &table = c.in[0], &ids = c.in[1];
        const std::int64_t rows = table.shape[0], width = table.shape[1];
        for (std::int64_t i = 0; i < ids.numel(); ++i) {
          const bool inside = ids[i] >= 0 && ids[i] < static_cast<double>(rows);
          const auto row = inside ? static_cast<std::int64_t>(ids[i]) : 0;
          for (std::int64_t j = 0; j < width; ++j)
            c.out[0][i * width + j] = inside ? table[row * width + j]
                                             : HostNumber(std::numeric_limits<double>::quiet_NaN());
        }
      }),
      .vjp = VjpOf<A>([](const A&, Vjp& g) {
        if (g.needs(0)) g.give(0, embedding_grad(g.cotangent(0), g.in(1), g.in(0).dim(0).max()));
      }),
      .cost =
          [](const A&, CallTypes in, CallTypes out) {
            return Cost{0, static_cast<double>(2 * out[0].max_bytes() + in[1].max_bytes())};
          },
      .labels = "* d, ... -> ... d",
      .fusion = Fusion::Opaque,
      .onnx = Onnx{"Gather", 13},
      .samples =
          [](Samples& s) {
            s.add(A{}, {{{7, 5}}, ids({2, 3}, 0, 7)});
            s.add(A{}, {{{7, 17}}, ids({11}, 0, 7, DType::I64)}, "repeated ids");
            s.add(A{}, {{{1, 1}}, ids({}, 0, 1)});
            s.add(A{}, {{{3, 4}}, ids({0}, 0, 3)});
            s.add(A{}, {{{3, 4097}}, ids({4}, 0, 3)});
            s.add(A{}, {{{4097, 3}}, ids({17}, 0, 4097, DType::I64)});
            s.add(A{}, {{{3, 4}}, ids({9}, -2, 5)}, "ids outside the table").gradient = false;
          },
      .only_moves = true,
      .keep_inputs = {1},
  });
}

OpDef embedding_grad_op() {
  using A = EmbeddingGradAttrs;
  return define<A>({
      .name = "embedding_grad",
      .doc =
          "Adds rows into a table of zeros at integer ids, in the order of the ids; an id outside "
          "the table adds nothing.",
      .infer =
          [](const A& a, Infer& c) {
            c.need_count(2);
            c.need_float(0);
            c.need_integer(1);
            c.need_rank(0, 1);
            Shape out{Dim(a.rows), c.shape(0)[-1]};
            Shape leading = c.shape(0);
            leading.dims().pop_back();
            c.need_shape(1, leading);
            c.check(a.rows >= 0, "the number of rows is negative", "rows >= 0");
            c.out(c.dtype(0), out);
          },
      .numeric = Numeric::Follow,
      .meaning = Eval<A>([](const A& a, EvalCall& c) {
        const HostArray &dy = c.in[0], &ids = c.in[1];
        const std::int64_t width = dy.shape.back();
        for (std::int64_t i = 0; i < ids.numel(); ++i) {
          if (!(ids[i] >= 0 && ids[i] < static_cast<double>(a.rows))) continue;
          const auto row = static_cast<std::int64_t>(ids[i]);
          for (std::int64_t j = 0; j < width; ++j) c.out[0][row * width + j] += dy[i * width + j];
        }
      }),
      .vjp = VjpOf<A>([](const A&, Vjp& g) {
        if (g.needs(0)) g.give(0, embedding(g.cotangent(0), g.in(1)));
      }),
      .cost =
          [](const A&, CallTypes in, CallTypes out) {
            Cost c = elementwise_cost(0, in, out);
            c.flops = static_cast<double>(in[0].shape.max_numel());
            return c;
          },
      .labels = "... d, ... -> * d",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            s.add(A{7}, {{{2, 3, 5}}, ids({2, 3}, 0, 7)});
            s.add(A{4}, {{{40, 17}}, ids({40}, 0, 4, DType::I64)}, "repeated ids");
            s.add(A{1}, {{{1}}, ids({}, 0, 1)});
            s.add(A{3}, {{{0, 4}}, ids({0}, 0, 3)});
            s.add(A{3}, {{{4, 4097}}, ids({4}, 0, 3)});
            s.add(A{4097}, {{{17, 3}}, ids({17}, 0, 4097)});
            s.add(A{3}, {{{9, 4}}, ids({9}, -2, 5)}, "ids outside the table").gradient = false;
          },
      .keep_inputs = {1},
  });
}

OpDef embedding_grad_add_op() {
  using A = NoAttrs;
  return define<A>({
      .name = "embedding_grad_add",
      .doc = "A gradient plus the rows that embedding_grad adds up at integer ids; rows that no id "
             "names stay as they are.",
      .infer =
          [](const A&, Infer& c) {
            c.need_count(3);
            c.need_rank(0, 2, 2);
            c.need_float(0);
            c.need_float(1);
            c.need_same_dtype(0, 1);
            c.need_integer(2);
            c.need_rank(1, 1);
            Shape leading = c.shape(1);
            c.check(leading[-1] == c.shape(0)[1], "the rows have different widths",
                    "dy as wide as x");
            leading.dims().pop_back();
            c.need_shape(2, leading);
            c.out(c.in(0));
          },
      .numeric = Numeric::Follow,
      .meaning = Body<A>([](const A&, std::span<const Tensor> in) -> std::vector<Tensor> {
        return {in[0] + embedding_grad(in[1], in[2], in[0].dim(0).max())};
      }),
      .vjp = FromBody{},
      .cost =
          [](const A&, CallTypes in, CallTypes) {
            const auto moved = static_cast<double>(in[1].max_bytes());
            return Cost{static_cast<double>(2 * in[1].shape.max_numel()),
                        3 * moved + static_cast<double>(in[2].max_bytes())};
          },
      .labels = "* d, ... d, ... -> * d",
      .fusion = Fusion::Opaque,
      .onnx = no_onnx(),
      .samples =
          [](Samples& s) {
            const auto one = [&](std::vector<SampleInput> in, const char* note) -> Sample& {
              Sample& sample = s.add(A{}, std::move(in), note);
              sample.rounds_between_ops = true;
              return sample;
            };
            one({{{7, 5}}, {{2, 3, 5}}, ids({2, 3}, 0, 7)}, "");
            one({{{4, 17}}, {{40, 17}}, ids({40}, 0, 4, DType::I64)}, "repeated ids");
            one({{{1, 1}}, {{1}}, ids({}, 0, 1)}, "");
            one({{{3, 4}}, {{0, 4}}, ids({0}, 0, 3)}, "");
            one({{{3, 4097}}, {{4, 4097}}, ids({4}, 0, 3)}, "");
            one({{{4097, 3}}, {{17, 3}}, ids({17}, 0, 4097)}, "");
            one({{{3, 4}}, {{9, 4}}, ids({9}, -2, 5)}, "ids outside the table").gradient = false;
          },
      .keep_inputs = {2},
  });
}

}  // namespace

std::vector<OpDef> embedding_ops() {
  return {embedding_op(), embedding_grad_op(), embedding_grad_add_op()};
}

Tensor embedding(Operand table, Operand ids) {
  const Tensor result = emit_one("embedding", {}, {table, ids});
  check_indices("embedding", "an id", ids, table.tensor.dim(0).max());
  return result;
}
Tensor embedding_grad(Operand dy, Operand ids, std::int64_t rows) {
  return emit_one("embedding_grad", to_attrs(EmbeddingGradAttrs{rows}), {dy, ids});
}
Tensor embedding_grad_add(Operand x, Operand dy, Operand ids) {
  return emit_one("embedding_grad_add", {}, {x, dy, ids});
}

}  // namespace aloft
